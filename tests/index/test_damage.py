"""search.db damaged in any way: noticed, set aside, made anew, said once; and searches answer meanwhile."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from co_cli.index.connection import APPLICATION, SCHEMA_VERSION, inode_of
from co_cli.index.damage import retire
from co_cli.index.making import is_ours, set_aside_before
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.verifying import verify
from co_cli.settings import load_settings
from tests.command import Co
from tests.vault import Vault

NOTES = {
    "memories/oak.md": "---\ntitle: Oaks\ntags: [tree]\n---\nOaks live for centuries.",
    "memories/elm.md": "The elm in the park fell ill. See [[oak]].",
    "articles/trees.md": "# Trees\n\nTrees are tall.\n\n## Bushes\n\nBushes are small and many.\n",
}


@pytest.fixture
def sound(vault: Vault, data_dir: Path, tmp_path: Path) -> Path:
    """A data folder as it should be, to damage copies of."""
    for path, text in NOTES.items():
        vault.write(path, text)
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
    for name in ("search.db-wal", "search.db-shm"):
        (data_dir / name).unlink(missing_ok=True)
    return data_dir.rename(tmp_path / "sound")


def damaged(held: bytes, chance: random.Random) -> bytes:
    """Some of it overwritten, some of it cut off, some of it both."""
    data = bytearray(held)
    kind = chance.choice(["bytes", "bytes", "sectors", "page", "zeros", "shorter", "header"])
    if kind == "bytes":
        for _ in range(chance.choice([1, 10, 200])):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == "header":
        place = chance.randrange(100)
        data[place : place + 8] = chance.randbytes(8)
    elif kind == "shorter":
        del data[chance.randrange(len(data)) :]
    else:
        size = {"sectors": 512, "page": 4096, "zeros": 4096}[kind]
        for _ in range(chance.choice([1, 3, 20])):
            place = chance.randrange(len(data) // size) * size
            data[place : place + size] = bytes(size) if kind == "zeros" else chance.randbytes(size)
    return bytes(data)


def aside(data_dir: Path) -> list[Path]:
    return [path for path in data_dir.iterdir() if path.name.startswith("search.db.2") and "-" not in path.name]


@pytest.mark.parametrize("seed", range(8))
def test_of_25_random_damages_none_stops_a_search_and_each_is_healed(
    sound: Path, vault: Vault, data_dir: Path, seed: int
) -> None:
    held = (sound / "search.db").read_bytes()
    for number in range(25):
        shutil.rmtree(data_dir, ignore_errors=True)
        data_dir.mkdir()
        damage = damaged(held, random.Random(f"{seed}/{number}"))
        (data_dir / "search.db").write_bytes(damage)
        told: list[str] = []
        by_meaning = number % 8 == 0  # vectors take most of the time
        settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)})
        with KnowledgeBase(settings if by_meaning else settings._replace(knowledge_embedding_provider="none")) as kb:
            kb.database.told, kb.index.told = told.append, None  # and nothing of it for activity.db
            backend = "hybrid" if by_meaning else "fts5"
            before = kb.search("oaks", backend=backend)  # from the index if it can, from the files if not
            kb.sync()
            after = kb.search("oaks", backend=backend)

            case = f"seed {seed}, damage {number}"
            assert before.state != "absent" or before.hits, case
            assert len(told) == len(aside(data_dir)) <= 1, case
            if told:
                assert aside(data_dir)[0].read_bytes()[:100] == damage[:100], case
                assert after.degraded == [], case
            if told or before.degraded == []:
                assert "memory:oak" in [hit.ref for hit in after.hits], case
            if not told:  # what SQLite cannot see, as a letter in a text, is found by comparing with the files
                assert not verify(kb, repair=True).drifted, case
                assert [hit.ref for hit in kb.search("oaks", backend=backend).hits][:1] == ["memory:oak"], case
    assert {path: vault.read(path) for path in NOTES} == NOTES


def of_another(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table bees (name text)")
    connection.close()


def of_a_newer_program(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("alter table docs rename to notes; create table dreams (id integer primary key)")
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()


WHOLE: dict[str, tuple[Callable[[Path], object], bool]] = {
    "random bytes": (lambda path: path.write_bytes(random.Random(1).randbytes(50_000)), True),
    "zero length": (lambda path: path.write_bytes(b""), False),
    "half of it": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), True),
    "somebody else's database": (lambda path: (path.unlink(), of_another(path)), True),
    "a newer schema": (of_a_newer_program, False),
}


@pytest.mark.parametrize(("spoil", "kept"), WHOLE.values(), ids=WHOLE)
def test_a_search_notices_sets_aside_makes_anew_and_says_it_once(
    co: Co, sound: Path, data_dir: Path, spoil: Callable[[Path], object], kept: bool
) -> None:
    shutil.copytree(sound, data_dir)
    spoil(data_dir / "search.db")

    first, second = co("search", "oaks"), co("search", "oaks")

    assert (first.code, second.code) == (0, 0)
    assert "memory:oak" in first.out
    assert len(aside(data_dir)) == int(kept)
    assert first.err.count("it is kept as") == int(kept)
    assert second.err == ""
    assert is_ours(str(data_dir / "search.db"), APPLICATION)


def test_without_a_sync_the_files_answer_and_the_next_search_has_an_index_again(
    co: Co, sound: Path, data_dir: Path
) -> None:
    shutil.copytree(sound, data_dir)
    path = data_dir / "search.db"
    spoil_table(path, "passages")

    ran = co("search", "oaks", "--no-sync", "--json")

    assert (ran.code, ran.json["backend"]) == (0, "grep")
    assert [hit["ref"] for hit in ran.json["hits"]] == ["memory:oak"]
    assert "answered from the files" in ran.json["degraded"][0]
    assert len(aside(data_dir)) == 1
    assert co("search", "oaks", "--json").json["backend"] == "hybrid"


def test_a_process_that_stays_answers_from_the_files_until_it_has_synced(
    sound: Path, vault: Vault, data_dir: Path
) -> None:
    shutil.copytree(sound, data_dir)
    spoil_table(data_dir / "search.db", "passages")

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        met, meanwhile = kb.search("oaks"), kb.search("oaks")
        kb.sync()
        later = kb.search("oaks")

    assert (met.backend, meanwhile.backend, later.backend) == ("grep", "grep", "hybrid")
    assert met.hits[0].ref == meanwhile.hits[0].ref == later.hits[0].ref == "memory:oak"
    assert later.degraded == []


def test_a_save_is_not_lost_to_a_damaged_index(sound: Path, co: Co, vault: Vault, data_dir: Path) -> None:
    for table in ("passages", "docs", "docs_fts_data", "knowledge_files"):
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        spoil_table(data_dir / "search.db", table)

        saved = co("remember", f"The word of {table} is blue.")

        assert (saved.code, saved.out.split()[0]) == (0, "created"), saved.err
        assert co("search", f"word of {table}", "--json").json["hits"][0]["title"].startswith("The word of")
    assert len(vault.notes()) == len(NOTES) + 4


def test_vectors_out_of_a_damaged_file_are_not_believed(sound: Path, vault: Vault, data_dir: Path) -> None:
    """The cache of a sound one is carried over, so that a rebuild asks no server again."""
    for spoilt, cached in ((False, 1), (True, 0)):
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        connection = apsw.Connection(str(data_dir / "search.db"))
        connection.execute("insert into spaces values (7, 'ollama', 'gemma', 256, '1', 0.7, -1, 0, 0)")
        connection.execute("insert into embedding_cache values (7, x'01', x'02', 1)")
        connection.close()
        if spoilt:
            spoil_table(data_dir / "search.db", "links")
        with KnowledgeBase.open(vault.root, data_dir) as kb:
            kb.rebuild()
            assert kb.index.meaning().cache.entries == cached


def spoil_table(path: Path, table: str) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "delete")
    page = int(str(connection.execute("select rootpage from sqlite_schema where name = :name", {"name": table}).get))
    connection.close()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * 4096)
        stream.write(b"\xff" * 4096)


def test_somebody_elses_broken_text_is_no_damage(sound: Path, vault: Vault, data_dir: Path) -> None:
    shutil.copytree(sound, data_dir)

    with KnowledgeBase.open(vault.root, data_dir) as kb:
        with pytest.raises(UnicodeDecodeError), kb.database.reading():
            b"\xff".decode()  # as whoever is called in a transaction may
        assert kb.search("oaks").backend == "hybrid"
    assert aside(data_dir) == []


def test_what_another_process_made_anew_is_not_set_aside_again(vault: Vault, data_dir: Path) -> None:
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        of_the_damaged_one = inode_of(kb.database.path) + 1

        retire(kb.database, of_the_damaged_one, apsw.CorruptError("found before it was swapped"))

        assert aside(data_dir) == []
        assert kb.index.counts().synced_at is not None


def test_of_damaged_files_the_newest_three_are_kept_and_never_is_one_of_somebody_else_removed(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("sync")
    for number in range(3):
        of_another(data_dir / f"search.db.2025010{number + 1}T000000Z")
    history = data_dir / "activity.db.20250101T000000Z"
    history.write_bytes((data_dir / "activity.db").read_bytes())
    for number in range(5):
        with (data_dir / "search.db").open("r+b") as stream:
            stream.seek(100)  # behind the header
            stream.write(bytes([number + 1]) * 4_000)
        for ending in ("-wal", "-shm"):
            (data_dir / f"search.db{ending}").unlink(missing_ok=True)
        ran = co("search", "oaks")
        assert "memory:oak" in ran.out
        assert "it is kept as" in ran.err

    kept = sorted(set_aside_before(str(data_dir / "search.db")))

    assert len(kept) == 6
    assert sum(is_ours(path, 0) for path in kept) == 3, "those of another"
    damaged_by = [Path(path).read_bytes()[100] for path in set_aside_before(str(data_dir / "search.db"))[3:]]
    assert damaged_by == [3, 4, 5], "the newest"
    assert history.exists(), "nothing brings that back"
    assert not list(data_dir.glob("search.db.2026*-wal*"))


def test_that_a_file_was_set_aside_is_said_once_with_verbose_too(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("sync")
    for options in ((), ("--verbose",)):
        (data_dir / "search.db").write_bytes(b"rubbish" * 1_000)
        ran = co("search", "oaks", *options)
        assert ran.err.count("it is kept as") == 1, ran.err
