"""The MCP server: the tools, the notes as resources, and two prompts, for any client that speaks the protocol."""
