"""Many small vaults share one search.db, and changing minds about models does not make it grow."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.corpus import write_corpus
from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

LARGEST_OF_FIFTY = 12_000_000


def test_fifty_vaults_of_one_note_keep_search_db_small(open_kb: Open, tmp_path: Path, inside: Inside) -> None:
    for number in range(50):
        vault = Vault(tmp_path / f"vault-{number}")
        vault.write("memories/one.md", f"Customer {number} gets a refund within {number} days.")
        kb = open_kb(root=vault.root)
        kb.sync()
        kb.close()

    assert inside.spaces() == {"static:co-static-256": 50}
    pages, size = inside.value("pragma page_count"), inside.value("pragma page_size")
    assert pages * size < LARGEST_OF_FIFTY, f"{pages * size:,} bytes"
    found = open_kb(root=tmp_path / "vault-7").search("money back")
    assert [hit.title for hit in found.hits] == ["One"]


def test_going_to_and_fro_between_models_does_not_grow_the_file(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, data_dir: Path, inside: Inside
) -> None:
    write_corpus(str(vault.root), 40)
    sizes: list[int] = []
    for _ in range(3):
        open_kb().sync()
        open_kb("ollama", host=ollama.url).sync()
        sizes.append(inside.value("pragma page_count") * inside.value("pragma page_size"))

    assert sizes[2] <= sizes[0] * 1.05
    assert os.path.getsize(data_dir / "search.db") < 10_000_000
