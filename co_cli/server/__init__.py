"""The JSON API under /api/v1, and the page that uses it (`co web`)."""
