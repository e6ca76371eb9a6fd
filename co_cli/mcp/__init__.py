"""The MCP door: the tools, the notes as resources, and two prompts, for any client that speaks the protocol."""
