"""The MCP server: the tools, the notes as resources, and three prompts, for any client that speaks the protocol."""
