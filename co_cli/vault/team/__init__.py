"""Team vaults: a git repository is the truth, PostgreSQL holds what is not committed yet, every server has a clone.

Used where the setting `engine` names PostgreSQL and the vault is a git repository.
"""
