"""Text of scripts that are written without spaces, into overlapping pairs of letters that FTS5 can match.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese: `東京都` becomes `東京 京都 都`, so that any part of it, one
letter or several, is a token, a prefix of one, or a phrase of them.
"""

from __future__ import annotations

LETTERS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Korean
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Chinese
)


def runs(text: str) -> list[str]:
    """The stretches of such letters, normalised so that half-width and full-width forms agree."""
    if text.isascii():
        return []
    import unicodedata

    from co_cli.index.word_patterns import RUN

    return RUN.findall(unicodedata.normalize("NFKC", text))


def grams(text: str) -> str:
    return " ".join(gram for run in runs(text) for gram in run_grams(run))


def run_grams(run: str) -> list[str]:
    """Every pair of neighbours, and the last letter alone."""
    return [run[place : place + 2] for place in range(len(run))]
