"""The text of pictures and scanned pages, with the extra `ocr`: in the background, or now by `co index sync`."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.ground.paths import install_line
from tests.command import Co, refs
from tests.folder import Vault
from tests.sources.document_files import lines_of, pdf

WORDS = "Lanterns are lit at dusk"


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A picture with text, one without, and a PDF of a picture."""
    image, draw, font = (
        pytest.importorskip(f"PIL.Image{name}", reason="needs Pillow") for name in ("", "Draw", "Font")
    )
    folder = tmp_path / "scans"
    folder.mkdir()
    for name, text in (("photo.png", WORDS), ("empty.png", ""), ("letter.pdf", "The ferry leaves at seven")):
        picture = image.new("RGB", (640, 90), "white")
        draw.Draw(picture).text((20, 20), text, fill="black", font=font.load_default(36))
        picture.save(folder / name)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (folder / "typed.pdf").write_bytes(pdf(lines_of("Berths are free in May.")))
    return folder


@pytest.mark.medium
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


def test_without_the_extra_skipped_names_what_it_would_read(
    co: Co, vault: Vault, scans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.cli.sources.can_read_pictures", lambda: False)
    co("add", str(scans))

    shown = co("source", "skipped", "scans").out

    assert f"{install_line('ocr')} makes the text of 4 pictures and scanned PDFs searchable" in shown
