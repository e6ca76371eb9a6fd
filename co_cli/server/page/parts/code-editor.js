// <code-editor>: Markdown in CodeMirror. It is in a shadow root, where its styles are adopted and need no exception of
// the page's policy.
//
// It dispatches `change` when somebody typed, `save` for Ctrl+S and Ctrl+Enter, and `files` ({ detail: [File] }) when
// files are dropped or pasted. `titles(text, signal)` and `tags()` find what `[[` and `#` complete.

import {
  Decoration, EditorSelection, EditorState, EditorView, HighlightStyle, MatchDecorator, Prec, Transaction, ViewPlugin,
  acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, codeLanguages, completionKeymap, defaultKeymap,
  drawSelection, dropCursor, highlightSelectionMatches, history, historyKeymap, indentUnit, keymap, markdown,
  markdownLanguage, search, searchKeymap, syntaxHighlighting, tags,
} from "../vendor/codemirror.js";

const KEYS = defaultKeymap.filter((one) => one.key !== "Shift-Mod-k"); // that captures a thought
const ITEM = /^(\s*)(?:[-*+]|\d+[.)])\s/;
const FORMATTED = /<(?:h[1-6]|b|strong|em|i|a|ul|ol|li|table|pre|code|blockquote|p)\b/i; // worth to be converted
const LINKS = /\[\[[^\]\n]+\]\]|(?<=^|\s)#[\p{L}\p{N}_/-]*\p{L}[\p{L}\p{N}_/-]*/gu;

const PLAIN = { backgroundColor: "var(--card)", color: "var(--text)", borderColor: "var(--line)" };
const SELECTED = ".cm-selectionLayer .cm-selectionBackground";

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--page)", fontSize: ".95rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.65", overflow: "auto" },
  ".cm-content": { padding: ".4rem 0 40vh", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 1px" },
  ".cm-cursor": { borderLeft: "2px solid var(--accent)" },
  [`&.cm-focused > .cm-scroller > ${SELECTED}, ${SELECTED}`]: { backgroundColor: "var(--tint)" },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--mark)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--accent)" },
  ".cm-named": { color: "var(--accent)" },
  ".cm-tooltip": { ...PLAIN, border: "1px solid var(--line)", borderRadius: "8px" },
  ".cm-tooltip-autocomplete ul li": { padding: ".3rem .7rem !important", fontFamily: "system-ui, sans-serif" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--tint)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: ".8rem" },
  ".cm-completionMatchedText": { textDecoration: "none", color: "var(--accent)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-textfield": PLAIN,
  ".cm-button": { ...PLAIN, backgroundImage: "none" },
});

const colours = HighlightStyle.define([
  { tag: tags.heading1, fontWeight: "700", fontSize: "1.25em" },
  { tag: tags.heading2, fontWeight: "700", fontSize: "1.12em" },
  { tag: tags.heading, fontWeight: "700" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.processingInstruction, tags.url, tags.comment, tags.meta, tags.quote], color: "var(--soft)" },
  { tag: [tags.link, tags.keyword, tags.tagName, tags.operatorKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.inserted], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.atom, tags.attributeName, tags.propertyName], color: "var(--warn)" },
  { tag: tags.deleted, color: "var(--bad)" },
]);

const named = new MatchDecorator({ regexp: LINKS, decoration: Decoration.mark({ class: "cm-named" }) });
const colourNames = ViewPlugin.define((view) => ({
  decorations: named.createDeco(view),
  update(update) { this.decorations = named.updateDeco(update, this.decorations); },
}), { decorations: (plugin) => plugin.decorations });

// Puts marks around the selection, or takes them away.
const around = (mark) => ({ state, dispatch }) => {
  const changed = state.changeByRange(({ from, to }) => {
    const size = mark.length, inside = state.sliceDoc(from, to);
    const before = state.sliceDoc(from - size, from), after = state.sliceDoc(to, to + size);
    if (before === mark && after === mark) {
      const changes = [{ from: from - size, to: from }, { from: to, to: to + size }];
      return { changes, range: EditorSelection.range(from - size, to - size) };
    }
    const changes = { from, to, insert: mark + inside + mark };
    return { changes, range: EditorSelection.range(from + size, to + size) };
  });
  dispatch(state.update(changed, { userEvent: "input", scrollIntoView: true }));
  return true;
};

// Indents the items of a list by the width of their marker; elsewhere Tab leaves the editor, as in any field.
const indent = (more) => ({ state, dispatch }) => {
  const changes = [];
  for (const { from, to } of state.selection.ranges) {
    for (let at = from; at <= to;) {
      const line = state.doc.lineAt(at), found = ITEM.exec(line.text);
      at = line.to + 1;
      if (!found) continue;
      const width = found[0].length - found[1].length;
      if (more) changes.push({ from: line.from, insert: " ".repeat(width) });
      else if (found[1]) changes.push({ from: line.from, to: line.from + Math.min(found[1].length, width) });
    }
  }
  if (!changes.length) return false;
  dispatch(state.update({ changes, userEvent: "input.indent" }));
  return true;
};

class CodeEditor extends HTMLElement {
  titles = async () => [];
  tags = async () => ({});
  toMarkdown = async () => ""; // HTML that was pasted
  #text = "";
  #quiet = false;
  #held = []; // places in the text

  connectedCallback() {
    if (this.view) return;
    const root = this.attachShadow({ mode: "open" });
    this.view = new EditorView({ root, parent: root, state: this.#state(this.#text) });
    this.view.scrollDOM.addEventListener("scroll", () => this.dispatchEvent(new Event("scrolled")));
  }

  #state(doc) {
    const keys = [
      ["Mod-s", () => this.#say("save")], ["Mod-Enter", () => this.#say("save")],
      ["Mod-b", around("**")], ["Mod-i", around("*")],
      ["Tab", acceptCompletion], ["Tab", indent(true)], ["Shift-Tab", indent(false)],
    ].map(([key, run]) => ({ key, run, preventDefault: key.startsWith("Mod") }));
    return EditorState.create({
      doc,
      extensions: [
        Prec.highest(keymap.of(keys)),
        history(), drawSelection(), dropCursor(), closeBrackets(), search({ top: true }), highlightSelectionMatches(),
        EditorState.allowMultipleSelections.of(true), EditorView.lineWrapping, indentUnit.of("  "),
        markdown({ base: markdownLanguage, codeLanguages, completeHTMLTags: false }),
        autocompletion({ override: [this.#completeLink, this.#completeTag], icons: false, interactionDelay: 0 }),
        keymap.of([...closeBracketsKeymap, ...KEYS, ...searchKeymap, ...historyKeymap, ...completionKeymap]),
        theme, syntaxHighlighting(colours), colourNames,
        EditorView.contentAttributes.of({
          "aria-label": this.getAttribute("label"), tabindex: "0", spellcheck: "true", autocapitalize: "sentences",
        }),
        EditorView.updateListener.of((update) => {
          for (const place of this.#held) place.at = update.changes.mapPos(place.at);
          if (update.docChanged && !this.#quiet) this.dispatchEvent(new Event("change"));
        }),
        EditorView.domEventHandlers({ paste: this.#paste, drop: this.#takeFiles }),
      ],
    });
  }

  #say(name) {
    this.dispatchEvent(new Event(name));
    return true;
  }

  #takeFiles = (event, view) => {
    const files = [...(event.clipboardData ?? event.dataTransfer).files];
    if (!files.length) return false;
    event.preventDefault();
    const at = event.type === "drop" && view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    if (event.type === "drop") view.dispatch({ selection: { anchor: at } });
    this.dispatchEvent(new CustomEvent("files", { detail: files }));
    return true;
  };

  // An address on a selection makes it a link, and HTML becomes Markdown. Ctrl+Shift+V has no HTML: it stays as it is.
  #paste = (event, view) => {
    if (this.#takeFiles(event, view)) return true;
    const text = event.clipboardData.getData("text/plain"), html = event.clipboardData.getData("text/html");
    const { from, to } = view.state.selection.main, chosen = view.state.sliceDoc(from, to);
    if (chosen && !/[\n[\]]/.test(chosen) && /^https?:\/\/\S+$/i.test(text.trim())) {
      event.preventDefault();
      this.insert(`[${chosen}](${text.trim()})`);
      return true;
    }
    if (!FORMATTED.test(html) || event.clipboardData.types.includes("vscode-editor-data")) return false;
    event.preventDefault();
    this.insert("");
    const put = this.hold();
    this.toMarkdown(html).catch(() => text).then((found) => put(found || text));
    return true;
  };

  #completeLink = async (context) => {
    const typed = context.matchBefore(/\[\[[^[\]|#\n]*$/);
    if (!typed) return null;
    const stop = new AbortController();
    context.addEventListener("abort", () => stop.abort());
    const found = await this.titles(typed.text.slice(2), stop.signal);
    return { from: typed.from + 2, filter: false, options: found.map((note) => ({
      label: note.alias ? `${note.alias} → ${note.title}` : note.title, detail: note.kind,
      apply(view, option, from, to) {
        const closed = view.state.sliceDoc(to, to + 2) === "]]";
        const text = note.alias ? `${note.link}|${note.alias}` : note.link;
        view.dispatch({
          changes: { from, to: closed ? to + 2 : to, insert: `${text}]]` },
          selection: { anchor: from + text.length + 2 },
          userEvent: "input.complete",
        });
      },
    })) };
  };

  #completeTag = async (context) => {
    const typed = context.matchBefore(/(?:^|\s)#[\p{L}\p{N}_/-]+$/u);
    if (!typed) return null;
    const all = Object.entries(await this.tags());
    const options = all.map(([label, count]) => ({ label, detail: `${count}` }));
    return { from: typed.from + typed.text.indexOf("#") + 1, options, validFor: /^[\p{L}\p{N}_/-]*$/u };
  };

  get value() { return this.view ? this.view.state.doc.toString() : this.#text; }

  // A text from elsewhere, which Undo keeps.
  set value(text) { this.replace(text, false); }

  // Another text, which nobody typed: only what differs is replaced, so that the cursor stays where it is.
  replace(text, mayUndo) {
    this.#text = text;
    if (!this.view || text === this.value) return;
    const before = this.value, most = Math.min(before.length, text.length);
    let from = 0, end = 0;
    while (from < most && before[from] === text[from]) from++;
    while (end < most - from && before[before.length - 1 - end] === text[text.length - 1 - end]) end++;
    this.#quiet = true;
    this.view.dispatch({
      changes: { from, to: before.length - end, insert: text.slice(from, text.length - end) },
      annotations: [Transaction.userEvent.of("set"), Transaction.addToHistory.of(mayUndo)],
    });
    this.#quiet = false;
  }

  insert(text) {
    this.view.dispatch(this.view.state.replaceSelection(text), { userEvent: "input.paste", scrollIntoView: true });
  }

  // What puts texts where the cursor is now, wherever it is then.
  hold() {
    const place = { at: this.view.state.selection.main.to };
    this.#held.push(place);
    return (insert) => {
      const { state } = this.view, changes = state.changes({ from: place.at, insert });
      const selection = state.selection.map(changes, 1);
      this.view.dispatch({ changes, selection, userEvent: "input.paste", scrollIntoView: true });
      place.at += insert.length;
    };
  }

  bold() { around("**")(this.view); }
  undo() { historyKeymap.find((one) => one.key === "Mod-z").run(this.view); }

  // Makes the line a task, or takes that back.
  task() {
    const { state } = this.view, line = state.doc.lineAt(state.selection.main.head);
    const [all, indent, mark] = /^(\s*)([-*+]\s+\[.\]\s|[-*+]\s)?/.exec(line.text);
    const insert = indent + (mark?.includes("[") ? "" : "- [ ] ");
    const anchor = Math.max(line.from + insert.length, state.selection.main.head + insert.length - all.length);
    const changes = { from: line.from, to: line.from + all.length, insert };
    this.view.dispatch({ changes, selection: { anchor }, userEvent: "input" });
  }

  select(from, to = from) { this.view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true }); }
  focus() { this.view.focus(); }

  // The line at the top of what is visible, from 0, with the part of it that is scrolled away.
  get topLine() {
    const { view } = this, top = view.scrollDOM.scrollTop - view.documentPadding.top;
    const block = view.lineBlockAtHeight(top), part = Math.max(0, Math.min(1, (top - block.top) / (block.height || 1)));
    return view.state.doc.lineAt(block.from).number - 1 + part;
  }
}

customElements.define("code-editor", CodeEditor);
