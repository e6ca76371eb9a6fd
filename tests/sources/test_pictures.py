"""The text of pictures and scanned pages, with the extra `ocr`: in the background, or now by `co index sync`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from co_cli.ground.paths import install_line
from tests.command import Co, refs
from tests.folder import Vault
from tests.sources.document_files import lines_of, pdf

WORDS = "Lanterns are lit at dusk"


def drawn(text: str, color: str = "black", background: str = "white", mode: str = "RGB") -> Any:
    """A picture of Pillow that shows this text."""
    image, draw, font = (
        pytest.importorskip(f"PIL.Image{name}", reason="needs Pillow") for name in ("", "Draw", "Font")
    )
    picture = image.new(mode, (640, 90), background)
    draw.Draw(picture).text((20, 20), text, fill=color, font=font.load_default(36))
    return picture


def draw_text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn(text).save(file)


def words(co: Co, name: str) -> str:
    """The text of a picture, in one line: what is a line of it can depend on the computer."""
    return " ".join(co("show", f"folder:scans/{name}").out.split())


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A picture with text, one without, and a PDF of a picture."""
    folder = tmp_path / "scans"
    for name, text in (("photo.png", WORDS), ("empty.png", ""), ("letter.pdf", "The ferry leaves at seven")):
        draw_text(folder / name, text)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (folder / "typed.pdf").write_bytes(pdf(lines_of("Berths are free in May.")))
    return folder


@pytest.mark.medium
@pytest.mark.slow
def test_pictures_and_scanned_pages_are_read_by_index_sync_and_not_by_a_search(
    co: Co, vault: Vault, scans: Path
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    added = co("add", str(scans), "--json").json
    assert added[0]["added"] == ["typed.pdf"]
    assert "3 pictures" in added[0]["detail"]
    assert not any("photo" in ref for ref in refs(co, WORDS))

    assert co("index", "sync").code == 0

    assert refs(co, WORDS, "--no-sync")[0].startswith("folder:scans/photo.png")
    assert refs(co, "when does the ferry leave", "--no-sync")[0].startswith("folder:scans/letter.pdf")
    assert "## Page 1" in co("show", "folder:scans/letter.pdf").out
    reasons = {row["path"]: row["reason"] for row in co("source", "skipped", "--json").json}
    assert reasons["empty.png"] == "a picture that shows no text"
    assert "broken picture" in reasons["broken.jpg"]
    assert co("search", '"zebra crossing"', "--json").json["state"] == "absent"
    assert "2 unchanged" not in co("index", "sync").out.partition("skipped")[0]
    assert refs(co, WORDS)[0].startswith("folder:scans/photo.png")  # a sync that reads no pictures keeps their text


@pytest.mark.slow
def test_the_text_of_transparent_pictures_is_read_and_that_of_each_page_of_a_tiff(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    folder = tmp_path / "scans"
    folder.mkdir()
    for name, color in (("dark", "black"), ("light", "white")):
        drawn(f"The {name} lantern", color, "#00000000", "RGBA").save(folder / f"{name}.png")
    drawn("The indexed lantern", "black", "#00000000", "RGBA").quantize(8).save(folder / "indexed.png")
    pages = [drawn(text) for text in ("The ferry leaves at seven", "", "Berths are free in May")]
    pages[0].save(folder / "fax.tiff", save_all=True, append_images=pages[1:])
    co("add", str(folder))

    assert co("index", "sync").code == 0

    shown = {name: words(co, f"{name}.png") for name in ("dark", "light", "indexed")}
    assert {name: "lantern" in text for name, text in shown.items()} == dict.fromkeys(shown, True), shown
    assert "## Page 1 The ferry leaves at seven ## Page 3 Berths are f" in words(co, "fax.tiff")


@pytest.mark.slow
def test_a_picture_that_is_too_large_is_reported_as_that(co: Co, vault: Vault, tmp_path: Path) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    image, folder = pytest.importorskip("PIL.Image", reason="needs Pillow"), tmp_path / "scans"
    folder.mkdir()
    small, large, huge = (
        drawn("Berths are free in May", mode="1"),
        *(image.new("1", (side, side)) for side in (9_000, 13_000)),
    )
    small.save(folder / "fax.tiff", save_all=True, append_images=[large, small], compression="group4")
    large.save(folder / "large.png")
    huge.save(folder / "huge.png")
    co("add", str(folder))

    synced = co("index", "sync")

    too_large = "larger than 80 megapixels: make it smaller"
    reasons = {row["path"]: row["reason"] for row in co("source", "skipped", "--json").json}
    assert reasons == {"large.png": too_large, "huge.png": too_large}
    assert f"fax.tiff: 1 of 3 pages: {too_large}" in synced.out + synced.err
    assert co("show", "folder:scans/fax.tiff").out.count("free in") == 2


def test_without_the_extra_skipped_names_what_it_would_read(
    co: Co, vault: Vault, scans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.cli.sources.can_read_pictures", lambda: False)
    co("add", str(scans))

    shown = co("source", "skipped", "scans").out

    assert f"{install_line('ocr')} makes the text of 4 pictures and scanned PDFs searchable" in shown


@pytest.mark.slow
def test_the_text_of_pictures_beside_notes_is_searched_shown_and_never_edited(co: Co, vault: Vault) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    draw_text(vault.path("attachments/scan.png"), WORDS)
    draw_text(vault.path("attachments/empty.png"), "")
    vault.write("memories/harbour.md", "The harbour at night: ![[scan.png]]")
    scan = "picture:vault/attachments/scan.png"
    assert not any("picture" in ref for ref in refs(co, WORDS))
    assert "`co index sync` makes the text of 2 pictures" in co("source", "skipped").out

    assert co("index", "sync").code == 0

    assert refs(co, WORDS)[0].startswith(scan)
    assert len(refs(co, WORDS, "--source", "picture:vault")) == 1
    for name in (scan, "attachments/scan.png", str(vault.path("attachments/scan.png"))):
        assert "Lanterns" in co("show", name).out, name
    before = vault.path("attachments/scan.png").read_bytes()
    for command in ("edit", "forget"):
        assert co(command, scan).code == 2, command
    assert vault.path("attachments/scan.png").read_bytes() == before
    assert co("source", "tree", "--json").json[0]["files"] == {
        "attachments/empty.png": "a picture that shows no text",
        "attachments/scan.png": "",
        "memories/harbour.md": "",
    }
    assert co("index", "verify").code == 0
    assert "picture:vault: the index agrees with the files (notes: 1)" in co("doctor").out

    for name in ("scan.png", "empty.png"):
        vault.delete(f"attachments/{name}")
    assert not any("picture" in ref for ref in refs(co, WORDS))
    database = apsw.Connection(str(Path(os.environ["CO_DATA_DIR"], "search.db")))
    assert [path for (path,) in database.execute("select path from docs")] == ["memories/harbour.md"]


@pytest.mark.slow
def test_in_a_project_those_of_your_own_vault_are_searched_and_its_pictures_once_you_trust_it(
    co: Co, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    monkeypatch.delenv("CO_VAULT")
    own, project = Vault(home / ".local/share/co-cli/knowledge"), Vault(tmp_path / "project/.co-cli/knowledge")
    monkeypatch.chdir(tmp_path / "project")
    draw_text(own.path("oven.png"), "The oven needs an hour")
    draw_text(project.path("kiln.png"), "The kiln needs a day")

    assert co("index", "sync").code == 0

    assert refs(co, "oven hour")[0].startswith("picture:own/oven.png")
    assert not any("kiln" in ref for ref in refs(co, "kiln day"))
    assert co("config", "trust").code == 0
    assert co("index", "sync").code == 0
    assert refs(co, "kiln day")[0].startswith("picture:vault/kiln.png")
    assert "hour" in co("show", str(own.path("oven.png"))).out
    assert refs(co, "oven hour", "--vault", str(own.root))[0].startswith("picture:own/oven.png")


def test_pictures_beside_notes_are_named_without_the_extra_unless_they_are_excluded(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cli.sources", "vault.vault"):
        monkeypatch.setattr(f"co_cli.{module}.can_read_pictures", lambda: False)
    for name in ("scan.png", "logo.jpg"):
        vault.write(f"attachments/{name}", b"\xff\xd8\xff nothing")
    vault.write(".coignore", "logo.jpg\n")

    shown = co("source", "skipped").out

    assert "binary: 1\n  vault/attachments/scan.png" in shown
    assert "excluded by .coignore: 1\n  vault/attachments/logo.jpg" in shown
    assert f"{install_line('ocr')} makes the text of 1 picture" in shown
    assert [state["source"] for state in co("source", "list", "--json").json] == []
