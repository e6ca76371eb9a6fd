"""`co search` and `co note recall`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.hits import Hit, Searched, SearchResult, worth_showing
from tests.command import Co
from tests.folder import Vault

KEYS = ["query", "state", "degraded", "backend", "searched", "hits", "took_ms", "confidence", "understood"]
KEYS += ["suggestions", "meta"]
HIT_KEYS = {"ref", "source", "path", "title", "snippet", "lines", "score", "signals", "tags", "created", "weak"}


@pytest.fixture(autouse=True)
def trees(vault: Vault) -> None:
    vault.write(
        "memories/oak.md",
        "---\ntitle: Oaks\ntags: [tree, old]\ncategory: fact\ncreated: 2026-01-10\nwood: hard\n---\n"
        "Oaks live for centuries in the park.\n",
    )
    vault.write(
        "memories/elm.md",
        "---\ntitle: Elms\ntags: [tree]\ncreated: 2026-06-10\nwood: soft\n---\nElms stand in the park.\n",
    )
    vault.write(
        "articles/parks.md", "---\ntitle: Parks\n---\n# Parks\n\nIntro.\n\n## Paths\n\nGravel paths cross the park.\n"
    )


def refs(co: Co, *arguments: str) -> list[str]:
    ran = co("search", *arguments, "--json", "--backend", "fts5")
    assert ran.code == (0 if ran.json["hits"] else 1)
    return [hit["ref"].split("#")[0] for hit in ran.json["hits"]]


def test_a_person_sees_title_ref_snippet_reasons_tags_and_age(co: Co) -> None:
    ran = co("search", "oaks for centuries")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[:2] == ["1. Oaks  memory:oak", "   Oaks live for centuries in the park."]
    assert lines[2].startswith("   matches: oaks, centuries · similar meaning · #tree #old · ")
    assert "ago" in lines[2] or "today" in lines[2]
    assert not re.search(r"\d\.\d", ran.out)  # numbers are for --explain


def test_a_snippet_keeps_the_lines_of_code(co: Co, vault: Vault) -> None:
    vault.write(
        "articles/saw.md", "Saw planks\nlike this:\n\n```python\nfor log in logs:\n    saw(log)\n```\nThen rest.\n"
    )

    out = co("search", "saw logs", "--backend", "fts5").out

    assert "   Saw planks like this:\n   for log in logs:\n       saw(log)\n   Then rest.\n" in out


@pytest.mark.parametrize("backend", ["hybrid", "grep"])
def test_titles_and_headings_of_results_are_plain_text(co: Co, vault: Vault, backend: str) -> None:
    text = "# [Tor](https://tor.example)\n\nOnions.\n\n## See **[bridges](b.md)**\n\nSnowflakes."
    vault.write("articles/tor.md", text)

    found = [co("search", word, "--backend", backend, "--json").json["hits"][0] for word in ("onions", "snowflakes")]

    assert [(hit["title"], hit["heading"]) for hit in found] == [("Tor", ""), ("Tor", "See bridges")]
    assert co("search", "tor.example").out.splitlines()[0].startswith("1. Tor  article:tor"), "the address is searched"


def test_paths_of_results_are_printed_for_pipes(co: Co, vault: Vault) -> None:
    files = [str(vault.path(f"memories/{name}.md")) for name in ("elm", "oak")]
    chosen = ("search", "park", "--tag", "tree", "--backend", "fts5")

    assert sorted(co(*chosen, "--paths").out.splitlines()) == files
    assert sorted(co(*chosen, "-0").out.split("\0")) == ["", *files]
    assert co("search", "zeppelin", "--paths") == (1, "", "")


def test_a_program_gets_one_object_with_the_agreed_names(co: Co) -> None:
    found = co("search", "centuries", "--json").json

    assert list(found) == KEYS
    assert (found["query"], found["state"], found["degraded"], found["backend"]) == ("centuries", "found", [], "hybrid")
    assert (found["searched"]["notes"], found["searched"]["passages"]) == (3, 4)
    assert found["searched"]["fresh_as_of"]
    hit = found["hits"][0]
    assert set(hit) >= HIT_KEYS
    assert (hit["ref"], hit["source"], hit["lines"], hit["tags"]) == ("memory:oak", "memory", [8, 8], ["tree", "old"])
    assert hit["created"] == "2026-01-10T00:00:00Z"
    meta = found["meta"]
    assert (meta["profile"], meta["weights"]) == ("default", {"meaning": 0.7, "words": 0.3})
    assert (meta["candidates"], meta["trust"], meta["took_ms"]) == (4, 1.0, found["took_ms"])
    assert meta["returned"] == len(found["hits"])
    for options in (("--limit", "1"), ("--backend", "grep"), ("--kind", "skill"), ("--as-of", "2026-02-01")):
        found = co("search", "centuries", *options, "--json").json
        assert found["meta"]["returned"] == len(found["hits"]), options


def test_nothing_found_is_exit_code_1_and_says_how_much_was_searched(co: Co) -> None:
    ran = co("search", "zeppelin", "--backend", "fts5")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("Nothing found: 3 notes searched, index fresh as of 20")

    found = co("search", "zeppelin", "--backend", "fts5", "--json")
    assert (found.code, found.json["state"], found.json["hits"]) == (1, "absent", [])


def test_filters_narrow_a_search(co: Co) -> None:
    expected = {
        "": "article:parks memory:elm memory:oak",
        "-n 1": "memory:oak",
        "--source article": "article:parks",
        "--source memory": "memory:elm memory:oak",
        "--tag tree": "memory:elm memory:oak",
        "-t tree -t #OLD": "memory:oak",
        "-t old -t nothing --any-tag": "memory:oak",
        "--category Fact": "memory:oak",
        "--since 2026-03-01 --source memory": "memory:elm",
        "--until 2026-01-10": "memory:oak",
        "--until 2026-01-09": "",
        "--where wood=hard": "memory:oak",
        "--where wood=hard --where category=x": "",
    }

    found = {options: " ".join(sorted(refs(co, "park", *options.split()))) for options in expected}

    found["-n 1"] = expected["-n 1"] if len(found["-n 1"].split()) == 1 else found["-n 1"]
    assert found == expected
    assert refs(co, '"gravel paths"') == ["article:parks"]
    assert refs(co, "gravel", "paths")[0] == "article:parks"
    assert refs(co, "park -intro -gravel -elms") == ["memory:oak"]


def test_a_filter_that_matches_nothing_is_named_with_the_best_match_without_it(co: Co) -> None:
    for options in (("--tag", "nope"), ("--category", "decision"), ("--since", "2090-01-01"), ("--source", "obsidian")):
        ran = co("search", "centuries", *options)
        assert ran.code == 1
        assert f"Without {' '.join(options)} there is Oaks (memory:oak)." in ran.out
    assert co("feedback", "stats", "--json").json["found_nothing"] == [], "nothing was asked of the notes"
    assert "no note passes the filter tag: trees (did you mean tree?)" in co("search", "oaks", "--tag", "trees").out
    assert co("search", "centuries", "--tag", "nope", "--json").json["hits"] == []
    assert len(co("search", '"quarterly revenue"', "--tag", "tree").out.splitlines()) == 1


def test_an_empty_vault_says_how_to_begin_unless_sources_have_notes(co: Co, vault: Vault, tmp_path: Path) -> None:
    for path in vault.notes():
        vault.delete(path)
    empty = co("search", "anything").out
    assert empty.startswith("Nothing found: there are no notes here yet. `co remember TEXT`")
    assert "filter" not in empty
    (tmp_path / "animals").mkdir()
    (tmp_path / "animals" / "zebra.md").write_text("Zebras have stripes.")
    co("add", str(tmp_path / "animals"))

    ran = co("search", "zebra stripes", "--source", "memory")

    assert "no notes here yet" not in ran.out
    assert "Without --source memory there is Zebra (folder:animals/zebra.md" in ran.out


def test_tags_are_listed_with_their_notes_the_most_used_first(co: Co, vault: Vault) -> None:
    never = co("note", "tags", "--no-sync")
    assert (never.code, "`co index sync`" in never.out) == (0, True)

    vault.write("articles/elm.md", "# Elm\n\nTall. #tree #deploy\n")

    assert co("note", "tags").out.splitlines() == ["#tree  3 notes", "#deploy  1 note", "#old  1 note"]
    assert co("note", "tags", "article", "--json").json == {"deploy": 1, "tree": 1}


def test_a_file_saved_a_moment_ago_is_found_unless_no_sync_is_given(co: Co, vault: Vault) -> None:
    assert refs(co, "yews") == []
    vault.write("memories/yew.md", "Yews are evergreen.")

    assert refs(co, "yews", "--no-sync") == []
    assert refs(co, "yews") == ["memory:yew"]


def test_every_backend_answers_and_the_answer_names_it(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in ("grep", "fts5", "hybrid"):
        found = co("search", "centuries", "--backend", backend, "--json").json
        assert (found["hits"][0]["ref"], found["backend"]) == ("memory:oak", backend)
    for options in (("--no-meaning",), ("--weights", "meaning=0,words=1")):
        assert co("search", "centuries", *options, "--json").json["backend"] == "fts5", options
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    assert co("search", "centuries", "--json").json["backend"] == "fts5", "there is nothing to compare meaning with"
    monkeypatch.delenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER")
    (tmp_path / "not-a-folder").write_text("")
    found = co("search", "centuries", "--data-dir", str(tmp_path / "not-a-folder"), "--json").json
    assert (found["hits"][0]["ref"], found["backend"], bool(found["degraded"])) == ("memory:oak", "grep", True)


def test_recall_shows_full_memories_and_no_articles(co: Co, vault: Vault) -> None:
    vault.write(
        "memories/long.md", "# Ash\n\nAshes burn well.\n\n" + "More about the park.\n" * 60 + "\nThe very end.\n"
    )

    assert "  The very end." in co("note", "recall", "ashes", "--backend", "fts5").out
    assert {hit["source"] for hit in co("note", "recall", "park", "--json").json["hits"]} == {"memory"}
    vault.delete("memories/oak.md")
    gone = co("note", "recall", "centuries", "--no-sync", "--backend", "fts5")
    assert "Oaks live for centuries" in gone.out  # what the index has


def test_a_query_of_punctuation_is_answered_in_one_line(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long. 🌳")

    for query in ('""', "?!", "-", "..."):
        assert co("search", "--", query) == (
            1,
            "Nothing found: the query has no letters or digits. `--backend grep` finds single signs, such as `-`.\n",
            "",
        )
    assert "memory:oak" in co("search", "🌳").out


def test_explain_shows_parts_that_add_up_and_what_they_mean(co: Co) -> None:
    out = co("search", "how long do oaks live", "--explain").out

    score, parts = re.search(r"([\d.]+) = (.+)", out).groups()  # type: ignore[union-attr]
    assert sum(float(number) for number in re.findall(r"[\d.]+", parts)) == pytest.approx(float(score), abs=1e-3)
    for name in re.findall(r"[a-z]+", parts):
        assert re.search(rf"^{name} +\w", out, re.MULTILINE), name
    assert re.search(r"confidence [01]\.\d\d that something here", out)


def test_why_explains_a_rank_or_where_a_note_was_lost(co: Co, vault: Vault) -> None:
    vault.write("memories/tax.md", "---\ntitle: Tax\n---\nThe tax return is due in March.")
    vault.write("memories/old.md", "---\nsuperseded_by: oak\n---\nOld oaks in the park.")

    found = co("note", "why", "how long do oaks live", "memory:oak")
    missed = co("note", "why", "oaks", "memory:tax", "--backend", "fts5")
    superseded = co("note", "why", "oaks in the park", "memory:old")
    filtered = co("note", "why", "oaks in the park", "memory:oak", "--tag", "none")
    beyond = co("note", "why", "oaks in the park", "memory:elm", "-n", "1")

    assert found == co("note", "why", "how", "long", "do", "oaks", "live", "memory:oak")
    assert (found.code, "Rank 1 (limit 10)." in found.out, found.out.count("score ")) == (0, True, 1)
    assert (missed.code, superseded.code, filtered.code, beyond.code) == (1, 1, 1, 1)
    assert "lost in the step `candidates`" in missed.out
    assert 'words    not among 2: lacks "oaks"' in missed.out
    assert "lost in the step `validity`" in superseded.out
    assert "superseded by memory:oak" in superseded.out
    assert "lost in the step `filters`" in filtered.out
    assert "lost in the step `limit`" in beyond.out
    assert re.search(r"hint +--limit \d shows it", beyond.out)
    as_json = co("note", "why", "oaks", "memory:oak", "--json").json
    assert {"words", "meaning", "score"} <= {step["name"] for step in as_json["steps"]}


def test_ranking_can_be_chosen(co: Co) -> None:
    for options, signals in (
        ((), {"meaning", "words"}),
        (("--no-meaning",), {"words"}),
        (("--weights", "words=1,meaning=0"), {"words"}),
        (("--weights", "recency=0.2"), {"meaning", "words", "recency"}),
        (("--profile", "agent"), {"meaning", "words", "recency", "importance"}),
        (("--profile", "fresh"), {"meaning", "words", "recency"}),
        (("--profile", "rrf"), {"meaning", "words"}),
    ):
        found = co("search", "old oaks in a park", *options, "--json").json
        assert {name for hit in found["hits"] for name in hit["signals"]} == signals
        assert set(found["meta"]["weights"]) == signals
        assert found["hits"][0]["ref"] == "memory:oak"
    hits = co("search", "very old trees", "--no-words", "--json").json["hits"]
    assert (hits[0]["ref"], any(hit["signals"]["words"] for hit in hits)) == ("memory:oak", False)


def test_settings_and_the_environment_set_the_weights_of_the_default_profile_only(
    co: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weights(*options: str) -> dict[str, float]:
        return co("search", "oaks in the park", *options, "--json").json["meta"]["weights"]

    settings = home / ".config" / "co-cli" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("knowledge_hybrid_vector_weight = 0.2\nknowledge_hybrid_text_weight = 0.8\n")
    assert weights() == {"meaning": 0.2, "words": 0.8}
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT", "0.5")
    assert weights() == {"meaning": 0.5, "words": 0.8}
    assert weights("--weights", "words=0.1") == {"meaning": 0.5, "words": 0.1}
    assert weights("--profile", "fresh") == {"meaning": 0.6, "words": 0.4, "recency": 0.1}
    monkeypatch.setenv("CO_KNOWLEDGE_PROFILE", "agent")
    assert weights() == {"meaning": 0.4, "words": 0.3, "recency": 0.2, "importance": 0.1}


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
def test_hits_below_the_minimum_score_are_left_out(co: Co, backend: str) -> None:
    def scores(*options: str) -> list[float]:
        return [hit["score"] for hit in co("search", "old oaks park", *options, *chosen).json["hits"]]

    chosen = ("--backend", backend, "--json")
    everything = scores()
    least = everything[0] - 0.0001

    assert scores("--min-score", str(least)) == [score for score in everything if score >= least]
    assert co("search", "oaks", "--min-score", "50", *chosen).json["state"] == "absent"


def test_the_profile_seven_returns_all_of_few_matches(co: Co, vault: Vault) -> None:
    for number in range(9):
        vault.write(f"memories/pine{number}.md", f"Pine number {number}.")

    def found(*options: str) -> list[str]:
        return [hit["ref"] for hit in co("search", "pine", *options, "--no-meaning", "--json").json["hits"]]

    seven = ("--profile", "seven", "-n", "4")
    assert (len(found(*seven)), len(found("--profile", "seven", "-n", "5")), len(found("-n", "4"))) == (9, 5, 4)
    assert "Rank 9 (limit 9)" in co("note", "why", "pine", found(*seven)[-1], *seven, "--no-meaning").out
    weights = co("search", "old oaks", "--profile", "seven", "--backend", "fts5", "--json").json["meta"]["weights"]
    assert weights["words"] == pytest.approx(0.35 / 0.9, abs=1e-4)
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)


def test_a_hit_whose_score_rounds_to_zero_is_not_shown() -> None:
    hit = Hit("memory:oak", "memory", "oak.md", "Oak", "Oaks.", (1, 1), 0.004, {"meaning": 0.004}, (), "", ())
    found = SearchResult("oaks", "found", [], "hybrid", Searched(2, 2, None), [replace(hit, score=0.5), hit], 0.1)

    assert [one.score for one in worth_showing(found)] == [0.5]


def test_a_quote_that_is_not_closed_costs_no_result(co: Co, vault: Vault) -> None:
    vault.write("memories/deploys.md", "We deploy on Tuesdays.")

    for query in ('deploy" OR "x', '"deploy', 'deploy -"never x', '"', '"" "'):
        for backend in ("hybrid", "fts5", "grep"):
            ran = co("search", query, "--backend", backend, "--json")
            if "deploy" in query:
                assert [hit["ref"] for hit in ran.json["hits"]] == ["memory:deploys"], (query, backend)
            else:
                assert ran.code in (0, 1), (query, backend)


def recency(ref: str, profile: str = "agent") -> float:
    """Of a note, by a search that is not counted."""
    with KnowledgeBase.open() as kb:
        hits = kb.search("oaks and elms", profile=profile).hits
    return next(hit.signals["recency"] for hit in hits if hit.ref == ref)


def test_the_profile_agent_counts_use_as_recent_unless_use_is_not_counted(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("oak", "elm", "yew"):
        vault.write(f"memories/{name}.md", f"---\ncreated: 2024-01-01\n---\nOaks and elms: {name}.")
    co("index", "sync")
    before = recency("memory:oak")
    assert co("show", "oak").code == 0
    assert refs(co, "yew oaks elms")[0] == "memory:yew"
    co("feedback", "stats")  # reads the spool

    opened, first, unused = (recency(f"memory:{name}") for name in ("oak", "yew", "elm"))
    assert opened == pytest.approx(first, abs=1e-3)
    assert opened / 0.2 == pytest.approx((unused / 0.2) ** 0.5, abs=1e-2), "half of its age"
    assert unused == pytest.approx(before, abs=1e-3), "a note that was found, but not first"
    assert recency("memory:oak", "fresh") == recency("memory:elm", "fresh")
    monkeypatch.setenv("CO_COUNT_USE", "off")
    assert recency("memory:oak") == pytest.approx(unused, abs=1e-3)


def test_the_weights_of_the_profile_agent_are_a_setting(co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    asked = ("search", "oaks", "--profile", "agent", "--json")
    standard = {"meaning": 0.4, "words": 0.3, "recency": 0.2, "importance": 0.1}
    assert co(*asked).json["meta"]["weights"] == standard

    monkeypatch.setenv("CO_KNOWLEDGE_AGENT_WEIGHTS", "meaning=0.1,recency=0.6")
    assert co(*asked).json["meta"]["weights"] == {**standard, "meaning": 0.1, "recency": 0.6}
    assert co(*asked, "--weights", "recency=0.5").json["meta"]["weights"]["recency"] == 0.5
    assert co("search", "oaks", "--json").json["meta"]["weights"] == {"meaning": 0.7, "words": 0.3}

    for wrong, said in (("recency", "NAME=NUMBER"), ("age=0.1", "must be for one of"), ("words=0,meaning=0", "both 0")):
        monkeypatch.setenv("CO_KNOWLEDGE_AGENT_WEIGHTS", wrong)
        ran = co(*asked)
        assert (ran.code, "CO_KNOWLEDGE_AGENT_WEIGHTS: knowledge_agent_weights: " in ran.err, said in ran.err) == (
            2,
            True,
            True,
        )


def test_a_query_can_come_from_standard_input(co: Co, vault: Vault) -> None:
    vault.write("memories/broker.md", "Kafka has nine partitions.")

    assert "memory:broker" in co("search", stdin="kafka\n").out
    assert "memory:broker" in co("note", "recall", stdin="kafka partitions\n").out
    assert co("search", stdin="\n").err == "co: the query is empty: say what to look for\n"


def test_a_memory_whose_title_is_its_text_is_shown_once(co: Co) -> None:
    text = "Hannah wants tea."
    ref = co("remember", text, "--json").json["ref"]

    for command in (("search", "hannah tea"), ("note", "recall", "hannah tea"), ("show", ref)):
        assert co(*command).out.count("Hannah wants tea") == 1, command
    co("edit", ref, "--body", "Hannah wants tea. And milk.")
    assert "And milk." in co("show", ref).out


def test_in_a_folder_without_notes_a_search_names_the_vault_that_was_used_last(
    co: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    for name in ("first", "last"):
        (home / name).mkdir()
        monkeypatch.chdir(home / name)
        co("init")
        co("remember", f"The {name} project ships on Friday.")
    monkeypatch.chdir(home)

    said = co("search", "when do we ship").out

    assert f"The vault that was used last is {home / 'last/.co-cli/knowledge'}: `co --vault " in said
