"""`co search` and `co note recall`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from co_cli.values import Hit, Searched, SearchResult, worth_showing
from tests.command import Co
from tests.vault import Vault

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


def test_a_person_sees_title_ref_snippet_tags_and_age(co: Co) -> None:
    ran = co("search", "centuries", "--backend", "fts5")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "Oaks  memory:oak"
    assert lines[1] == "  Oaks live for centuries in the park."
    assert lines[2].startswith("  #tree #old · ")
    assert "ago" in lines[2] or "today" in lines[2]


def test_a_program_gets_one_object_with_the_agreed_names(co: Co) -> None:
    found = co("search", "centuries", "--json").json

    assert list(found) == KEYS
    assert (found["query"], found["state"], found["degraded"], found["backend"]) == ("centuries", "found", [], "hybrid")
    assert found["searched"]["notes"] == 3
    assert found["searched"]["passages"] == 4
    assert found["searched"]["fresh_as_of"]
    hit = found["hits"][0]
    assert set(hit) >= HIT_KEYS
    assert (hit["ref"], hit["source"], hit["lines"], hit["tags"]) == ("memory:oak", "memory", [8, 8], ["tree", "old"])
    assert hit["created"] == "2026-01-10T00:00:00Z"
    meta = found["meta"]
    assert (meta["profile"], meta["weights"]) == ("default", {"meaning": 0.7, "words": 0.3})
    assert meta["candidates"] == 4
    assert (meta["trust"], meta["took_ms"]) == (1.0, found["took_ms"])


def test_nothing_found_is_exit_code_1_and_says_how_much_was_searched(co: Co) -> None:
    ran = co("search", "zeppelin", "--backend", "fts5")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("Nothing found: 3 notes searched, index fresh as of 20")

    found = co("search", "zeppelin", "--backend", "fts5", "--json")
    assert (found.code, found.json["state"], found.json["hits"]) == (1, "absent", [])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["article:parks", "memory:elm", "memory:oak"]),
        (("--source", "article"), ["article:parks"]),
        (("--source", "memory"), ["memory:elm", "memory:oak"]),
        (("--tag", "tree"), ["memory:elm", "memory:oak"]),
        (("-t", "tree", "-t", "#OLD"), ["memory:oak"]),
        (("-t", "old", "-t", "nothing", "--any-tag"), ["memory:oak"]),
        (("--category", "Fact"), ["memory:oak"]),
        (("--since", "2026-03-01", "--source", "memory"), ["memory:elm"]),
        (("--until", "2026-01-10"), ["memory:oak"]),
        (("--until", "2026-01-09"), []),
        (("--where", "wood=hard"), ["memory:oak"]),
        (("--where", "wood=hard", "--where", "category=x"), []),
    ],
)
def test_filters_narrow_a_search(co: Co, options: tuple[str, ...], expected: list[str]) -> None:
    assert sorted(refs(co, "park", *options)) == expected


def test_limit_cuts_the_list(co: Co) -> None:
    assert len(refs(co, "park", "-n", "1")) == 1


def test_a_phrase_and_a_refused_word(co: Co) -> None:
    assert refs(co, '"gravel paths"') == ["article:parks"]
    assert refs(co, "park -intro -gravel -elms") == ["memory:oak"]


def test_words_need_no_quotes(co: Co) -> None:
    assert refs(co, "gravel", "paths")[0] == "article:parks"


def test_a_file_saved_a_moment_ago_is_found_unless_told_not_to_look(co: Co, vault: Vault) -> None:
    assert refs(co, "yews") == []
    vault.write("memories/yew.md", "Yews are evergreen.")

    assert refs(co, "yews", "--no-sync") == []
    assert refs(co, "yews") == ["memory:yew"]


@pytest.mark.parametrize("backend", ["grep", "fts5", "hybrid"])
def test_every_backend_answers(co: Co, backend: str) -> None:
    found = co("search", "centuries", "--backend", backend, "--json")

    assert found.json["hits"][0]["ref"] == "memory:oak"
    assert found.json["backend"] == backend


def test_recall_shows_memories_whole_and_no_articles(co: Co, vault: Vault) -> None:
    vault.write(
        "memories/long.md", "# Ash\n\nAshes burn well.\n\n" + "More about the park.\n" * 60 + "\nThe very end.\n"
    )

    ran = co("note", "recall", "ashes", "--backend", "fts5")

    assert ran.code == 0
    assert "  The very end." in ran.out
    assert {hit["source"] for hit in co("note", "recall", "park", "--json").json["hits"]} == {"memory"}


def test_recall_of_a_note_that_vanished_shows_what_the_index_has(co: Co, vault: Vault) -> None:
    co("index", "sync")
    vault.delete("memories/oak.md")

    ran = co("note", "recall", "centuries", "--no-sync", "--backend", "fts5")

    assert ran.code == 0
    assert "Oaks live for centuries" in ran.out


def test_without_a_usable_index_the_files_answer_and_say_so(co: Co, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "not-a-folder").write_text("")
    ran = co("search", "centuries", "--data-dir", str(tmp_path / "not-a-folder"), "--json")

    assert ran.code == 0
    assert ran.json["hits"][0]["ref"] == "memory:oak"
    assert ran.json["backend"] == "grep"
    assert ran.json["degraded"]


@pytest.mark.parametrize(
    "query", ["AND", "NEAR(", '"', "-", "*", "^x", "a:b", "(((", "🎉", "' or 1=1 --", "\\", "-oak", "x" * 30_000]
)
def test_whatever_is_typed_is_a_query(co: Co, query: str) -> None:
    ran = co("search", "--", query)

    assert ran.code in (0, 1)
    assert ran.err == ""


def test_explain_shows_parts_that_add_up_and_what_they_mean(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oaks\n---\nOaks live for centuries.")

    out = co("search", "how long do oaks live", "--explain").out

    score, parts = re.search(r"([\d.]+) = (.+)", out).groups()  # type: ignore[union-attr]
    assert sum(float(number) for number in re.findall(r"[\d.]+", parts)) == pytest.approx(float(score), abs=1e-3)
    for name in re.findall(r"[a-z]+", parts):
        assert re.search(rf"^{name} +\w", out, re.MULTILINE), name
    assert re.search(r"confidence [01]\.\d\d that something here", out)


def test_why_follows_a_note_through_a_search(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oaks\n---\nOaks live for centuries.")
    vault.write("memories/tax.md", "---\ntitle: Tax\n---\nThe tax return is due in March.")

    found = co("note", "why", "how long do oaks live", "memory:oak")
    unquoted = co("note", "why", "how", "long", "do", "oaks", "live", "memory:oak")
    missed = co("note", "why", "oaks", "memory:tax", "--backend", "fts5")
    as_json = json.loads(co("note", "why", "oaks", "memory:oak", "--json").out)

    assert (found.code, missed.code) == (0, 1)
    assert unquoted == found
    assert "Rank 1 (limit 10)." in found.out
    assert "Not in the answer: lost in the step `candidates`." in missed.out
    assert 'words    not among 1: lacks "oaks"' in missed.out
    assert 'words    none found: lacks "zebras"' in co("note", "why", "zebras", "memory:tax").out
    assert as_json["rank"] == 1
    assert {"words", "meaning", "score"} <= {step["name"] for step in as_json["steps"]}


@pytest.mark.parametrize(
    ("options", "signals"),
    [
        ((), {"meaning", "words"}),
        (("--no-meaning",), {"words"}),
        (("--weights", "words=1,meaning=0"), {"words"}),
        (("--weights", "recency=0.2"), {"meaning", "words", "recency"}),
        (("--profile", "agent"), {"meaning", "words", "recency", "importance"}),
        (("--profile", "fresh"), {"meaning", "words", "recency"}),
        (("--profile", "rrf"), {"meaning", "words"}),
    ],
)
def test_ranking_can_be_chosen(co: Co, options: tuple[str, ...], signals: set[str]) -> None:
    found = co("search", "old oaks in a park", *options, "--json").json

    assert {name for hit in found["hits"] for name in hit["signals"]} == signals
    assert set(found["meta"]["weights"]) == signals
    assert found["hits"][0]["ref"] == "memory:oak"


def test_without_words_meaning_alone_ranks(co: Co) -> None:
    hits = co("search", "very old trees", "--no-words", "--json").json["hits"]

    assert hits[0]["ref"] == "memory:oak"
    assert not any(hit["signals"]["words"] for hit in hits)
    assert co("search", "oaks", "--no-words", "--no-meaning").code == 2
    assert co("search", "oaks", "--no-words", "--backend", "fts5").code == 2


def test_weights_scale_their_signals(co: Co) -> None:
    def signals(*options: str) -> dict[str, float]:
        hit = co("search", "oaks in the park", *options, "--json").json["hits"][0]
        return {name: value for name, value in hit["signals"].items() if name != "name"}

    given = signals("--weights", "meaning=0.35,words=0.6")
    plain = signals()

    assert given["words"] == pytest.approx(2 * plain["words"], abs=2e-4)
    assert given["meaning"] == pytest.approx(plain["meaning"] / 2, abs=2e-4)


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
def test_a_least_score_leaves_out_what_has_less(co: Co, backend: str) -> None:
    def scores(*options: str) -> list[float]:
        return [hit["score"] for hit in co("search", "old oaks park", *options, *chosen).json["hits"]]

    chosen = ("--backend", backend, "--json")
    everything = scores()
    least = everything[0] - 0.0001

    assert scores("--min-score", str(least)) == [score for score in everything if score >= least]
    assert co("search", "oaks", "--min-score", "50", *chosen).json["state"] == "absent"


@pytest.mark.parametrize("wrong", ["words", "words=much", "vector=0.5", "words=2", "words=0,meaning=0"])
def test_weights_that_make_no_sense_are_refused_before_anything_is_searched(co: Co, wrong: str) -> None:
    ran = co("search", "oaks", "--weights", wrong)

    assert (ran.code, ran.out) == (2, "")
    assert "weight" in ran.err or "words and meaning" in ran.err


def test_seven_returns_all_of_few_matches_where_the_limit_would_drop_most(co: Co, vault: Vault) -> None:
    for number in range(9):
        vault.write(f"memories/pine{number}.md", f"Pine number {number}.")

    def count(*options: str) -> int:
        return len(co("search", "pine", *options, "--no-meaning", "--json").json["hits"])

    assert count("--profile", "seven", "-n", "4") == 9
    assert count("--profile", "seven", "-n", "5") == 5
    assert count("-n", "4") == 4
    assert (
        "Rank 9 (limit 9)" in co("note", "why", "pine", _last(co), "--profile", "seven", "-n", "4", "--no-meaning").out
    )


def _last(co: Co) -> str:
    return co("search", "pine", "--profile", "seven", "-n", "4", "--no-meaning", "--json").json["hits"][-1]["ref"]


def test_without_vectors_seven_gives_words_the_weight_of_both(co: Co) -> None:
    weights = co("search", "old oaks", "--profile", "seven", "--backend", "fts5", "--json").json["meta"]["weights"]

    assert weights["words"] == pytest.approx(0.35 / 0.9, abs=1e-4)
    assert "meaning" not in weights
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)


def test_weak_matches_are_labelled(co: Co, vault: Vault) -> None:
    vault.write("memories/tax.md", "The tax return is due in March.")

    out = co("search", "how long do oaks live").out

    weak = [line for line in out.splitlines() if "weak match" in line]
    assert weak
    assert "weak match" not in out.split("\n\n")[0], "the answer is none"
    assert co("search", "how long do oaks live", "--json").json["hits"][0]["weak"] is False


def test_why_reads_filters_validity_and_limits_from_the_same_search(co: Co, vault: Vault) -> None:
    vault.write("memories/old.md", "---\nsuperseded_by: oak\n---\nOld oaks in the park.")

    superseded = co("note", "why", "oaks in the park", "memory:old")
    filtered = co("note", "why", "oaks in the park", "memory:oak", "--tag", "none")
    beyond = co("note", "why", "oaks in the park", "memory:elm", "-n", "1")

    assert (superseded.code, filtered.code, beyond.code) == (1, 1, 1)
    assert "lost in the step `validity`" in superseded.out
    assert "superseded by memory:oak" in superseded.out
    assert "lost in the step `filters`" in filtered.out
    assert "lost in the step `limit`" in beyond.out
    assert re.search(r"hint +--limit \d shows it", beyond.out)
    assert re.search(r"score .*: meaning 0\.\d+ \+ words 0\.\d+ = 0\.\d+", beyond.out)


def test_why_shows_the_score_once(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    assert co("note", "why", "oaks", "memory:oak").out.count("score ") == 1


def test_a_query_without_letters_and_digits_is_answered_in_one_line(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long. 🌳")
    vault.write("memories/elm.md", "Elms fall ill.")
    answers = {query: co("search", "--", query) for query in ('""', "🌳", "?!", "-", "...")}

    assert {query: ran.code for query, ran in answers.items()} == dict.fromkeys(answers, 1)
    assert {ran.out.replace("\n", " ").strip() for ran in answers.values()} == {
        "Nothing found: the query has no letters or digits. `--backend grep` searches for other characters."
    }
    assert "memory:oak" in co("search", "--backend", "grep", "🌳").out


def test_a_hit_whose_score_rounds_to_zero_is_not_shown() -> None:
    hit = Hit("memory:oak", "memory", "oak.md", "Oak", "Oaks.", (1, 1), 0.004, {"meaning": 0.004}, (), "", ())
    found = SearchResult("oaks", "found", [], "hybrid", Searched(2, 2, None), [hit._replace(score=0.5), hit], 0.1)

    assert [one.score for one in worth_showing(found)] == [0.5]


def test_mistakes_in_options_fit_in_80_columns(co: Co, vault: Vault) -> None:
    for arguments in (("--since", "florb"), ("--backend", "florb"), ("--profile", "florb"), ("--limit", "x")):
        ran = co("search", "oaks", *arguments)
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert len(ran.err) <= 81, ran.err
