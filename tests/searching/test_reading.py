"""The reader: it orders the first results where words and vectors are not sure, alike for all, and is never needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from co_cli.embedding.model_file import FOLDER
from co_cli.embedding.reader import CrossEncoder, best_window
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.hits import SearchResult
from co_cli.ground.paths import sample_vault
from co_cli.server.web_app import Access, Site
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault
from tests.mcp.talking import Place
from tests.server.conftest import signed_in

QUESTION = "what drug is our mother on?"
ANSWER = "memory:mamma"
NOTES = {
    "mamma": "Mamma takes apixaban, five milligrams at eight and at eight, since the flutter in 2023.",
    "blood": "Tobi gave blood in March; the next date is in June.",
    "computer": "The motherboard of the old computer is broken. Ours is still under warranty.",
    "paint": "Thinner for the oil paint is in the shed, top shelf.",
    "aunt": "Our aunt comes for Mother's Day, with the dog.",
    "cash-box": "The cash box is counted by two people every Friday evening.",
}


@pytest.fixture
def reading(vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> KnowledgeBase:
    """The notes above, with the reader that new installations have."""
    monkeypatch.delenv("CO_KNOWLEDGE_READER")
    for name, text in NOTES.items():
        vault.write(f"memories/{name}.md", text)
    kb = KnowledgeBase.open(vault.root, data_dir)
    kb.sync()
    return kb


def refs(found: SearchResult) -> list[str]:
    return [hit.ref for hit in found.hits]


def test_the_reader_lifts_an_answer_that_words_and_vectors_put_low(reading: KnowledgeBase) -> None:
    unread, read = (reading.search(QUESTION, read=wanted) for wanted in (False, None))

    assert refs(unread).index(ANSWER) > 0
    assert refs(read).index(ANSWER) == 0
    assert max(read.hits, key=lambda hit: hit.signals.get("reader", 0.0)).ref == ANSWER
    assert read.meta["read"] == len(NOTES)
    assert unread.meta["read"] == 0
    assert "reader 0." in reading.why(QUESTION, ANSWER).steps[-1].text


@pytest.mark.parametrize(("milliseconds", "read"), [("500", 1), ("1500", 2), ("60000", len(NOTES))])
def test_what_was_not_read_in_time_keeps_its_place(
    reading: KnowledgeBase, co: Co, monkeypatch: pytest.MonkeyPatch, milliseconds: str, read: int
) -> None:
    """And the answer says how far the reader came."""
    unread = refs(reading.search(QUESTION, read=False))
    seconds = count()  # a clock that is a second later each time somebody looks
    clock = SimpleNamespace(thread_time=lambda: float(next(seconds)), monotonic=time.monotonic)
    monkeypatch.setattr("co_cli.embedding.reader.time", clock)
    monkeypatch.setattr("co_cli.embedding.reader.pool", lambda: ThreadPoolExecutor(1))
    monkeypatch.setenv("CO_KNOWLEDGE_READER_MS", milliseconds)

    found = co("search", QUESTION, "--json").json

    late = [f"read {read} of {len(NOTES)}: there was no time for more (`knowledge_reader_ms`)"]
    order = [hit["ref"] for hit in found["hits"]]
    assert found["meta"]["read"] == read
    assert found["degraded"] == (late if read < len(NOTES) else [])
    assert sorted(order[:read]) == sorted(unread[:read])
    assert order[read:] == unread[read:]
    assert not any("reader" in hit["signals"] for hit in found["hits"][read:])


def test_confidence_follows_what_the_reader_says(reading: KnowledgeBase) -> None:
    unread, read = (
        [reading.search(query, read=wanted) for query in (QUESTION, "who painted the church ceiling in Rome")]
        for wanted in (False, True)
    )

    # .83 and .44 without the reader, .82 and .03 with it
    assert [found.state for found in read] == ["found", "absent"]
    assert (read[0].confidence or 0) > 0.75
    assert (read[1].confidence or 0) < (unread[1].confidence or 0) / 3


def test_a_note_that_is_called_exactly_so_is_not_read(reading: KnowledgeBase) -> None:
    found = reading.search("cash box")

    assert refs(found)[0] == "memory:cash-box"
    assert found.meta["read"] == 0


def test_agents_and_the_server_read_by_default(reading: KnowledgeBase) -> None:
    asked = signed_in(Site(reading, Access(), [])).get("/api/v1/search", params={"q": QUESTION}).json()

    assert (asked["meta"]["read"] > 0, asked["hits"][0]["ref"]) == (True, ANSWER)
    for tool in ("recall_memory", "search_knowledge"):
        assert Toolbox(reading).call(tool, {"query": QUESTION}).data["hits"][0]["ref"] == ANSWER


@pytest.mark.slow
def test_mcp_reads_by_default(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, text in NOTES.items():
        place.vault.write(f"memories/{name}.md", text)
    del place.environment["CO_KNOWLEDGE_READER"]
    server = place.start(CO_KNOWLEDGE_READER_MS="60000")
    server.initialise()

    answer = server.call("recall_memory", query=QUESTION)["content"][0]["text"]

    assert server.end()[0] == 0
    assert re.findall('<note ref="([^"]+)"', answer)[0] == ANSWER


def test_co_eval_reads_unless_a_backend_is_named(reading: KnowledgeBase, co: Co, vault: Vault) -> None:
    vault.write("questions.jsonl", json.dumps({"question": QUESTION, "answers": [ANSWER]}) + "\n")

    rows = co("eval", "--method", "co", "--method", "co:hybrid", "--json").json

    first = {row["method"]: row["mrr10"] for row in rows}
    assert first["co"] == 1 > first["co:hybrid"] > 0


@pytest.mark.parametrize("damage", ["cut short", "one byte changed", "missing", "another graph"])
def test_without_its_file_the_search_answers_in_the_order_without_it(
    reading: KnowledgeBase, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    if damage == "another graph":
        shutil.copy(Path(FOLDER, "reader.bin"), folder)
        shutil.copy(Path(FOLDER, "encoder.onnx"), folder / "reader.onnx")
    elif damage != "missing":
        weights = bytearray(Path(FOLDER, "reader.bin").read_bytes())
        weights[-1_000] ^= 1
        (folder / "reader.bin").write_bytes(weights[:1_000_000] if damage == "cut short" else weights)
    reading.vault = replace(reading.vault, reader=CrossEncoder(str(folder)))

    found = reading.search(QUESTION)

    assert refs(found) == refs(reading.search(QUESTION, read=False))
    assert [reason for reason in found.degraded if "without the reader" in reason and "pip install" in reason]


@pytest.mark.medium
def test_the_command_line_reads_when_it_is_not_sure_or_asked_to(
    reading: KnowledgeBase, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = (("--no-read",), (), ("--read",))
    plain, read, everything = (co("search", QUESTION, *given, "--json").json for given in flags)

    assert plain["meta"]["read"] == 0
    assert read["hits"] == everything["hits"]
    sure = [co("search", "paint shed", *given, "--json").json["meta"]["read"] > 0 for given in flags]
    assert sure == [False, False, True]
    assert read["meta"]["read"] == len(NOTES)
    assert read["hits"][0]["ref"] == ANSWER
    monkeypatch.setenv("CO_KNOWLEDGE_READER", "off")
    assert co("search", QUESTION, "--read", "--json").json["meta"]["read"] == 0


@pytest.mark.medium
@pytest.mark.parametrize("problem", [ModuleNotFoundError, ImportError])
def test_without_an_onnxruntime_that_loads_nothing_is_read_and_the_answer_says_so(
    reading: KnowledgeBase, co: Co, tmp_path: Path, problem: type[ImportError]
) -> None:
    (tmp_path / "onnxruntime.py").write_text(f"raise {problem.__name__}(__name__)")

    found = co.process("search", QUESTION, "--read", "--json", env={"PYTHONPATH": str(tmp_path)}).json

    assert found["meta"]["read"] == 0
    assert [hit["ref"] for hit in found["hits"]] == refs(reading.search(QUESTION, read=False))
    assert [reason for reason in found["degraded"] if "onnxruntime cannot be loaded" in reason]


@pytest.mark.slow
def test_where_onnxruntime_is_not_installed_search_uses_static_vectors_and_only_the_doctor_says_so(
    reading: KnowledgeBase, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as where no wheel exists

    found = co("search", QUESTION, "--read", "--json").json
    nothing = co("search", "xylophone", "--backend", "fts5", "--json").json

    assert (found["degraded"], found["meta"]["read"], nothing["state"]) == ([], 0, "absent")
    assert [hit["ref"] for hit in found["hits"]] == refs(reading.search(QUESTION, read=False))
    (said,) = [finding for finding in co("doctor", "--json").json if finding["check"] == "models"]
    assert "onnxruntime is not installed" in said["text"]
    assert said["level"] == "ok", "nothing can be done about it"


def test_a_long_passage_is_read_where_it_matches() -> None:
    asked, filler = [5_000, 6_000, 2_003], [2_054] * 300

    window = best_window(asked, [*filler, 5_000, 7_000, 6_000, *filler], 100)

    assert 7_000 in window
    assert len(window) <= 100


@pytest.mark.medium
def test_a_score_depends_on_nothing_but_question_and_text() -> None:
    texts = [text * times for text in NOTES.values() for times in (1, 9)]
    together = CrossEncoder()
    alone = CrossEncoder()
    some_known = CrossEncoder()
    some_known.scores(QUESTION, texts[::3])

    found = together.scores(QUESTION, texts)

    assert found == [alone.scores(QUESTION, [text])[0] for text in texts]
    assert found == some_known.scores(QUESTION, texts)
    known = len(texts[::3])
    assert (some_known.pairs_read, some_known.pairs_kept) == (len(texts), known), "as /metrics counts them"
    assert some_known.seconds_read > 0


@pytest.mark.slow
def test_a_busy_machine_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`BUSY_QUESTIONS=200` in the environment asks all questions of the sample vault instead of every 18th."""
    monkeypatch.delenv("CO_KNOWLEDGE_READER")
    notes = shutil.copytree(sample_vault(), tmp_path / "notes")
    lines = (notes / "questions.jsonl").read_text().splitlines()
    step = len(lines) // int(os.environ.get("BUSY_QUESTIONS", "12"))
    asked = [json.loads(line)["question"] for line in lines[::step]]

    def answers() -> list[list[tuple[str, float]]]:
        with KnowledgeBase.open(notes, tmp_path / "data") as kb:
            kb.sync()
            found = [kb.search(question) for question in asked]
        assert not any(result.degraded for result in found)
        assert sum(result.meta["read"] for result in found) > len(asked)
        return [[(hit.ref, hit.score) for hit in result.hits] for result in found]

    idle = answers()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        assert answers() == idle
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.parametrize("options", [{"profile": "rrf"}, {"profile": "agent"}, {"weights": {"words": 0.5}}])
def test_a_named_formula_is_not_read_unless_asked(reading: KnowledgeBase, options: dict[str, Any]) -> None:
    assert reading.search(QUESTION, **options).meta["read"] == 0
    assert reading.search(QUESTION, read=True, **options).meta["read"] == len(NOTES)


def test_scores_lie_between_0_and_1_and_do_not_depend_on_what_else_was_read(
    reading: KnowledgeBase, vault: Vault
) -> None:
    before = {hit.ref: hit.signals["reader"] for hit in reading.search(QUESTION).hits}
    for query in (QUESTION, "cash box", "paint shed", "Thinner for the oil paint is in the shed, top shelf."):
        assert all(0 <= hit.score <= 1 for hit in reading.search(query, read=True).hits), query
    vault.write("memories/pills.md", "Mother's pills are apixaban; she takes two every day.")
    reading.sync()

    after = {hit.ref: hit.signals["reader"] for hit in reading.search(QUESTION).hits}
    assert {ref: after[ref] for ref in before} == before


GERMAN = {
    "mutter": "Mama nimmt seit dem Vorhofflattern zweimal am Tag ein Mittel gegen Gerinnsel, um acht und um acht.",
    "keller": "Im Keller steht das Wasser nach jedem starken Regen, die Pumpe ist im Schuppen.",
}


def test_a_question_in_another_language_is_answered_without_the_reader(reading: KnowledgeBase, vault: Vault) -> None:
    for name, text in GERMAN.items():
        vault.write(f"memories/{name}.md", text)
    reading.sync()

    for query in ("was nimmt die Mutter gegen Gerinnsel ein?", "Wasser Keller Regen Überschwemmung"):
        asked, plain = (reading.search(query, read=read) for read in (True, False))
        assert (asked.meta["read"], asked.degraded) == (0, [])
        assert [(hit.ref, hit.score) for hit in asked.hits] == [(hit.ref, hit.score) for hit in plain.hits], query


def test_a_note_in_another_language_is_not_read_and_not_behind_all_that_were(
    reading: KnowledgeBase, vault: Vault
) -> None:
    for name, text in GERMAN.items():
        vault.write(f"memories/{name}.md", f"{text} Apixaban.")
    reading.sync()

    found = reading.search("who of us is on apixaban, and for which illness?")

    signals = {hit.ref: hit.signals["reader"] for hit in found.hits}
    german = [signals.pop(f"memory:{name}") for name in GERMAN]
    assert found.meta["read"] == len(signals) >= 2
    assert all(fmean(signals.values()) < signal < max(signals.values()) for signal in german)


@pytest.mark.parametrize(("said", "text", "read"), [("de", NOTES["mamma"], False), ("en", GERMAN["mutter"], True)])
def test_the_frontmatter_decides_whether_a_note_is_read(
    reading: KnowledgeBase, vault: Vault, said: str, text: str, read: bool
) -> None:
    question = "who of us is on apixaban, and for which illness?"
    before = reading.search(question).meta["read"]
    vault.write("memories/said.md", f"---\nlanguage: {said}\n---\n{text} Apixaban.")
    reading.sync()

    found = reading.search(question)

    assert "memory:said" in refs(found)
    assert found.meta["read"] == before + read
