"""The version of co-cli."""

__version__ = "0.1.0"
