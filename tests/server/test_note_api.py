"""Notes of the page: read, write, forget and restore them; their history, and the files next to them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.web_app import Access, Site
from tests.command import Co
from tests.folder import Vault
from tests.server.api import ask
from tests.server.conftest import signed_in
from tests.sources.web_server import WebServer
from tests.trouble.test_hostile_sizes import MERGE_BOMB

REF = "memory:odalys-has-the-last-word"
PICTURE = b"\x89PNG\r\n\x1a\n"


def write(kb: KnowledgeBase, path: str, content: str | bytes) -> Path:
    file = Path(kb.root, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_a_note_is_the_object_that_co_show_prints(api: TestClient, sample: KnowledgeBase, co: Co) -> None:
    ran = co("--vault", sample.root, "--data-dir", sample.settings.data_dir, "show", "--json", REF)

    assert ask(api, "GET", f"/notes/{REF}") == json.loads(ran.out)


def test_a_note_is_rendered_with_its_links_and_badges(api: TestClient, sample: KnowledgeBase) -> None:
    write(
        sample,
        "memories/new.md",
        "---\nprovenance: agent\nvalid_until: 2020-01-01\ntags: [a]\n---\n[[who-does-what]] #b",
    )
    sample.sync()

    shown = ask(api, "GET", "/rendered/memory:new")

    assert '<a href="/note/article:people/who-does-what"' in shown["html"]
    assert (shown["provenance"], shown["writable"], shown["in_prompts"]) == ("agent", True, True)
    assert shown["outdated"].startswith("expired") or "valid" in shown["outdated"]
    assert shown["own_tags"] == ["a"]


def test_titles_and_aliases_are_found_as_they_are_typed_with_what_links_to_them(
    api: TestClient, sample: KnowledgeBase
) -> None:
    write(sample, "memories/zebra.md", "---\ntitle: Zebra crossings\naliases: [Pelican walks]\n---\nStripes.\n")
    write(sample, "articles/a/zebra.md", "---\ntitle: 'Zebras: #1'\n---\nStripes.\n")
    sample.sync()

    found = [(one["title"], one["alias"], one["link"]) for one in ask(api, "GET", "/titles", q="zeb")]
    assert sorted(found) == [("Zebra crossings", None, "Zebra crossings"), ("Zebras: #1", None, "articles/a/zebra")]
    assert ask(api, "GET", "/titles", q="pelic", limit=1) == [
        {
            "title": "Zebra crossings",
            "ref": "memory:zebra",
            "kind": "memory",
            "path": "memories/zebra.md",
            "alias": "Pelican walks",
            "link": "Zebra crossings",
        }
    ]
    assert [one["ref"] for one in ask(api, "GET", "/titles", q="zbrcrs")] == ["memory:zebra"]
    assert len(ask(api, "GET", "/titles", limit=7)) == 7, "the newest"
    assert ask(api, "GET", "/titles", q="zqxzqx") == []


def test_lines_of_a_ref_are_lit(api: TestClient) -> None:
    assert ask(api, "GET", "/rendered/article:people/who-does-what%23L14-16")["lines"] == [14, 16]


def test_opening_counts_and_looking_does_not(api: TestClient) -> None:
    ask(api, "GET", f"/rendered/{REF}")
    ask(api, "GET", f"/notes/{REF}")
    assert ask(api, "GET", f"/history/{REF}")["history"]["opens"] == 0

    ask(api, "GET", f"/notes/{REF}", opened=True)
    assert ask(api, "GET", f"/history/{REF}")["history"]["opens"] == 1


def test_an_unknown_note_names_the_closest(api: TestClient) -> None:
    error = ask(api, "GET", "/notes/memory:odalys-has-the-last", 404)["error"]

    assert REF in error["closest"]


def test_a_text_is_previewed_before_it_is_saved(api: TestClient, sample: KnowledgeBase) -> None:
    shown = ask(api, "POST", "/rendered", text="**Bold** [[who-does-what]] <script>x</script>", ref=REF)["html"]

    assert "<strong>Bold</strong>" in shown
    assert "/note/article:people/who-does-what" in shown
    assert "<script" not in shown
    assert "<em>new</em>" in ask(api, "POST", "/rendered", text="*new*")["html"]


def test_a_note_is_saved_changed_forgotten_and_restored(api: TestClient, sample: KnowledgeBase) -> None:
    saved = ask(api, "POST", "/notes", content="Zebra crossings are painted in May.", title="Zebras", tags=["road"])
    ref = saved["ref"]
    assert saved["outcome"] == "created"
    assert ask(api, "GET", "/search", q="zebra crossings", typing=True)["hits"][0]["ref"] == ref

    version = ask(api, "GET", f"/notes/{ref}")["version"]
    ask(
        api,
        "PUT",
        f"/notes/{ref}",
        content="Zebra crossings are painted in June.",
        tags=["road", "paint"],
        version=version,
    )
    changed = ask(api, "GET", f"/notes/{ref}")
    assert (changed["body"].strip(), changed["tags"]) == ("Zebra crossings are painted in June.", ["road", "paint"])

    ask(api, "DELETE", f"/notes/{ref}")
    assert "was forgotten" in ask(api, "GET", f"/notes/{ref}", 404)["error"]["message"]
    assert ask(api, "POST", "/restored", ref=ref)["outcome"] == "restored"
    assert ask(api, "GET", f"/notes/{ref}")["version"] == changed["version"]


def test_a_null_character_makes_no_note_binary(api: TestClient, sample: KnowledgeBase) -> None:
    ref = ask(api, "POST", "/notes", content="Sheep\0 graze.", title="Sheep")["ref"]

    for content in ("Sheep graze\0 in herds.", "Sheep \0\0sleep."):
        ask(api, "PUT", f"/notes/{ref}", content=content, version=ask(api, "GET", f"/notes/{ref}")["version"])
        assert ask(api, "GET", f"/notes/{ref}")["body"].strip() == content.replace("\0", "")
    ask(api, "POST", "/daily", day="2026-11-18", line="Sheep\0 again.")
    assert Path(sample.root, "articles/daily/2026-11-18.md").read_text().endswith("- Sheep again.\n")


def test_no_request_creates_a_note_where_the_vault_has_as_many_as_it_may_have(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Larches lose their needles in autumn, unlike most other trees of their kind. " * 9
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms like water.")
    monkeypatch.setenv("CO_MOST_NOTES", "2")
    monkeypatch.setenv("CO_CAPTURE", "keep")
    monkeypatch.setenv("CO_WEB_ALLOW", "127.0.0.1")
    with KnowledgeBase.open(vault.root, data_dir) as kb, closing(WebServer()) as web:
        kb.sync()
        api = signed_in(Site(kb, Access(), []))
        ask(api, "DELETE", "/notes/memory:elm")
        ash = ask(api, "POST", "/notes", content="Ashes burn well.")
        before, full = vault.notes(), "this vault has 2 notes, and may have 2: forget some first"

        for path, values in {
            "/notes": {"content": text},
            "/daily": {"day": "2026-11-18"},
            "/clips": {"url": "https://example.org/", "html": f"<h1>Larch</h1><p>{text}</p>"},
            "/documents": {"name": "larch.txt", "data": base64.b64encode(text.encode()).decode()},
            "/restored": {"ref": "memory:elm"},
            "/tools/save_conversation": {"arguments": {"turns": [{"role": "user", "text": text}]}},
        }.items():
            assert full in ask(api, "POST", path, 400, **values)["error"]["message"], path
        page = web.page("/larch", f"<h1>Larch</h1><p>{text}</p>")
        assert full in ask(api, "POST", "/pages", url=page)["detail"]

        assert vault.notes() == before
        assert ask(api, "POST", "/notes", content="Ashes burn well.")["outcome"] == "duplicate"
        ask(api, "DELETE", f"/notes/{ash['ref']}")
        assert ask(api, "POST", "/restored", ref="memory:elm")["outcome"] == "restored"


def test_letters_that_are_not_utf_8_are_never_replaced(api: TestClient, sample: KnowledgeBase) -> None:
    file = write(sample, "memories/old.md", b"---\ntitle: Old\n---\nCaf\xe9\n")
    sample.sync()
    note = ask(api, "GET", "/notes/memory:old")

    assert note["body"] == "Café\n"
    text = note["body"] + "more"
    error = ask(api, "PUT", "/notes/memory:old", 400, content=text, version=note["version"])["error"]

    assert "save it as UTF-8" in error["message"]
    ask(api, "PUT", "/notes/memory:old", 400, title="Näher", version=note["version"])
    ask(api, "PUT", "/notes/memory:old", title="New", version=note["version"])
    assert file.read_bytes() == b"---\ntitle: New\n---\nCaf\xe9\n"


def test_a_conflict_writes_nothing_and_shows_the_present_text(api: TestClient, sample: KnowledgeBase) -> None:
    version = ask(api, "GET", f"/notes/{REF}")["version"]
    file = Path(sample.file_of(REF))
    theirs = file.read_text() + "Except on Fridays.\n"
    file.write_text(theirs)

    error = ask(api, "PUT", f"/notes/{REF}", 409, content="Mine.", version=version)["error"]

    assert error["kind"] == "note_conflict"
    assert error["present"].endswith("Except on Fridays.\n")
    assert file.read_text() == theirs


def test_a_text_that_is_replaced_after_a_conflict_is_kept_and_compared(api: TestClient, sample: KnowledgeBase) -> None:
    before = Path(sample.file_of(REF)).read_text()

    ask(api, "PUT", f"/notes/{REF}", content="Mine.")

    (copy,) = (one["path"] for one in ask(api, "GET", f"/history/{REF}")["copies"])
    then = ask(api, "GET", f"/versions/{REF}", version=copy)
    assert then["text"] == before
    assert "+Mine." in then["diff"]


def test_a_note_is_compared_with_its_commits_also_before_it_was_renamed(api: TestClient, sample: KnowledgeBase) -> None:
    def git(*words: str) -> str:
        given = ["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *words]
        return subprocess.run(given, cwd=sample.root, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    old = write(sample, "memories/tide.md", "High at noon.\nLow at six.\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD")
    old.rename(Path(sample.root, "memories/tides.md"))
    git("add", "-A")
    git("commit", "-qm", "second")
    write(sample, "memories/tides.md", "High at one.\nLow at six.\n")
    sample.sync()

    assert first in [change["hash"] for change in ask(api, "GET", "/history/memory:tides")["history"]["changes"]]
    diff = ask(api, "GET", "/versions/memory:tides", version=first)["diff"]
    assert [line for line in diff if line[0] in "+-"][2:] == ["-High at noon.", "+High at one."]
    for wrong in ("HEAD", "--output=x", "0" * 40, "../etc/passwd", ".trash/x"):
        ask(api, "GET", "/versions/memory:tides", 400, version=wrong)


def test_pictures_come_from_the_vault(api: TestClient, sample: KnowledgeBase) -> None:
    for path in ("memories/near.png", "img/far away.png", "plan.pdf"):
        write(sample, path, PICTURE + path.encode())

    for name, path in (
        ("near.png", "memories/near.png"),
        ("../img/far away.png", "img/far away.png"),
        ("img/far away.png", "img/far away.png"),
        ("Far Away.png", "img/far away.png"),
    ):
        answer = api.get(f"/api/v1/files/{REF}", params={"name": name})
        assert (answer.content, answer.headers["content-type"]) == (PICTURE + path.encode(), "image/png")
    assert (
        api.get(f"/api/v1/files/{REF}", params={"name": "plan.pdf"}).headers["content-type"]
        == "application/octet-stream"
    )


def test_files_outside_the_vault_and_hidden_ones_are_refused(api: TestClient, sample: KnowledgeBase) -> None:
    root = Path(sample.root)
    outside = root.parent / "outside.png"
    outside.write_bytes(PICTURE)
    (root / "link.png").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)
    (outside.parent / "x.png").write_bytes(PICTURE)
    write(sample, ".secret.png", PICTURE)
    write(sample, ".co/x.png", PICTURE)
    os.mkfifo(root / "pipe.png")

    outwards = "../../outside.png|/etc/passwd|link.png|folder/x.png|..\\..\\outside.png|%2e%2e/outside.png"
    hidden = ".secret.png|.co/x.png|a\0.png||gone.png|memories|pipe.png"
    for name in f"{outwards}|{hidden}".split("|"):
        assert ask(api, "GET", f"/files/{REF}", 404, name=name)["error"]["kind"] == "unknown_file"


def test_the_whole_file_of_a_note_is_replaced_only_as_it_was_read(api: TestClient, sample: KnowledgeBase) -> None:
    file = write(sample, "memories/broken.md", "---\r\ntitle: a: b\r\n---\r\nText.\r\n")
    sample.sync()
    whole = ask(api, "GET", "/whole/memory:broken")
    assert whole["text"] == "---\r\ntitle: a: b\r\n---\r\nText.\r\n"
    repaired = {"text": whole["text"].replace("a: b", '"a: b"').replace("\r\n", "\n"), "version": whole["version"]}

    assert ask(api, "PUT", "/whole/memory:broken", **repaired) == {"ref": "memory:broken"}
    assert file.read_bytes() == b'---\r\ntitle: "a: b"\r\n---\r\nText.\r\n', "a browser sends other line ends"
    assert ask(api, "GET", "/notes/memory:broken")["problem"] is None
    assert "was changed meanwhile" in ask(api, "PUT", "/whole/memory:broken", 409, **repaired)["error"]["message"]
    write(sample, "memories/latin.md", b"caf\xe9")
    assert "UTF-8" in ask(api, "GET", "/whole/memory:latin", 400)["error"]["message"]


def test_merge_keys_that_double_forty_times_do_not_hang_the_server(api: TestClient, sample: KnowledgeBase) -> None:
    version = ask(api, "GET", f"/whole/{REF}")["version"]
    started = time.process_time()

    ask(api, "PUT", f"/whole/{REF}", text=f"---\n{MERGE_BOMB}---\nText.\n", version=version)

    assert "`<<` expands to more than 10,000 fields" in ask(api, "GET", f"/notes/{REF}")["problem"]
    assert time.process_time() - started < 5


def test_no_request_writes_to_a_linked_folder(api: TestClient, sample: KnowledgeBase, tmp_path: Path) -> None:
    file = tmp_path / "handbook" / "deploy.md"
    file.parent.mkdir()
    file.write_text("Blue first.")
    sample.sources.add(str(file.parent))

    ref = "folder:handbook/deploy.md"
    version = ask(api, "GET", f"/notes/{ref}")["version"]
    for method, path, values in (
        ("PUT", f"/notes/{ref}", {"content": "x", "version": version}),
        ("PUT", f"/whole/{ref}", {"text": "x", "version": version}),
        ("DELETE", f"/notes/{ref}", {}),
    ):
        assert "it belongs to a linked source" in ask(api, method, path, 400, **values)["error"]["message"]
    assert file.read_text() == "Blue first."


def test_a_link_by_title_or_alias_leads_to_the_note_on_the_page(api: TestClient, sample: KnowledgeBase) -> None:
    write(sample, "entities/mara-lind.md", "---\ntitle: Mara Lind\naliases: [Mara]\n---\nLeads the bridge team.")
    write(sample, "memories/new.md", "Ask [[Mara Lind]] or [[Mara|her]].")
    sample.sync()

    html = ask(api, "GET", "/rendered/memory:new")["html"]

    assert html.count('<a href="/note/entity:mara-lind"') == 2


def test_ticking_a_task_changes_its_sign_and_nothing_else(api: TestClient, sample: KnowledgeBase) -> None:
    text = "---\r\ntitle: Odd\r\nupdated: 2020-01-01\r\n---\r\n> 1. [ ] caf\u00e9  \r\n- [\u2713] done\r\n- [x](y)"
    file = write(sample, "memories/tasks.md", text)
    sample.sync()
    version = ask(api, "GET", "/rendered/memory:tasks")["version"]

    version = ask(api, "PUT", "/tasks/memory:tasks", line=5, done=True, version=version)["version"]
    assert file.read_bytes().decode() == text.replace("[ ]", "[x]")
    ask(api, "PUT", "/tasks/memory:tasks", line=6, done=False, version=version)
    assert file.read_bytes().decode() == text.replace("[ ]", "[x]").replace("[\u2713]", "[ ]")

    old = api.put("/api/v1/tasks/memory:tasks", json={"line": 5, "done": False, "version": version})
    assert (old.status_code, old.json()["error"]["kind"]) == (409, "note_conflict")
    version = ask(api, "GET", "/rendered/memory:tasks")["version"]
    for line in (1, 7, 99):
        refused = api.put("/api/v1/tasks/memory:tasks", json={"line": line, "done": True, "version": version})
        assert (refused.status_code, "is not a task" in refused.json()["error"]["message"]) == (400, True)


def test_links_are_resolved_by_title_and_alias_also_before_a_note_is_saved(
    api: TestClient, sample: KnowledgeBase
) -> None:
    write(sample, "memories/oak-17.md", "---\ntitle: The old oak\naliases: [Quercus]\n---\nIt stands.\n")
    sample.sync()

    html = ask(api, "POST", "/rendered", text="[[The old oak]] [[quercus]] [[Gone]]")["html"]

    assert html.count('href="/note/memory:oak-17"') == 2
    assert html.count('class="missing"') == 1
