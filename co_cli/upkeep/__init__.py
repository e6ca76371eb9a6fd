"""Check, review and measure a vault."""
