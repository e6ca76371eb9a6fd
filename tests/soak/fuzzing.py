"""Mutations of real notes, frontmatter, queries and refs, through everything that reads them.

Nothing may raise anything but a KnowledgeError, take long, or lose a note.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.dates import read_moment
from co_cli.notes.editing import set_body, set_fields
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import NotTextError, read_note
from co_cli.notes.refs import slugify
from co_cli.paths import sample_vault
from co_cli.sources.passages import passages_of
from tests.soak.checks import settings_of
from tests.soak.runner import Trial

NOTES, QUERIES, TEXTS = 20, 40, 60
"""Of a round: mutated notes in a vault, queries of it, and texts that are only read and edited."""
LONGEST = 60_000
SLOW = 10.0
"""Seconds of CPU that one text may take."""

# fmt: off
TOKENS = (
    "---\n", "---", "\n", "\r\n", "\r", "\0", "\ufeff", "\u2028", "\u0301", "\u202e", "\x1b[31m", "\ud83d", "\u200d",
    "title: ", "tags: [a, b", "tags: #x", "- ", ": ", "? ", "&a ", "*a", "<<: *a", "!!python/object:os.system ", "|",
    ">-", "created: 2026-13-45", "created: 0001-01-01T00:00:00+99:99", "importance: .nan", "1e999", "0x", "0o9", "~",
    "%YAML 1.1", "# ", "## " * 40, "```", "~~~", "[[", "]]", "[[a|b#c]]", "](", "![", "<!--", "-->", "<x", "$$",
    "| a |\n|---|\n", "#tag", "#a/b/", "# tag", "http://", "memory:", "article:x#L1-", "#L99999999999", "../", "..\\",
    "/etc/passwd", "CON", '"', "'", '""', "(", ")", "*", "^", "+", "-", "NEAR(", "NEAR/9", " AND ", " OR ", " NOT ",
    "title:", "{", "}", "\\", ";--", "tag:", "since:", "yesterday", "last week", "in 31 February", "before 0",
    "9999-12-31", "%s", "{0}", "${HOME}", "`id`", "\u5b57", "\u0e1b\u0e23\u0e30", "\ud55c\uad6d", "\xdf", "\u0130",
    "\u01c5", "\ufb00", "\U0001d518", "\u0627" * 50, "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\uff41\uff42",
    "\u0663", "\u2167", "x" * 300, "a " * 200,
)
# fmt: on
SEEDS = (
    b"---\ntitle: x\naliases: [a, b]\nvalid_until: 2026-01-01\nsupersedes: memory:y\n---\n# A\n\n- one\n- two #tag\n\n"
    b"```py\nx = 1\n```\n",
    b"a: &a [x, x]\nb: &b [*a, *a]\n",
)


def fuzz(trial: Trial) -> None:
    seeds = [*(path.read_bytes() for path in sorted(Path(sample_vault()).rglob("*.md"))), *SEEDS]
    for number in trial.rounds():
        place = trial.folder(number)
        for _ in range(TEXTS):
            data = mutated(trial.chance, seeds)
            attempt(trial, "reading", lambda data=data: read_and_edit(data))
        _in_a_vault(trial, place, seeds)


def attempt(trial: Trial, what: str, step: Callable[[], object]) -> None:
    """Run one step; what it raises and how long it takes may be a fault. The seed repeats it."""
    started = time.process_time()
    trial.count(what)
    try:
        step()
    except (KnowledgeError, NotTextError):
        pass  # a refusal with a reason
    except Exception as error:
        trial.fault(f"{what} raised {type(error).__name__}: {error}"[:300])
    took = time.process_time() - started
    if took > SLOW:
        trial.fault(f"{what} took {took:.1f} s of CPU")


def read_and_edit(data: bytes) -> None:
    """Everything that reads or edits a text, with what must hold of each answer."""
    note = read_note("memories/x.md", data)
    lines = data.count(b"\n") + data.count(b"\r") + 2
    for passage in passages_of(note):
        assert 1 <= passage.first_line <= passage.last_line <= lines, f"a passage on lines {passage[1:3]} of {lines}"
    text = data.decode("utf-8", "surrogateescape")
    read_frontmatter(text)
    slug = slugify(note.title)
    assert slug and "/" not in slug and slug not in (".", ".."), slug  # noqa: PT018
    assert set_fields(text, {}) == text, "changing nothing changed something"
    edited = set_fields(text, {"importance": 0.5})
    assert read_frontmatter(edited).metadata.get("importance") == 0.5, "a field that was set is not there"
    set_body(text, "Another body.")


def _in_a_vault(trial: Trial, place: Path, seeds: list[bytes]) -> None:
    """The same through the vault: every file is indexed or reported, others too, and any text is a query and a ref."""
    memories = place / "vault" / "memories"
    memories.mkdir(parents=True)
    for number in range(NOTES):
        (memories / f"n{number}.md").write_bytes(mutated(trial.chance, seeds))
    (memories / "oak.md").write_text("Oaks live long.\n", "utf-8")
    with KnowledgeBase(settings_of(place)._replace(knowledge_embedding_provider="none")) as kb:
        attempt(trial, "sync", kb.sync)
        with kb.engine.reading() as reader:
            known = set(reader.files(kb.index.state().id))
        lost = {f"memories/n{number}.md" for number in range(NOTES)} - known
        if lost or "memories/oak.md" not in known:
            trial.fault(f"neither indexed nor reported: {sorted(lost) or 'oak.md'}")
        for _ in range(QUERIES):
            text = mutated(trial.chance, seeds)[:200].decode("utf-8", "surrogateescape")
            for ask in (kb.search, kb.note, read_moment):
                attempt(trial, ask.__name__, lambda ask=ask, text=text: ask(text))
        for number in range(NOTES):
            attempt(trial, "edit", lambda number=number: kb.update(f"memory:n{number}", fields={"importance": 0.5}))
        hits = kb.search("oaks live long").hits
        if not any(hit.ref == "memory:oak" for hit in hits):
            trial.fault("the one sound note is not found")
    left = sorted(path.name for path in (place / "vault").rglob("*") if path.is_file())
    if left != sorted(["oak.md", *(f"n{number}.md" for number in range(NOTES))]):
        trial.fault(f"other files are there now: {left}")


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """A seed with a few changes, or a heap of tokens."""
    data = bytearray(chance.choice(seeds) if chance.random() < 0.8 else b"")
    for _ in range(chance.randint(1, 12)):
        place = chance.randrange(len(data) + 1)
        end = min(len(data), place + int(chance.expovariate(1 / 20)))
        token, other = chance.choice(TOKENS).encode("utf-8", "surrogatepass"), chance.choice(seeds)
        data[place:end] = chance.choice(
            (
                b"",
                bytes(data[place:end]) * chance.randint(1, 300),
                chance.randbytes(chance.randint(1, 8)),
                other[chance.randrange(len(other) + 1) :][: chance.randint(1, 400)],
                token,
                token * chance.randint(1, 400),
            )
        )
    if chance.random() < 0.05:
        encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7"))
        data = bytearray(bytes(data).decode("utf-8", "replace").encode(encoding, "replace"))
    return bytes(data[:LONGEST])
