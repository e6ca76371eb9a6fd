"""Make co_cli/server/page/vendor/: the libraries of the page, each bundled into one file, and a README that names them.

    python3 .ci/vendor.py

To update one, change its version below and run this again. It needs npm, and writes nothing outside of that folder.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "co_cli/server/page/vendor"
TOOLS = {"esbuild": "0.28.2"}
PACKAGES = {
    "lit-html": "3.3.3",
    "@codemirror/autocomplete": "6.20.4",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-markdown": "6.5.2",
    "@codemirror/language": "6.13.1",
    "@codemirror/legacy-modes": "6.5.5",
    "@codemirror/search": "6.7.2",
    "@codemirror/state": "6.7.6",
    "@codemirror/view": "6.43.15",
    "@lezer/highlight": "1.2.5",
}
"""What these need themselves is taken in its newest version; the README says which."""

LIT_HTML = """
export { html, nothing, render, svg } from "lit-html";
export { keyed } from "lit-html/directives/keyed.js";
export { repeat } from "lit-html/directives/repeat.js";
"""
CODEMIRROR = """
export { Compartment, EditorSelection, EditorState, Prec, Transaction } from "@codemirror/state";
export { Decoration, EditorView, MatchDecorator, ViewPlugin, drawSelection, dropCursor, keymap, placeholder }
  from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
export { HighlightStyle, indentUnit, syntaxHighlighting, syntaxTree } from "@codemirror/language";
export { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus,
  insertCompletionText, startCompletion } from "@codemirror/autocomplete";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { markdown, markdownLanguage } from "@codemirror/lang-markdown";
export { tags } from "@lezer/highlight";

import { LanguageDescription, LanguageSupport, StreamLanguage } from "@codemirror/language";
import { css } from "@codemirror/legacy-modes/mode/css";
import { diff } from "@codemirror/legacy-modes/mode/diff";
import { go } from "@codemirror/legacy-modes/mode/go";
import { javascript, json, typescript } from "@codemirror/legacy-modes/mode/javascript";
import { python } from "@codemirror/legacy-modes/mode/python";
import { rust } from "@codemirror/legacy-modes/mode/rust";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { standardSQL } from "@codemirror/legacy-modes/mode/sql";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { html } from "@codemirror/legacy-modes/mode/xml";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";

// For fenced code.
export const codeLanguages = [
  [css, "css"], [diff, "diff", "patch"], [go, "go"], [html, "html", "xml", "svg"], [json, "json", "jsonc", "jsonl"],
  [javascript, "javascript", "js", "jsx", "mjs"], [python, "python", "py"], [rust, "rust", "rs"],
  [shell, "shell", "sh", "bash", "zsh", "console"], [standardSQL, "sql"], [toml, "toml"],
  [typescript, "typescript", "ts", "tsx"], [yaml, "yaml", "yml"],
].map(([mode, ...alias]) => LanguageDescription.of({
  name: alias[0], alias, support: new LanguageSupport(StreamLanguage.define(mode)),
}));
"""
SMALL_HTML = """
import { LanguageSupport, StreamLanguage } from "@codemirror/language";
import { html as mode } from "@codemirror/legacy-modes/mode/xml";
export const html = () => new LanguageSupport(StreamLanguage.define(mode));
export const htmlCompletionSource = () => null;
"""
"""In place of @codemirror/lang-html, which has parsers of three languages for the tags in a note: 70 KB compressed."""
BUNDLES = {"lit-html.js": LIT_HTML, "codemirror.js": CODEMIRROR}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES | TOOLS}))
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        VENDOR.mkdir(exist_ok=True)
        for old in VENDOR.iterdir():
            old.unlink()
        sections = [bundle(folder, file, entry) for file, entry in BUNDLES.items()]
    text = "\n".join(["# Libraries of the page", "", "Made by `.ci/vendor.py`; do not edit.", "", *sections])
    (VENDOR / "README.md").write_text(text, encoding="utf-8")


def bundle(folder: Path, file: str, entry: str) -> str:
    """Write one bundle and its licences, and describe them."""
    (folder / "entry.js").write_text(entry, encoding="utf-8")
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--charset=utf8", "--legal-comments=none"]
    (folder / "html.js").write_text(SMALL_HTML, encoding="utf-8")
    options += ["--alias:@codemirror/lang-html=./html.js", "--log-level=warning"]
    output = [f"--outfile={VENDOR / file}", "--metafile=meta.json"]
    esbuild = folder / "node_modules/.bin/esbuild"
    subprocess.run([esbuild, "entry.js", *options, *output], cwd=folder, check=True)
    used = sorted({package_of(name) for name in json.loads((folder / "meta.json").read_text())["inputs"]} - {""})
    licence = Path(file).with_suffix(".LICENSE").name
    rows: list[str] = []
    texts: dict[str, list[str]] = {}
    for name in used:
        package = folder / "node_modules" / name
        about = json.loads((package / "package.json").read_text())
        rows.append(f"| {name} | {about['version']} | {about['license']} |")
        texts.setdefault((package / "LICENSE").read_text(encoding="utf-8").strip(), []).append(name)
    (VENDOR / licence).write_text(
        "\n\n".join(f"{', '.join(names)}\n\n{text}" for text, names in texts.items()) + "\n", encoding="utf-8"
    )
    hashes = [f"{hashlib.sha256((VENDOR / one).read_bytes()).hexdigest()}  {one}" for one in (file, licence)]
    table = ["| package | version | licence |", "| --- | --- | --- |", *rows]
    return "\n".join([f"## {file}", "", *table, "", "```sha256", *hashes, "```", ""])


def package_of(path: str) -> str:
    """`node_modules/@lezer/common/dist/index.js` is of `@lezer/common`."""
    parts = path.split("/")
    return "/".join(parts[1 : 3 if parts[1].startswith("@") else 2]) if parts[0] == "node_modules" else ""


if __name__ == "__main__":
    main()
