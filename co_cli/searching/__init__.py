"""Search a vault, choose notes for prompts, and keep the index fresh."""
