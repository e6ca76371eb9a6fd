"""What is asked is counted and written down, as far as the settings allow, and never without bound."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from co_cli.activity import Activity, query_log
from co_cli.activity.background import BackgroundWriter
from co_cli.activity.events import FULL, MOST, SPOOL, Searched, append
from co_cli.activity.folding import fold_spool, read_line, waiting
from co_cli.activity.query_log import DAY, bucket_of, log_searches, middle_of
from co_cli.activity.statistics import asking, quantile
from tests.activity.conftest import NOON, Clock, answer, rows
from tests.vault import Vault


def logged(root: str, number: int, at: float = NOON, **other: object) -> Searched:
    search = Searched(root, at, "python", f"question {number}", "hybrid", "found", 1, 5.0, None, (), ())
    return search._replace(**other)  # type: ignore[arg-type]


def test_a_search_is_written_down_with_what_it_found(activity: Activity, vault: Vault) -> None:
    activity.door = "mcp"
    activity.searched(answer(vault.root, "How old do oaks get?", "oak", "elm", took_ms=12.5))
    activity.searched(answer(vault.root, "zebras", degraded=["answered by words"]))

    assert rows(activity, "select at, door, backend, state, hits, took_ms, degraded, results, text from queries "
                "join questions on questions.id = question_id order by queries.id") == [
        (NOON, "mcp", "hybrid", "found", 2, 12.5, None, '[["memory:oak", 0.9], ["memory:elm", 0.8]]',
         "How old do oaks get?"),
        (NOON, "mcp", "hybrid", "absent", 0, 5.0, "answered by words", "[]", "zebras"),
    ]  # fmt: skip


def test_each_hit_counts_as_a_recall_of_its_note(activity: Activity, vault: Vault, clock: Clock) -> None:
    activity.searched(answer(vault.root, "oaks", "oak", "elm"))
    clock.now += 60
    activity.searched(answer(vault.root, "old oaks", "oak"))
    activity.opened(str(vault.root / "memories" / "elm.md"))

    assert rows(activity, "select path, recalls, recalled, opens, opened from uses "
                "join documents on documents.id = document_id order by path") == [
        ("memories/elm.md", 1, NOON, 1, NOON + 60),
        ("memories/oak.md", 2, NOON + 60, 0, None),
    ]  # fmt: skip


def test_of_an_absent_answer_only_what_a_door_shows_counts(activity: Activity, vault: Vault) -> None:
    found = answer(vault.root, "zebras", *(f"note-{number}" for number in range(10)), state="absent")
    far = [hit._replace(signals={"meaning": 0.1}) for hit in found.hits]

    activity.searched(found._replace(hits=far))

    assert rows(activity, "select count(*) from uses") == [(3,)]


def test_what_is_read_in_place_counts_for_the_folder_it_is_in(activity: Activity, vault: Vault, tmp_path: Path) -> None:
    found = answer(vault.root, "deploy", "oak")
    beside = str(tmp_path / "handbook")
    inside = found.hits[0]._replace(ref="folder:handbook/deploy.md#L1-4", path=f"{beside}/deploy.md", source="folder")

    activity.searched(found._replace(hits=[inside]), [beside])

    assert rows(activity, "select root, path from uses join documents on documents.id = document_id "
                "join vaults on vaults.id = vault_id") == [(beside, "deploy.md")]  # fmt: skip


def test_case_and_spacing_do_not_make_another_question(activity: Activity, vault: Vault) -> None:
    for text in ("How do we deploy", "how do  we deploy", "HOW DO WE DEPLOY\n"):
        activity.searched(answer(vault.root, text, "oak"))

    assert rows(activity, "select text, asked from questions") == [("How do we deploy", 3)]


def test_no_text_leaves_out_the_words_and_what_they_found(data_dir: Path, vault: Vault) -> None:
    for brief in (False, True):
        with Activity(str(data_dir), str(vault.root), "no-text", brief=brief) as activity:
            activity.searched(answer(vault.root, "my secret illness", "illness", degraded=["the file illness.md"]))
            if brief:
                activity.flush()
                assert b"secret" not in (data_dir / SPOOL).read_bytes()
    with Activity(str(data_dir), str(vault.root)) as activity:
        fold_spool(activity.database, str(data_dir))
        found = rows(activity, "select question_id, results, degraded, state, took_ms from queries")
        assert found == [(None, None, "something", "found", 5.0)] * 2
        assert rows(activity, "select count(*) from questions") == [(0,)]
    assert not any(b"secret" in path.read_bytes() for path in data_dir.iterdir())


def test_off_writes_no_search_down_and_still_counts_recalls_unless_that_is_off_too(
    data_dir: Path, vault: Vault
) -> None:
    with Activity(str(data_dir), str(vault.root), "off") as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        assert rows(
            activity, "select (select count(*) from queries), (select count(*) from days), recalls from uses"
        ) == [(0, 0, 1)]
    with Activity(str(data_dir / "other"), str(vault.root), "off", use=False) as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        activity.opened(str(vault.root / "memories" / "oak.md"))
    assert not (data_dir / "other").exists()


def test_a_query_of_any_bytes_is_logged(activity: Activity, data_dir: Path, vault: Vault) -> None:
    texts = ["lone \ud83d surrogate", "nul \0 byte", "quote ' \" \\ line\nbreak \u2028", "漢字 🌳", "x" * 5000]
    for text in texts:
        activity.searched(answer(vault.root, text, "oak"))
    with Activity(str(data_dir), str(vault.root), brief=True) as brief:
        for text in texts:
            brief.searched(answer(vault.root, text, "oak"))
    assert activity.flush()
    fold_spool(activity.database, str(data_dir))

    assert rows(activity, "select asked from questions") == [(2,)] * len(texts)
    assert rows(activity, "select max(length(text)) from questions") == [(1000,)]


def test_the_log_is_bounded_in_rows_and_the_oldest_go_first(activity: Activity) -> None:
    with activity.database.writing() as connection:
        for start in range(0, 1000, 100):
            log_searches(connection, [logged("/vault", n) for n in range(start, start + 100)], most_rows=300)

    assert rows(activity, "select count(*), min(text), max(text) from queries "
                "join questions on questions.id = question_id") == [(300, "question 700", "question 999")]  # fmt: skip
    assert rows(activity, "select queries from logged") == [(300,)]
    assert rows(activity, "select count(*) from questions") == [(300,)]
    assert rows(activity, "select searches from days") == [(1000,)]  # what was counted outlives the rows


def test_the_log_is_bounded_in_days_and_drops_in_small_steps(
    activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_log, "STEP", 10)
    with activity.database.writing() as connection:
        log_searches(connection, [logged("/vault", n, NOON - 400 * DAY) for n in range(100)], most_days=500)
        left: list[int] = []
        for number in range(12):
            log_searches(connection, [logged("/vault", 1000 + number)])
            left.append(int(str(connection.execute("select count(*) from queries where at < ?", (NOON - DAY,)).get)))

    assert left == [89, 78, 67, 56, 45, 34, 23, 12, 1, 0, 0, 0]
    assert rows(activity, "select count(*) from days") == [(1,)]


def test_quantiles_are_right_within_a_twentieth() -> None:
    for took in (0.05, 0.7, 3.0, 8.0, 25.0, 999.0, 61_000.0):
        assert middle_of(bucket_of(took)) == pytest.approx(took, rel=0.05)
    buckets = {bucket_of(float(ms)): 1 for ms in (1, 10, 100, 1000)}
    assert quantile(buckets, 0.5) == pytest.approx(10, rel=0.05)
    assert quantile(buckets, 0.95) == pytest.approx(1000, rel=0.05)
    assert quantile({}, 0.5) is None
    assert bucket_of(0.0) == bucket_of(0.01)


def test_statistics_are_those_of_the_days_that_were_asked_for(activity: Activity, vault: Vault) -> None:
    today = int(NOON // DAY)
    searches = [
        *(logged("/vault", 1) for _ in range(3)),
        logged("/vault", 2, took_ms=900.0),
        *(logged("/vault", 3, state="absent", door="mcp") for _ in range(2)),
        *(logged("/vault", 4, NOON - 10 * DAY, took_ms=5000.0, degraded="words alone") for _ in range(9)),
        logged("/other", 5),
    ]
    with activity.database.writing() as connection:
        log_searches(connection, searches)
        week, month = (asking(connection, "/vault", today - days + 1, today, 2) for days in (7, 30))
        nowhere = asking(connection, "/never-seen", today, today, 2)

    assert [(one.text, one.times) for one in week.common] == [("question 1", 3), ("question 3", 2)]
    assert [(one.text, one.times) for one in month.common] == [("question 4", 9), ("question 1", 3)]
    assert [(one.text, one.times) for one in week.unanswered] == [("question 3", 2)]
    assert [one.took_ms for one in week.slow] == [900.0, 5.0]
    assert [one.took_ms for one in month.slow] == [5000.0, 5000.0]
    assert week.doors == {"python": 4, "mcp": 2}
    assert len(week.days) == 7
    assert [(day.searches, day.unanswered, day.degraded) for day in week.days[-2:]] == [(0, 0, 0), (6, 2, 0)]
    assert sum(day.degraded for day in month.days) == 9
    assert week.half_ms == pytest.approx(5, rel=0.05)
    assert (nowhere.common, nowhere.logged, week.logged) == ([], 0, 15)


# -- the writer behind a process that stays -------------------------------------------------------------------------


def test_a_full_queue_drops_and_counts_and_never_waits(activity: Activity, vault: Vault) -> None:
    writer = BackgroundWriter(activity, rest=60.0, most=5)

    for number in range(8):
        writer.put(logged("/vault", number))
    assert activity.dropped == 3
    activity.dropped = 0
    assert writer.flush()
    writer.close()

    assert rows(activity, "select count(*) from queries") == [(5,)]


def test_closing_writes_what_is_left(data_dir: Path, vault: Vault) -> None:
    with Activity(str(data_dir), str(vault.root)) as activity:
        for number in range(50):
            activity.searched(answer(vault.root, f"question {number}", "oak"))

    with Activity(str(data_dir), str(vault.root)) as activity:
        assert rows(activity, "select count(*) from queries") == [(50,)]
        assert activity.dropped == 0


def test_threads_tell_at_once_and_everything_is_counted(activity: Activity, vault: Vault) -> None:
    def work() -> None:
        for _ in range(50):
            activity.searched(answer(vault.root, "oaks", "oak"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert rows(activity, "select recalls from uses") == [(400,)]
    assert rows(activity, "select asked from questions") == [(400,)]


# -- the spool of processes that end at once ------------------------------------------------------------------------


def test_a_brief_process_appends_to_the_spool_and_opens_no_database(data_dir: Path, vault: Vault) -> None:
    with Activity(str(data_dir), str(vault.root), brief=True) as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))

    assert [path.name for path in data_dir.iterdir()] == [SPOOL]


def test_the_next_who_opens_activity_db_folds_the_spool_in_once(
    activity: Activity, data_dir: Path, vault: Vault
) -> None:
    for number in range(3):
        with Activity(str(data_dir), str(vault.root), brief=True) as brief:
            brief.searched(answer(vault.root, f"question {number}", "oak"))

    activity.opened(str(vault.root / "memories" / "oak.md"))

    assert rows(activity, "select recalls, opens from uses") == [(3, 1)]
    assert fold_spool(activity.database, str(data_dir)) == 0
    assert rows(activity, "select recalls, opens from uses") == [(3, 1)]


def test_what_was_folded_in_is_not_counted_again_after_a_crash(
    activity: Activity, data_dir: Path, vault: Vault
) -> None:
    with Activity(str(data_dir), str(vault.root), brief=True) as brief:
        brief.searched(answer(vault.root, "oaks", "oak"))
    assert fold_spool(activity.database, str(data_dir)) == 1  # and the file is still there: killed before it went
    late = data_dir / waiting(str(data_dir))[0]
    with late.open("ab") as stream:  # somebody had it open under its old name
        stream.write((data_dir / late.name).read_bytes())

    assert fold_spool(activity.database, str(data_dir), rest=-1.0) == 1

    assert rows(activity, "select recalls from uses") == [(2,)]
    assert waiting(str(data_dir)) == []
    assert rows(activity, "select count(*) from spools") == [(0,)]


def test_a_full_spool_is_folded_in_by_whoever_fills_it(data_dir: Path, vault: Vault) -> None:
    event = logged(str(vault.root), 1, text="x" * 1000)
    size = 0
    while size < FULL - 2000:
        size = append(str(data_dir), [event])
    assert not (data_dir / "activity.db").exists()

    with Activity(str(data_dir), str(vault.root), brief=True) as brief:
        for _ in range(3):
            brief.searched(answer(vault.root, "y" * 1000, "oak"))

    assert not (data_dir / SPOOL).exists()
    with Activity(str(data_dir), str(vault.root)) as activity:
        assert rows(activity, "select count(*) > 200 from queries") == [(1,)]
        assert activity.dropped == 0


def test_a_spool_that_nobody_could_fold_in_stops_growing(data_dir: Path, vault: Vault) -> None:
    data_dir.mkdir()
    (data_dir / SPOOL).write_bytes(b"x" * (MOST + 1))

    with Activity(str(data_dir), str(vault.root), brief=True) as brief:
        brief.searched(answer(vault.root, "oaks", "oak"))

    assert brief.dropped == 1
    assert (data_dir / SPOOL).stat().st_size == MOST + 1


def test_lines_of_many_writers_do_not_mix(activity: Activity, data_dir: Path, vault: Vault) -> None:
    def work(number: int) -> None:
        for turn in range(40):
            append(str(data_dir), [logged(str(vault.root), number, text=f"{number}-{turn} " * 50)])
            if turn % 10 == 0:
                fold_spool(activity.database, str(data_dir))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fold_spool(activity.database, str(data_dir), rest=-1.0)

    assert rows(activity, "select count(*) from queries") == [(240,)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"('s',",
        b"('s', 1, 2)",
        b"('o', '/vault', 'when', 'oak.md')",
        b"('x', '/vault', 1.0, 'oak.md')",
        b"__import__('os').system('true')",
        b"[" * 5000,
        b"\xff\xfe",
        repr(("s", *logged("/vault", 1)._replace(recalled=("oak.md",)))).encode(),  # type: ignore[arg-type]
        repr(("s", *logged("/vault", 1)._replace(results=(("ref",),)))).encode(),  # type: ignore[arg-type]
        json.dumps(["s", "/vault"]).encode(),
    ],
)
def test_a_line_that_makes_no_sense_is_passed_over(activity: Activity, data_dir: Path, line: bytes) -> None:
    assert read_line(line) is None
    data_dir.mkdir(exist_ok=True)
    (data_dir / SPOOL).write_bytes(line + b"\n" + repr(("s", *logged("/vault", 7))).encode() + b"\n")

    assert fold_spool(activity.database, str(data_dir)) == 1
