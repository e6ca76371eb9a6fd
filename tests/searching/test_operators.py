"""Operators mean the same on every backend and engine, and what only looks like one is text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground import deadline
from co_cli.retrieval import grammar
from co_cli.retrieval.grammar import parse_terms
from co_cli.retrieval.query import parse
from co_cli.server.access_tokens import AccessTokens
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault
from tests.postgres import new_database
from tests.server.conftest import serving
from tests.vault.team.servers import Team

NOTES = {
    "memories/keys.md": "Rotation of keys is monthly. Universities of the universe do it, as Café Orient does.",
    "memories/tyres.md": "We rotate the tyres of the car. Its universal joint is in the verse.",
    "memories/code.md": "---\ntags: [ops]\n---\nparseJSON(text) is called in C++, at 10:30. Meetup: personal.",
    "memories/notes.md": "Remarks: parsejson is written in lower case here. A parser has no C.\n\nWork, and a meeting.",
    "articles/film/alien.md": """---
director: "[[Ridley Scott]]"
status: seen
rating: 9
released: 1979-05-25
tags: [film/horror]
---
# Alien

A crew meets a monster.

## Plot

The ship answers a call.

## Cast

Weaver plays Ripley, and the monster plays itself.
""",
    "articles/film/blade.md": """---
director: Ridley Scott
Status: open
seen:
released: 1982-06-25T20:00:00Z
tags: [film]
---
# Blade Runner

Rain in the city, and a call for the crew.

## Plot

Somebody runs. The monster is missing.
""",
    "articles/archive/todo.md": """---
tags: [draft]
---
# Errands

- [ ] call the bank about the crew
- [x] call Mara
- [ ] rotate the keys

Error E-4711 was in the log. The next line

has the word monster alone.
""",
}
ANSWERS = {
    # quotes are exact
    '"rotate"': "todo tyres",
    '"rotation"': "keys",
    '"universal"': "tyres",
    '"univers"': "",
    '"Cafe orient"': "keys",
    '"rotate the keys"': "todo",
    '"parsejson"': "code notes",
    '"C++"': "code",
    '"E-4711"': "todo",
    '"rotate" "keys"': "todo",
    # only that word is excluded
    '"keys" -universe': "todo",
    '"keys" -university': "keys todo",
    '"parsejson" -"lower case"': "code",
    "#film -rain": "alien",
    "#film -tag:film/horror": "blade",
    "#film -#film/horror": "blade",
    '"monster" -path:archive': "alien blade",
    '"monster" -file:blade.md -file:todo': "alien",
    '"monster" -[status:seen]': "blade todo",
    '"monster" -(call rain)': "alien todo",
    # one of them, and groups
    "Ripley OR tyres": "alien tyres",
    "meeting work OR meetup personal": "code notes",
    '"crew" (rain OR bank)': "blade todo",
    "tag:draft OR tag:ops": "code todo",
    '(#film "runs") OR "universe"': "blade keys",
    "path:(film OR archive) -#film/horror": "blade todo",
    # properties
    "[director]": "alien blade",
    "[director:Ridley Scott]": "alien blade",
    '["director":[[Ridley Scott]]]': "alien blade",
    "[status:seen]": "alien",
    "[Status:seen OR open]": "alien blade",
    "[seen]": "blade",
    "[rating:9] monster": "alien",
    "[rating:>4]": "alien",
    "[rating:>9]": "",
    "[Rating:>=9] monster": "alien",
    "[rating:<=9.5] -[rating:<9]": "alien",
    '"crew" -[rating:>4]': "blade todo",
    "[released:<1980-01-01]": "alien",
    "[released:>=1979-05-25]": "alien blade",
    "[released:>1979-05-25 OR <1979-01-01]": "blade",
    "[seen:null]": "blade",
    "#film -[seen:null]": "alien",
    # case
    "match-case:parseJSON": "code",
    "match-case:parsejson": "notes",
    "match-case:(parseJSON OR Ripley)": "alien code",
    "ignore-case:PARSEJSON": "code notes",
    "line:match-case:Rain": "blade",
    "match-case:rain": "",
    # regular expressions
    r"/e-\d{4}/": "todo",
    "/^rain/ -path:archive": "blade",
    # lines, sections and tasks
    "line:(monster crew)": "alien",
    "block:(word monster)": "todo",
    "block:(error monster)": "",
    "block:(bank mara)": "todo",
    "content:ripley": "alien",
    "content:scott": "",
    "content:(crew ripley)": "alien",
    "line:(call crew)": "blade todo",
    "section:(monster ripley)": "alien",
    "section:(plot monster)": "blade",
    "task:call": "todo",
    "task:(call bank)": "todo",
    "task-todo:mara": "",
    "task-done:mara": "todo",
    "task-todo:rotate -rain": "todo",
    'task:""': "todo",
    # files
    "file:alien.md": "alien",
    "file:todo -path:film": "todo",
}
BROKEN = {
    "[prop": "`[prop` has no closing bracket",
    "[draft of it": "`[draft` has no closing bracket",
    "task:": "`task:` has no value",
    "line: #film": "`line:` has no value",
    "(a": "`(a` has no closing bracket",
    "-(a": "`-(a` has no closing bracket",
    "(crew OR rain": "`(crew` has no closing bracket",
    "tag:ops (crew": "`(crew` has no closing bracket",
    "deploy (see below": "`(see` has no closing bracket",
    "[status:]": "`[status:]` has no value",
    "/(/": "`/(/` is not a valid regular expression (missing ) at position 1)",
    "/a{2,1}/": "`/a{2,1}/` is not a valid regular expression (min repeat greater than max repeat at position 2)",
    "/(?au)x/": "`/(?au)x/` is not a valid regular expression"
    " (ASCII, LOCALE and UNICODE flags are mutually incompatible)",
    "/(?V0)(?V1)a/": "`/(?V0)(?V1)a/` is not a valid regular"
    " expression (VERSION0 and VERSION1 flags are mutually incompatible)",
    f"/{'a' * 201}/": f"`/{'a' * 18}\u2026` has more than 200 characters",
    "lang:elvish crew": "`lang:elvish` is not a language that co knows",
}
"""What is not understood, and what is said about it before `: searched as words`."""
PROSE = [
    "what is this (and why)?",
    "deploy (see below",
    "task: call the bank",
    "note: the crew meets at 10:30",
    "is it -5 °C :-( or C++ (2026)?",
    "http://example.org/a(b)?c=[d]",
    "see [docs](https://example.org) and [[Ridley Scott]]",
    "- [x] call Mara",
    "/etc/nginx/nginx.conf and and/or",
    "don't panic, it's Mara's",
    "the next task:",
    "use /*/ in the path",
    "line:42 of the file",
    "a or b",
    "OR",
    "[WARN] the crew is missing",
    "(1) first (2) second",
    "arr[0] = f(x)",
]


def write(vault: Vault) -> None:
    for path, text in NOTES.items():
        vault.write(path, text)


@pytest.fixture
def world(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    write(vault)
    kb.sync()
    return kb


@pytest.fixture
def on_postgres(tmp_path: Path) -> Iterator[KnowledgeBase]:
    team = Team(tmp_path, new_database())
    plain = team.place / "plain"
    write(Vault(plain))
    kb = team.open(plain)
    kb.sync()
    yield kb
    team.close()


def names(kb: KnowledgeBase, query: str, **options: object) -> str:
    found = kb.search(query, limit=20, **options)  # type: ignore[arg-type]
    return " ".join(sorted({Path(hit.path).stem for hit in found.hits}))


@pytest.mark.medium
@pytest.mark.parametrize("backend", ["grep", "fts5", "hybrid"])
def test_every_operator_has_one_meaning(world: KnowledgeBase, backend: str) -> None:
    assert {query: names(world, query, backend=backend) for query in ANSWERS} == ANSWERS


@pytest.mark.postgres
def test_and_the_same_one_on_postgres(on_postgres: KnowledgeBase) -> None:
    for backend in ("fts5", "hybrid"):
        assert {query: names(on_postgres, query, backend=backend) for query in ANSWERS} == ANSWERS


def test_and_over_a_server(world: KnowledgeBase) -> None:
    tokens = AccessTokens.of(world.vault)
    token = tokens.create("read", "mara")[0]
    with serving(world, tokens) as server, KnowledgeBase.connect(server.url, token) as remote:
        for query in ('"rotate"', "section:(plot monster)", "[director:Ridley Scott]", "/e-\\d{4}/"):
            found = remote.search(query, limit=20)
            assert " ".join(sorted({Path(hit.path).stem for hit in found.hits})) == ANSWERS[query]
        assert [Path(hit.path).stem for hit in remote.search("parseJSON", case=True).hits] == ["code"]
        assert "closing" in remote.search("(a").understood[0]


def test_with_case_words_are_as_they_were_typed(world: KnowledgeBase, co: Co) -> None:
    answers = {
        "parseJSON": "code",
        "parsejson": "notes",
        '"parseJSON"': "code",
        "/parse[A-Z]/": "code",
        '"Café"': "keys",
    }

    for backend in ("grep", "fts5", "hybrid"):
        assert {query: names(world, query, case=True, backend=backend) for query in answers} == answers
        assert names(world, '"Cafe"', case=True, backend=backend) == ""
    assert [Path(hit["path"]).stem for hit in co("search", "parseJSON", "--case", "--json").json["hits"]] == ["code"]


@pytest.mark.parametrize("backend", ["grep", "fts5", "hybrid"])
def test_a_broken_operator_is_searched_as_words_and_a_line_says_so(world: KnowledgeBase, backend: str) -> None:
    for query, problem in BROKEN.items():
        assert world.search(query, backend=backend).understood[0] == f"{problem}: searched as words", query
    found = world.search("[crew of the monster", backend=backend)
    assert "alien" in {Path(hit.path).stem for hit in found.hits}
    assert world.search("(crew", backend=backend, prefix=True).understood == (), "it is still being typed"


def test_people_agents_and_programs_read_the_same_line(world: KnowledgeBase, co: Co) -> None:
    remark = "`[crew` has no closing bracket: searched as words"

    ran = co("search", "--no-sync", "[crew of the monster")
    assert (ran.code, remark in ran.out) == (0, True)
    assert remark in co("search", "--lines", "--no-sync", "[crew of the monster").err
    assert remark in Toolbox(world).call("search_knowledge", {"query": "[crew of the monster"}).text
    with serving(world) as server, server.client() as client:
        answer = client.get("/api/v1/search", params={"q": "[crew of the monster"})
    assert (answer.status_code, answer.json()["understood"]) == (200, [remark])


@pytest.mark.parametrize("query", PROSE)
def test_prose_is_text(world: KnowledgeBase, query: str) -> None:
    for backend in ("hybrid", "fts5", "grep"):
        world.search(query, backend=backend)
    if not query.startswith("[WARN]"):
        assert parse(query).text == query


def test_text_in_brackets_that_is_no_property_is_found_as_words(world: KnowledgeBase) -> None:
    for backend in ("hybrid", "fts5", "grep"):
        found = world.search("[WARN] the crew is missing", backend=backend)
        assert "blade" in {Path(hit.path).stem for hit in found.hits}
        assert found.understood == ("nothing was found with [WARN]: all notes were searched",)


def test_an_operator_of_another_program_is_named_and_searched_as_words(world: KnowledgeBase, co: Co) -> None:
    remark = "`inbody:` is not supported: searched for the word"
    for backend in ("hybrid", "fts5", "grep"):
        found = world.search("inbody:(rain city)", backend=backend)
        assert found.understood == (remark,)
        assert Path(found.hits[0].path).stem == "blade"
    assert remark in co("search", "inbody:rain").out
    compared = "`[rating:>many]` compares with no number and no date such as 2026-03-01: searched as words"
    assert world.search("[rating:>many] monster").understood == (compared,)


def test_words_around_an_or_that_no_note_has_together_are_searched_as_text(world: KnowledgeBase) -> None:
    found = world.search("which MONSTER eats the tyres OR which one drives the car")

    assert found.hits
    assert found.understood == ("no note has the words on either side of OR: searched for any of them",)


def test_where_takes_a_link_for_the_name_of_its_note(world: KnowledgeBase, co: Co) -> None:
    for said in ("director=Ridley Scott", "director=[[Ridley Scott]]", "Director=ridley scott"):
        found = co("search", "monster", "--where", said, "--json").json["hits"]
        assert {Path(hit["path"]).stem for hit in found} == {"alien", "blade"}


def test_a_file_name_with_its_ending_puts_that_note_first(world: KnowledgeBase) -> None:
    for query in ("alien.md", "film/alien.md", "Alien.md", "blade.md"):
        first = world.search(query).hits[0]
        assert Path(first.path).name == query.rpartition("/")[2].lower()
        assert "name" in first.signals
    assert "name" not in world.search("alien.txt").hits[0].signals


def not_compared(compared: int, total: int | None = None) -> str:
    """What is said for an index, which knows how many there are, or for files."""
    few = f"only {compared}{f' of {total}' if total else ''} notes were compared with the query"
    return f"{few}, because it takes too long: make it simpler, or narrow it with tag: or path:"


@pytest.mark.medium
def test_a_regular_expression_may_not_take_long(world: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/evil.md", "a" * 5_000 + "!")
    world.sync()
    for backend, total in (("fts5", 8), ("grep", None)):
        found = world.search("/(a+)+$/ -rain -car", backend=backend)

        assert found.degraded == [not_compared(7, total)]
        assert "evil" not in {Path(hit.path).stem for hit in found.hits}


def test_a_regular_expression_may_not_take_much_memory(world: KnowledgeBase) -> None:
    for pattern in ("(?:x?){99999999}y", "(?:(?:(?:x?){1000}){1000}){1000}y", "(?x)(?:x?){9 9 9 9 9 9 9}y"):
        assert "repeats too much: searched as words" in world.search(f"/{pattern}/").understood[0]
    assert names(world, r"/e-\d{1,400}/") == "todo"


@pytest.mark.medium
def test_a_query_ends_within_a_note_and_says_how_many_were_compared(
    world: KnowledgeBase, vault: Vault, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        vault.write(f"articles/slow/{number}.md", f"{'x' * 30}\n" * 400)
    world.sync()
    monkeypatch.setattr(deadline, "SECONDS", 0.2)
    query = "path:slow line:/(.*)(.*){14}[~^]/"

    for backend, total in (("fts5", 3), ("grep", None)):
        found = world.search(query, backend=backend)
        assert (found.state, found.hits, found.degraded) == ("inconclusive", [], [not_compared(0, total)])
    assert "inconclusive" in Toolbox(world).call("search_knowledge", {"query": query}).text
    with serving(world) as server, server.client() as client:
        answer = client.get("/api/v1/search", params={"q": query}).json()
    assert (answer["state"], answer["degraded"]) == ("inconclusive", [not_compared(0, 3)])
    ran = co("search", "--no-sync", query)
    assert (ran.code, "only 0 of 3 notes were compared" in " ".join(ran.out.split())) == (1, True)
    lines = co("search", "--no-sync", "--lines", query)
    assert (lines.code, "only 0 of 3 notes were compared" in lines.err) == (1, True)


@pytest.mark.medium
def test_an_answer_that_was_cut_short_is_inconclusive_also_with_hits(
    world: KnowledgeBase, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        vault.write(f"articles/slow/{number}.md", f"{'x' * 30}\n" * 400)
    world.sync()
    vault.write("articles/slow/newest.md", "---\ncreated: 2999-01-01\n---\nHere it is: ~")
    world.sync()
    monkeypatch.setattr(deadline, "SECONDS", 1.0)

    found = world.search("path:slow line:/(.*)(.*){14}[~^]/", backend="fts5", outdated=True)

    assert (found.state, [Path(hit.path).stem for hit in found.hits]) == ("inconclusive", ["newest"])
    assert found.degraded == [not_compared(1, 4)]


def test_only_the_turns_of_a_conversation_that_have_a_word_are_excluded(kb: KnowledgeBase, vault: Vault) -> None:
    turns = "## Mara\n\nThe harbour is closed.\n\n## Agent\n\nThe harbour opens in a storm.\n"
    vault.write("conversations/talk.md", f"---\nkind: conversation\n---\n\n{turns}")
    kb.sync()

    for backend in ("fts5", "grep"):
        assert [hit.snippet for hit in kb.search('"harbour" -storm', backend=backend).hits] == [
            "The harbour is closed."
        ]


SIGNS = [
    '"',
    "(",
    ")",
    "[",
    "]",
    "/",
    "-",
    "#",
    ":",
    " ",
    "\n",
    "OR",
    "tag:",
    "line:(",
    "task:",
    "a",
    "Ab",
    "\\",
    "é",
    "東",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(SIGNS), max_size=40).map("".join)))
def test_every_text_has_a_tree(text: str) -> None:
    parsed = parse_terms(text)
    query = parse(text)

    assert parsed.broken is None or "\n" not in parsed.broken
    if query.condition:
        assert query.condition.node == (parse(text).condition or query.condition).node


@given(st.lists(st.sampled_from(["oak", "elm ", "(", ")", "?", ".", ",", "or", "10:30", "it's", " "]), max_size=20))
def test_words_and_punctuation_alone_are_never_narrowed(parts: list[str]) -> None:
    text = "x " + "".join(parts)
    query = parse(text)

    assert (query.condition, query.narrowing) == (None, ())
    assert query.text.split() == text.split()


def cost(text: str) -> float:
    """Seconds of CPU, the least of a few."""
    seconds: list[float] = []
    for _ in range(3):
        started = time.process_time()
        parse_terms(text)
        seconds.append(time.process_time() - started)
    return min(seconds)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.sampled_from([*"()[]/-\"': ", "( ", " )", "a", "[a:", "line:", "-(", 'tag:"']), min_size=1, max_size=8)
)
@example(["( "])
@example([" )"])
@example(["[a"])
@example(["[a: "])
@example(["-(a "])
@example(["line:"])
@example(['-"'])
def test_ten_times_as_much_text_costs_ten_times_as_much(parts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grammar, "LONGEST_TYPED", 10_000)  # longer texts have no operators
        unit = "".join(parts)
        short, long = ((unit * 10_000)[:size] for size in (1_000, 10_000))
        nested = unit * 25 + "a" + ")" * 25
        assert any(cost(long) <= 15 * cost(short) for _ in range(5))
        parse_terms(nested)
        parse(nested)


def test_parentheses_in_parentheses_are_read_once() -> None:
    text = f"{'( ' * 40}a{' )' * 40}"  # reading each of them twice would never end

    assert parse(text).text == text
