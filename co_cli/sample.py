"""Where the sample vault is: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

import os

from co_cli.errors import VaultError


def sample_vault() -> str:
    package = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(package, "sample_vault"), os.path.join(os.path.dirname(package), "knowledge")):
        if os.path.isdir(os.path.join(folder, "memories")):
            return folder
    raise VaultError("the sample vault is missing from this installation: `pip install --force-reinstall co-cli`")
