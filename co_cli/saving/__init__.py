"""Save, change, forget and find notes by name."""
