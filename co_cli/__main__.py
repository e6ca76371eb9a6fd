"""`python -m co_cli` is `co`."""

from __future__ import annotations

import sys

from co_cli.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
