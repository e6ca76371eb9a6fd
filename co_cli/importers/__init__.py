"""Import exports of other services into the vault, and export the vault."""
