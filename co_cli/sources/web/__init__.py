"""Web pages: fetch one from a public address, and extract its main text as Markdown."""
