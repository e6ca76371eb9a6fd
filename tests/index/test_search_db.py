"""search.db may be deleted, swapped, damaged, somebody else's or of another version: it comes back from the files."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.settings import load_settings
from co_cli.index.sqlite import resident
from co_cli.index.sqlite.connection import APPLICATION, SCHEMA_VERSION
from co_cli.index.sqlite.database_files import is_ours, set_aside_before
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.upkeep.verification import verify
from co_cli.vault.vault import Opening
from tests.command import Co
from tests.damage import VECTOR_DAMAGE, spoil_table, spoil_vectors
from tests.folder import Vault
from tests.hooks.events import PROMPT, given
from tests.index.contents import contents, contents_from_scratch

NOTES = {
    "memories/oak.md": "---\ntitle: Oaks\ntags: [tree]\n---\nOaks live for centuries.",
    "memories/elm.md": "The elm in the park fell ill. See [[oak]].",
    "articles/trees.md": "# Trees\n\nTrees are tall.\n\n## Bushes\n\nBushes are small and many.\n",
}


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    for path, text in NOTES.items():
        vault.write(path, text)


def aside(data_dir: Path) -> list[Path]:
    return [path for path in sorted(data_dir.glob("search.db.2*")) if not path.name.endswith(("-wal", "-shm"))]


def finds_oaks(index: KnowledgeIndex) -> bool:
    return [hit.ref for hit in index.search("oaks")][:1] == ["memory:oak"]


def delete(data_dir: Path) -> None:
    for file in data_dir.glob("search.db*"):
        file.unlink()


# -- deleted, swapped, of another version ------------------------------------------------------------------------------


def test_a_search_db_that_is_deleted_under_a_running_process_is_rebuilt(
    vault: Vault, index: KnowledgeIndex, data_dir: Path, tmp_path: Path
) -> None:
    index.sync()
    for remove in (delete, shutil.rmtree):
        remove(data_dir)

        assert index.search("oaks") == []
        assert sorted(index.sync().added) == sorted(NOTES)
        assert contents(index.engine, vault.root) == contents_from_scratch(vault, tmp_path / remove.__name__)


def test_another_version_is_replaced_while_its_readers_go_on(index: KnowledgeIndex, data_dir: Path) -> None:
    index.sync()
    for version in (0, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1):
        index.close()
        other = apsw.Connection(str(data_dir / "search.db"))
        other.pragma("user_version", version)
        cursor = other.execute("select path from docs order by path")
        first = next(cursor)

        index.sync()

        assert [path for (path,) in (first, *cursor)] == sorted(NOTES), version
        assert finds_oaks(index)
        assert apsw.Connection(str(data_dir / "search.db")).pragma("user_version") == SCHEMA_VERSION
        other.close()


# -- shared ------------------------------------------------------------------------------------------------------------


def test_two_vaults_in_one_search_db_do_not_mix(index: KnowledgeIndex, tmp_path: Path) -> None:
    garden = Vault(tmp_path / "garden")
    garden.write("memories/oak.md", "Oaks in the garden.")
    other = KnowledgeIndex(index.engine, garden.root, embedders=index.embedders)
    index.sync()
    other.sync()

    assert [doc.path for doc in other.notes.docs()] == ["memories/oak.md"]
    assert index.search("garden") == []
    garden.delete("memories/oak.md")
    other.sync()
    other.drop_missing()
    assert other.search("oaks") == []
    assert finds_oaks(index)


def another_thread_can_write(index: KnowledgeIndex) -> bool:
    thread = threading.Thread(target=index.forget_files, args=(["memories/elm.md"],), daemon=True)
    thread.start()
    thread.join(60)
    return index.notes.state().notes == 2


def test_a_transaction_that_sqlite_ended_itself_does_not_keep_the_lock(index: KnowledgeIndex) -> None:
    """As a full disk does: the statement fails, and nothing is left to roll back."""
    index.sync()
    database = SqliteEngine(index.engine.path).database
    with pytest.raises(IndexUnavailableError), database.writing() as connection:
        connection.execute("rollback")
        raise apsw.FullError("database or disk is full")

    assert another_thread_can_write(index)


def test_a_file_locked_by_somebody_else_is_said_and_does_not_keep_our_lock(
    index: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.sqlite.connection.BUSY_MS", 50)
    index.sync()
    index.close()
    somebody = apsw.Connection(index.engine.path)
    somebody.execute("begin immediate")
    with pytest.raises(IndexUnavailableError, match="locked by another program"), index.engine.writing():
        pass
    somebody.close()

    assert another_thread_can_write(index)


# -- damaged -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sound(vault: Vault, data_dir: Path, tmp_path: Path) -> Path:
    """A data folder as it should be, to damage copies of."""
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
    return data_dir.rename(tmp_path / "sound")


def damaged(held: bytes, chance: random.Random) -> bytes:
    """Some of it overwritten, or cut off."""
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


@pytest.mark.slow
def test_of_20_random_damages_none_stops_a_search_and_each_is_healed(sound: Path, vault: Vault, data_dir: Path) -> None:
    held = (sound / "search.db").read_bytes()
    for number in range(20):
        shutil.rmtree(data_dir, ignore_errors=True)
        data_dir.mkdir()
        damage = damaged(held, random.Random(number))
        (data_dir / "search.db").write_bytes(damage)
        told: list[str] = []
        settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)})
        with KnowledgeBase.open(settings=settings, opening=Opening(on_set_aside=told.append)) as kb:
            before = kb.search("oaks")  # from the index if it can, from the files if not
            kb.sync()
            after = kb.search("oaks")

            case = f"damage {number}"
            assert before.state != "absent" or before.hits, case
            assert len(told) == len(aside(data_dir)) <= 1, case
            if told:
                assert aside(data_dir)[0].read_bytes()[:100] == damage[:100], case
                assert after.degraded == [], case
                assert "memory:oak" in [hit.ref for hit in after.hits], case
            else:  # what SQLite cannot see, as a letter in a text, is found by comparing with the files
                kb.sync() if verify(kb.index).agrees else kb.rebuild()
                assert verify(kb.index).agrees, case
                assert kb.search("oaks").hits[0].ref == "memory:oak", case
    assert {path: vault.read(path) for path in NOTES} == NOTES


def of_another(path: Path) -> None:
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute("create table bees (name text); insert into bees values ('Maja')")
    connection.close()


UNUSABLE: dict[str, tuple[Callable[[Path], object], bool]] = {
    "random bytes": (lambda path: path.write_bytes(random.Random(1).randbytes(50_000)), True),
    "a header alone": (lambda path: path.write_bytes(b"SQLite format 3\0" + random.Random(1).randbytes(9_000)), True),
    "half of it": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), True),
    "a broken table": (lambda path: spoil_table(path, "docs"), True),
    "somebody else's database": (of_another, True),
    "zero length": (lambda path: path.write_bytes(b""), False),
}


@pytest.mark.medium
def test_a_search_moves_an_unusable_file_aside_and_says_it_once(co: Co, sound: Path, data_dir: Path) -> None:
    for case, (spoil, kept) in UNUSABLE.items():
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        spoil(data_dir / "search.db")
        content = (data_dir / "search.db").read_bytes()

        first, second = co("search", "oaks"), co("search", "oaks")

        assert (first.code, second.code) == (0, 0), case
        assert "memory:oak" in first.out, case
        assert "memory:oak" in second.out, case
        assert [path.read_bytes() for path in aside(data_dir)] == [content] * kept, case
        assert (first.err.count("it is kept as"), second.err) == (int(kept), ""), case
        assert is_ours(str(data_dir / "search.db"), APPLICATION), case


@pytest.mark.medium
def test_a_save_is_not_lost_to_a_damaged_index(sound: Path, co: Co, vault: Vault, data_dir: Path) -> None:
    for table in ("passages", "docs", "docs_fts_data", "knowledge_files"):
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        spoil_table(data_dir / "search.db", table)

        saved = co("remember", f"The word of {table} is blue.")

        assert (saved.code, saved.out[:7]) == (0, "created"), (table, saved.err)
        assert co("search", f"word of {table}", "--json").json["hits"][0]["title"].startswith("The word of")
    assert len(vault.notes()) == len(NOTES) + 4


@pytest.mark.slow
@pytest.mark.parametrize("scans", [0, resident.FEW_SCANS], ids=["in memory", "with vec0"])
@pytest.mark.parametrize("damage", VECTOR_DAMAGE.values(), ids=VECTOR_DAMAGE)
def test_damaged_vectors_stop_neither_a_search_nor_a_save(
    sound: Path, co: Co, data_dir: Path, damage: str, scans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "FEW_SCANS", scans)
    for number, command in enumerate((("search", "oaks"), ("remember", "Oaks grow in the park."))):
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        spoil_vectors(data_dir / "search.db", damage)

        ran = co(*command)

        assert ran.code == 0, ran.err
        assert ("memory:oak", "created memory:oaks-grow-in-the-park")[number] in ran.out
        assert co("index", "verify", "--repair").code == 0
        assert co("search", "oaks", "--json").json["degraded"] == []
    assert "memory:oaks-grow-in-the-park" in co("search", "oaks in the park").out


def test_a_note_is_written_even_if_the_index_fails_in_a_way_that_no_check_sees(
    sound: Path, co: Co, data_dir: Path
) -> None:
    shutil.copytree(sound, data_dir)
    spoil_vectors(data_dir / "search.db", "alter table names rename to nams")

    assert co("remember", "Oaks live for centuries in the park.").out.startswith("created")


def test_a_hook_that_meets_damaged_vectors_has_them_made_again(sound: Path, co: Co, data_dir: Path) -> None:
    shutil.copytree(sound, data_dir)
    spoil_vectors(data_dir / "search.db", VECTOR_DAMAGE["a shortened block"])

    given(co, "claude-code", PROMPT, prompt="For how long do oaks live?")

    assert "memory:oak" in given(co, "claude-code", PROMPT, prompt="For how long do oaks live?")


def test_the_embedding_cache_of_a_readable_file_is_kept_and_that_of_a_damaged_one_is_not(
    sound: Path, vault: Vault, data_dir: Path
) -> None:
    for damage, misses in ((False, 0), (True, 4)):
        shutil.rmtree(data_dir, ignore_errors=True)
        shutil.copytree(sound, data_dir)
        path = data_dir / "search.db"
        connection = apsw.Connection(str(path))
        connection.execute("update spaces set misses = 0")
        connection.pragma("user_version", 0)  # so that it is replaced
        connection.close()
        if damage:
            spoil_table(path, "links")

        with KnowledgeBase.open(vault.root, data_dir) as kb:
            kb.sync()
            cache = kb.index.notes.cache_state()
        assert (cache.entries, cache.misses) == (4, misses)


def test_the_log_of_somebody_elses_open_database_goes_with_it(index: KnowledgeIndex, data_dir: Path) -> None:
    data_dir.mkdir()
    of_another(data_dir / "search.db")
    owner = apsw.Connection(str(data_dir / "search.db"))
    owner.pragma("journal_mode", "wal")
    owner.execute("insert into bees values ('Willi')")

    index.sync()
    owner.execute("insert into bees values ('Flip')")

    names = apsw.Connection(str(aside(data_dir)[0])).execute("select name from bees").fetchall()
    assert names == [("Maja",), ("Willi",), ("Flip",)]
    owner.close()
    assert finds_oaks(index)


def test_of_damaged_files_the_newest_three_are_kept_and_never_is_one_of_somebody_else_removed(
    index: KnowledgeIndex, data_dir: Path
) -> None:
    index.sync()
    for number in range(3):
        of_another(data_dir / f"search.db.2025010{number + 1}T000000Z")
    for number in range(5):
        index.close()
        with (data_dir / "search.db").open("r+b") as stream:
            stream.seek(100)  # behind the header
            stream.write(bytes([number + 1]) * 4_000)
        index.sync()
        assert finds_oaks(index)

    kept = set_aside_before(str(data_dir / "search.db"))

    assert sum(is_ours(path, 0) for path in kept) == 3, "those of another"
    assert [Path(path).read_bytes()[100] for path in kept[3:]] == [3, 4, 5], "the newest"


def test_of_files_with_a_destroyed_header_the_last_is_kept(index: KnowledgeIndex, data_dir: Path) -> None:
    index.sync()
    of_another(data_dir / "search.db.20250101T000000Z")
    for number in range(5):
        index.close()
        with (data_dir / "search.db").open("r+b") as stream:
            stream.write(bytes([number + 1]) * (100 if number % 2 else 4_000))
        index.sync()
        assert finds_oaks(index)

    kept = set_aside_before(str(data_dir / "search.db"))

    assert [is_ours(path, 0) for path in kept] == [True, False], "the one of another stays"
    assert Path(kept[1]).read_bytes()[:100] == bytes([5]) * 100
    assert len(list(data_dir.glob("search.db.2*"))) == 2, "nor are their logs"
