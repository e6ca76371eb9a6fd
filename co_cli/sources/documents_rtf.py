"""Rich Text Format into plain paragraphs: control words away, letters in the encoding that the file names."""

from __future__ import annotations

import codecs
import re

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import own_title, plain

TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|[\r\n]+|([^\\{}\r\n]+)|\\'?"
)
NOT_SHOWN = frozenset(
    """
    fonttbl colortbl stylesheet info generator listtable listoverridetable rsidtbl themedata colorschememapping
    datastore latentstyles pict object objdata header headerl headerr headerf footer footerl footerr footerf
    xmlnstbl mmathPr fldinst bkmkstart bkmkend filetbl revtbl pgptbl protusertbl wgrffmtfilter
    annotation atnid atnauthor atndate
    """.split()
)
CHARACTERS = {
    **dict.fromkeys(("par", "row", "sect", "page"), "\n\n"),
    **{"line": "\n", "tab": "\t", "cell": " | ", "bullet": "•", "endash": "–", "emdash": "—", "lquote": "‘"},
    **{"rquote": "’", "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " "},
}
SYMBOLS = {b"~": "\xa0", b"_": "-", b"-": "", b"\n": "\n\n", b"\r": "\n\n"}
CODE_PAGES = re.compile(rb"\\ansicpg(\d{1,5})")
FIELDS = re.compile(rb"\{\\(title|author)\s([^{}\\]{1,400})\}")
DEEPEST = 10_000
MOST_TOKENS = 1_500_000


def read_rtf(_: str, data: bytes) -> Document:
    if not data.startswith(b"{\\rtf"):
        raise NotTextError("broken: no rich text in it; open it and save it again")
    encoding = _encoding(data)
    text = re.sub(r"[ \t]+(?=\n)", "", _text(data, encoding))
    text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
    said = {found[1].decode(): found[2].decode(encoding, "replace") for found in FIELDS.finditer(data)}
    return Document(own_title(said.get("title")), plain(text) + "\n" if text else "", {"author": said.get("author")})


def _encoding(data: bytes) -> str:
    found = CODE_PAGES.search(data)
    try:
        return codecs.lookup(f"cp{int(found[1])}").name if found else "cp1252"
    except LookupError:
        return "cp1252"


def _text(data: bytes, encoding: str) -> str:
    """Groups are kept on a stack: whether their text is shown, and how many letters stand in for one of Unicode."""
    parts: list[str] = []
    waiting = bytearray()  # a letter may be two bytes, each of them escaped
    stack: list[tuple[bool, int]] = []
    shown, stand_ins, skip, starred = True, 1, 0, False
    place = 0
    for _ in range(MOST_TOKENS):
        token = TOKEN.match(data, place)
        if not token:
            break
        word, argument, code, symbol, brace, letters = token.groups(b"")
        place = token.end() + (int(argument or 0) if word == b"bin" and not argument.startswith(b"-") else 0)
        if waiting and not code:
            parts.append(waiting.decode(encoding, "replace"))
            waiting.clear()
        if brace == b"{":
            if len(stack) >= DEEPEST:
                raise NotTextError("broken: nested too deep to be read")
            stack.append((shown, stand_ins))
            skip, starred = 0, False
        elif brace == b"}":
            shown, stand_ins = stack.pop() if stack else (True, 1)
            skip, starred = 0, False
        elif symbol == b"*":
            starred = True
        elif word:
            name = word.decode()
            if starred or name in NOT_SHOWN:
                shown, starred = False, False
            elif not shown:
                continue
            elif name == "uc":
                stand_ins = min(int(argument or 1), 8) if not argument.startswith(b"-") else 1
            elif name == "u" and argument:
                parts.append(_letter(int(argument)))
                skip = stand_ins
            elif name in CHARACTERS:
                parts.append(CHARACTERS[name])
        elif not shown:
            continue
        elif code:
            if skip:
                skip -= 1
            else:
                waiting += bytes.fromhex(code.decode())
        elif symbol:
            parts.append(SYMBOLS.get(symbol, symbol.decode(encoding, "replace")))
        elif letters:
            parts.append(letters[skip:].decode(encoding, "replace"))
            skip = max(skip - len(letters), 0)
    parts.append(waiting.decode(encoding, "replace"))
    return _paired("".join(parts))


def _letter(number: int) -> str:
    """Numbers are signed, and of two bytes: a letter beyond those comes as a pair."""
    return chr(number % 0x10000)


def _paired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
