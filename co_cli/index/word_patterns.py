"""The patterns of queries that are more than plain ASCII words.

Compiled together, and imported only by those who need one: that takes longer than the search that follows.
"""

from __future__ import annotations

import re

from co_cli.index.spaceless import LETTERS

PART = re.compile(r"(?:(?<=\s)|^)(-?)\"([^\"]*)(?:\"|\Z)|(?:(?<=\s)|^)-(?=[^\W_])(\S+)|(\S+)")
"""A phrase, maybe refused; a refused word; anything else between blanks."""

WORD = re.compile(rf"[^\s\x00-&(-/:-@\[-`{{-\xbf\u2000-\u2018\u201a-\u206f\u3000-\u3004\u3008-\u303f{LETTERS}]+")
"""Everything between blanks and punctuation; which letters are a token is left to FTS5, which knows."""

RUN = re.compile(f"[{LETTERS}]+")
