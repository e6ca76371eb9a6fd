"""Conversations: keep what was said as notes, and propose or save what follows from it as memories."""
