"""What the server imports that soaked processes are forked from: they begin where others are after their first save."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.soak.vaults import open_vault, sealed_text

with tempfile.TemporaryDirectory(prefix="co-soak-") as _folder, open_vault(Path(_folder)) as _kb:
    _kb.remember(sealed_text(random.Random(0), "warm"))
    _kb.sync()
