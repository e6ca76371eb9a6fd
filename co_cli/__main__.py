"""`python -m co_cli` is `co`."""

from __future__ import annotations

from co_cli.cli.app import run

if __name__ == "__main__":
    run()
