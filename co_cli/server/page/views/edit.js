// Editing a note, or writing a new one: what is typed is saved by itself, with a preview next to it.

import "../parts/code-editor.js";
import { ApiError, get, part, post, put } from "../parts/api.js";
import { upload } from "../parts/drop.js";
import { merged, mergeParts, wordChanges } from "../parts/merge.js";
import {
  html, inTurn, menuButton, notePath, nothing, problem, render, sentence, showBody, style,
  withCode,
} from "../parts/pieces.js";
import { draftOf, dropDraft, effect, keepDraft, online } from "../parts/store.js";

const KINDS = [["memory", "short"], ["article", "long"], ["entity", "who or what"], ["resource", "a link"]];
const FIELDS = ["title", "tags", "text", "url"];
const SAVE = 1500, PREVIEW = 200; // milliseconds after the last key
const isPhone = matchMedia("(max-width: 760px)"); // there the preview takes the place of the editor
const STRIP = [ // above the keyboard of a phone
  ["[[", "Link a note", (field) => field.insert("[[")], ["#", "Tag", (field) => field.insert("#")],
  ["☐", "Task", (field) => field.task()], ["B", "Bold", (field) => field.bold()],
  ["↶", "Undo", (field) => field.undo()],
];
const inWords = (text) => text.split(/\s+/).join(" ").trim();

let leaving; // the last save of somebody who went elsewhere: what is opened next has its text, or its draft
export const lastSave = () => Promise.allSettled([leaving]);

const tagsOf = (text) => text.split(/[,\s]+/).map((tag) => tag.replace(/^#/, "")).filter(Boolean);

// `ref` is empty for a new note; `note` and `shown` are the answers of /notes/REF and /rendered/REF.
export async function edit(main, { signal, go, toast, setKeys, onChange }, { ref, draftId, note, shown, title }) {
  const wrong = note?.problem;
  let whole, saveTimer, previewTimer, tags, tagging = false;
  let isShown = !isPhone.matches && localStorage.getItem("co-preview") !== "off";
  try {
    if (wrong) whole = await get(`/whole/${part(ref)}`, {}, signal); // its frontmatter cannot be read
  } catch (error) {
    if (error.status !== 400) throw error;
    toast(error.message);
    return go(notePath(ref));
  }
  const fieldsOf = ({ title, body: text, metadata }, tags) => ({ title, tags, text, url: `${metadata.url ?? ""}` });
  const fresh = ref ? fieldsOf({ ...note, body: whole?.text ?? note.body }, shown.own_tags.join(", "))
    : { title: title ?? "", tags: "", text: "", url: "" };
  // A draft with the texts of the file was saved, and the answer got lost.
  const wasSaved = FIELDS.every((name) => draftOf(draftId)?.[name].trim() === fresh[name].trim());
  if (wasSaved) dropDraft(draftId);
  const draft = draftOf(draftId), { version, ...kept } = draft ?? {};
  // `saved` is what the file has, as far as we know; `now` is what was typed; a conflict has the parts of a merge
  let saved = { ...fresh, version: draft?.version ?? whole?.version ?? note?.version }, state = "", failed, conflict;
  let saidLinks = false, saidDraft;
  let base = fresh.text; // is kept in the trash when a save changes it, once
  const hasBase = (text) => base !== "" && inWords(text).includes(inWords(base));
  const first = fresh, now = { source: note?.source ?? "memory", ...fresh, ...kept };
  if (draft) saved = { ...saved, ...draft.before };
  await style("edit");
  signal.throwIfAborted(); // or its keys would be those of another view

  // -- saving

  const unsaved = () => FIELDS.some((name) => now[name] !== saved[name]);
  const field = () => main.querySelector("code-editor");

  function keep() {
    const { title, tags, text, url, source } = now;
    if (!unsaved()) return dropDraft(draftId);
    const before = conflict ? { text: conflict.theirs, version: conflict.version } : saved; // what the text is made of
    keepDraft(draftId, { title, tags, text, url, source, version: before.version, before: { text: before.text } });
  }

  function type(name, value) {
    now[name] = value;
    failed = undefined;
    state = unsaved() ? "" : state;
    clearTimeout(saveTimer);
    if (!wrong && !conflict && isReady()) saveTimer = setTimeout(save, SAVE);
    if (name === "text") {
      clearTimeout(previewTimer);
      previewTimer = setTimeout(preview, PREVIEW);
    }
    draw();
    keep(); // last: a browser that has no room for it throws
  }

  // A new note without a title is named after its first sentence, so that has to be finished.
  const isNamed = () => Boolean(ref || now.title.trim() || /[.!?]\s|\n/.test(now.text.trimStart()));
  const isReady = () => Boolean(now.text.trim()) && isNamed();

  const save = inTurn(async () => {
    clearTimeout(saveTimer);
    if (!unsaved() || conflict) return;
    if (!now.text.trim()) { state = "An empty note is not saved"; return draw(); }
    const sent = { ...now };
    state = "Saving…";
    draw();
    try {
      const answer = await (ref ? change(sent) : create(sent));
      if (answer.outcome === "duplicate") {
        state = "Not saved";
        failed = { message: `Nothing was written: ${answer.detail}` };
        return draw();
      }
      const renamed = ref && note && sent.title !== note.title;
      if (answer.related?.length) toast(`Saved. Similar: ${answer.related.map((one) => one.title).join(", ")}`);
      await settle(answer, sent);
      if (renamed && !saidLinks && note.linked_from.length) {
        saidLinks = true;
        toast(`Renamed. Links to it keep working: ${note.linked_from.length}`);
      }
    } catch (error) {
      if (error.status === 409 && error.data.present !== null) await showConflict();
      else {
        failed = error;
        state = "Not saved";
      }
    }
    draw();
    keep();
  });

  function create({ title, tags, text, source, url }) {
    const fields = source === "resource" && url.trim() ? { url: url.trim() } : {};
    return post("/notes", { content: text, title: title.trim() || null, tags: tagsOf(tags), source, fields });
  }

  function change({ title, tags, text, url }) {
    if (wrong) return put(`/whole/${part(ref)}`, { text, version: saved.version });
    const values = { version: saved.version, keep: hasBase(saved.text) && !hasBase(text) };
    if (text !== saved.text) values.content = text;
    if (title !== saved.title) values.title = title;
    if (tags !== saved.tags) values.tags = tagsOf(tags);
    if (url !== saved.url) values.fields = { url: url.trim() || null };
    return put(`/notes/${part(ref)}`, values);
  }

  // After a save: the version that the next one is based on, unless somebody changed the note right after it.
  async function settle(answer, sent) {
    const isNew = !ref;
    saidDraft?.remove(); // its Undo is about what is not saved
    dropDraft(draftId);
    draftId = ref = answer.ref;
    if (wrong) return void (saved = { ...sent });
    note = await get(`/notes/${part(ref)}`, {});
    const same = note.body.trim() === sent.text.trim();
    saved = { ...sent, version: same ? note.version : undefined };
    if (!sent.title) { now.title ||= note.title; saved.title = note.title; }
    if (answer.masked) { // a secret
      Object.assign(saved, { text: note.body, version: note.version });
      replaceText(note.body, false);
    } else if (!same) saved.version = "changed right after our save"; // the next save asks what to do
    if (isNew && !signal.aborted) history.replaceState(history.state, "", `${notePath(ref)}?edit=1`);
    state = unsaved() ? "" : "Saved";
  }

  function replaceText(text, mayUndo = true) {
    now.text = text;
    field()?.replace(text, mayUndo);
    keep();
    preview();
  }

  // The note was changed elsewhere: shown at once if nothing is unsaved here.
  const follow = inTurn(async () => {
    const known = saved.version;
    if (!ref || state === "Saving…" || conflict || wrong) return;
    const present = await get(`/notes/${part(ref)}`, {}, signal);
    if (present.version === known) return;
    const own = (await get(`/rendered/${part(ref)}`, {}, signal)).own_tags.join(", ");
    if (state === "Saving…" || saved.version !== known) return; // a save has seen it
    if (unsaved()) return save();
    note = present;
    saved = { ...fieldsOf(note, own), version: note.version };
    base = note.body;
    Object.assign(now, saved);
    replaceText(note.body, false);
    draw();
  });

  async function leave() {
    if (unsaved() && !conflict && now.text.trim()) await save();
    if (signal.aborted || unsaved() && now.text.trim()) return draw(); // somebody went elsewhere meanwhile
    dropDraft(draftId);
    if (ref && history.state?.from === ref) history.back(); // to the note: an editing session is no entry of its own
    else go(ref ? notePath(ref) : "/", { replace: true });
  }

  // What was typed before and not saved is not wanted.
  function discard() {
    saved = { ...fresh, version: whole?.version ?? note?.version };
    Object.assign(now, fresh);
    replaceText(fresh.text);
    draw();
  }

  const leaveSaved = () => { if (!unsaved()) leave(); };

  // Back to how it was when editing began; that is saved, too.
  function revert() {
    const before = { ...now }, become = (other) => {
      Object.assign(now, other);
      replaceText(now.text);
      type("text", now.text);
    };
    become(first);
    toast("This is the text as it was before", () => become(before), signal);
  }

  // -- a conflict

  async function showConflict() {
    note = await get(`/notes/${part(ref)}`, {});
    if (note.body.trim() === now.text.trim()) { // it was saved, and the answer got lost
      saved = { ...saved, text: now.text, version: note.version };
      keep();
      state = "Saved";
      if (unsaved()) save(); // of the title or the tags, after this one
      return;
    }
    const [base, mine, theirs] = [saved.text, now.text, note.body].map((text) => `${text.trimEnd()}\n`);
    conflict = { mine, theirs, version: note.version, parts: mergeParts(base, mine, theirs) };
    state = "Not saved";
    replaceText(merged(conflict.parts));
  }

  function choose(one, choice) {
    const before = merged(conflict.parts);
    one.choice = choice;
    replaceText(merged(mergeParts(before, now.text, merged(conflict.parts)))); // what was typed into it stays
    draw();
  }

  // The result replaces the text that is there now, and no other; what it lacks of that is in the trash then.
  function finish(text) {
    base = conflict.theirs;
    saved = { ...saved, text: base, version: conflict.version };
    conflict = undefined;
    replaceText(text);
    draw();
    return save();
  }

  // -- the preview

  async function preview() {
    if (wrong || signal.aborted) return;
    const text = now.text, found = await post("/rendered", { text, ref: ref || null }, signal).catch((error) => {
      if (!(error instanceof ApiError)) throw error; // a save says what is wrong, and the editor stays
    });
    const pane = main.querySelector(".edit .prose");
    if (!found || !pane || now.text !== text) return;
    showBody(pane, { html: found.html, ref, title: "" }, undefined, signal);
    keepInStep();
  }

  // Scrolls the preview to what is at the top of the editor.
  function keepInStep() {
    const pane = main.querySelector(".edit .prose");
    const blocks = [...pane?.querySelectorAll("[data-line]") ?? []];
    if (!blocks.length) return;
    const blank = /^\s*\n/.exec(now.text)?.[0].split("\n").length - 1 || 0;
    const line = field().topLine - blank + +blocks[0].dataset.line;
    const before = blocks.findLast((one) => +one.dataset.line <= line);
    const after = blocks.find((one) => +one.dataset.line > line);
    if (!before) return pane.scrollTo(0, 0);
    const top = pane.getBoundingClientRect().top - pane.scrollTop;
    const place = (one) => one.getBoundingClientRect().top - top;
    const end = after ? [+after.dataset.line, place(after)] : [+before.dataset.end + 1, pane.scrollHeight];
    const start = [+before.dataset.line, place(before)], part = (line - start[0]) / Math.max(1, end[0] - start[0]);
    pane.scrollTo(0, start[1] + (end[1] - start[1]) * part - 16);
  }

  // -- files

  async function addFiles({ detail: files }) {
    const put = field().hold();
    if (!ref) await save();
    if (!ref) return toast("Write something first: a file is stored next to its note");
    for (const file of files) {
      try {
        put(await upload(ref, file));
      } catch (error) {
        toast(error.message);
      }
    }
  }

  // -- drawing

  const status = () => html`<span class="soft small" role="status">${state || (unsaved() ? "…" : "")}</span>`;
  const mayRevert = () => ref && !wrong && FIELDS.some((name) => now[name] !== first[name]);

  const about = () => html`<div class="row fields">
    <div class="field"><label for="tags">Tags</label><input id="tags" .value=${now.tags} placeholder="Add tags"
      @input=${(event) => type("tags", event.target.value)}></div>
    ${ref ? nothing : html`<div class="field"><label for="kind">Kind</label>
      <select id="kind" @change=${(event) => type("source", event.target.value)}>${KINDS.map(([kind, text]) => html`
        <option value=${kind} .selected=${kind === now.source}>${kind} (${text})</option>`)}</select></div>`}
    ${now.source === "resource" ? html`<div class="field"><label for="url">Link</label>
      <input id="url" type="url" .value=${now.url} placeholder="https://example.org"
        @input=${(event) => type("url", event.target.value)}></div>` : nothing}</div>`;

  const differing = (one, number) => html`<fieldset class="card part"><legend class="small">Part ${number}</legend>
    <p class="words">${wordChanges(one.theirs, one.mine).map(([kind, text]) => kind === "same" ? text
      : kind === "added" ? html`<ins>${text}</ins>` : html`<del>${text}</del>`)}</p>
    <div class="row">${[["theirs", "Theirs"], ["mine", "Mine"], ["both", "Both"]].map(([choice, name]) => html`
      <label><input type="radio" name="part-${number}" .checked=${one.choice === choice}
        @change=${() => choose(one, choice)}> ${name}</label>`)}</div></fieldset>`;

  const merging = () => html`<section class="merge" aria-label="What differs">
    <p class="problem" role="alert"><strong>This note was changed while you edited it.</strong> Nothing was written, and
      nothing is lost: choose what to keep of each part, or edit the result below.</p>
    <p class="small soft">What only they have is <del>red</del>, what only you have is <ins>green</ins>.</p>
    ${conflict.parts.filter((one) => one.same === undefined).map((one, place) => differing(one, place + 1))}
    <div class="row"><button class="primary" @click=${() => finish(now.text)}>Save the result</button>
      <button @click=${() => finish(conflict.mine)}>Save mine</button>
      <button @click=${() => finish(conflict.theirs)}>Keep theirs</button></div></section>`;

  const editor = () => html`<div @keydown=${press}
      class="edit ${isShown && !wrong ? "both" : ""} ${tagging ? "tagging" : ""}">
    <h1 class="hidden">${ref ? `Edit: ${now.title}` : "New note"}</h1>
    <div class="row top"><button class="quiet done" @click=${leave} title="Esc">‹ ${wrong ? "Save" : "Done"}</button>
      <span class="grow">${status()}</span>
      ${wrong ? nothing : html`<button class="quiet wide" aria-pressed=${isShown}
          @click=${togglePreview}>Preview</button>
        ${mayRevert() ? html`<button class="quiet wide" @click=${revert}>Revert</button>` : nothing}
        ${menuButton("More", [["Tags and kind", toggleTags], [isShown ? "Text" : "Preview", togglePreview],
          ...mayRevert() ? [["Revert", revert]] : []])}`}</div>
    <input id="title" class="title" aria-label="Title" dir="auto" ?readonly=${wrong} .value=${now.title}
      autocomplete="off" placeholder=${ref ? "Title" : "Title (optional)"} @keydown=${leaveTitle}
      @input=${(event) => type("title", event.target.value)}>
    ${failed?.status ? problem(failed) : nothing}
    ${wrong ? html`<p class="problem">${withCode(sentence(wrong))}</p>` : about()}
    ${conflict ? merging() : nothing}
    <div class="panes"><code-editor label="Text" @change=${(event) => type("text", event.target.value)}
        @save=${() => wrong ? leave() : save()} @files=${addFiles} @scrolled=${keepInStep}></code-editor>
      ${wrong ? nothing : html`<section class="prose" tabindex="0" aria-label="Preview"></section>`}</div>
    ${wrong || !isPhone.matches ? nothing : html`<div class="strip" role="toolbar" aria-label="Marks">${STRIP.map(
      ([sign, name, fn]) => html`<button class="quiet" aria-label=${name} @click=${() => fn(field())}
        @pointerdown=${keepFocus}>${sign}</button>`)}</div>`}
    ${wrong ? nothing : html`<p class="soft small hint">Saved as you type. <kbd>[[</kbd> links a note, <kbd>#</kbd>
      names a tag; drop or paste pictures and files.</p>`}</div>`;

  const keepFocus = (event) => event.preventDefault(); // in the text, with the keyboard

  // From the title to the text without the mouse.
  function leaveTitle(event) {
    if (event.isComposing || event.shiftKey || event.key !== "Enter" && event.key !== "Tab") return;
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    field().focus();
  }

  function toggleTags() {
    tagging = !tagging;
    draw();
    if (tagging) main.querySelector("#tags").focus();
  }

  function togglePreview() {
    isShown = !isShown;
    if (!isPhone.matches) localStorage.setItem("co-preview", isShown ? "on" : "off");
    draw();
    keepInStep();
  }

  function press(event) {
    const mod = event.ctrlKey || event.metaKey;
    if (event.defaultPrevented || event.isComposing) return;
    if (mod && (event.key === "s" || event.key === "Enter")) {
      event.preventDefault();
      if (wrong) leave(); else save();
    } else if (event.key === "Escape") {
      event.preventDefault();
      leaveSaved();
    }
  }

  // Its first line is the title of a new note, as if the title had the focus; all else is text.
  function takeEarly(typed) {
    const [title, ...rest] = ref || now.title ? ["", typed] : typed.split("\n");
    if (title) type("title", title);
    if (rest.length) field().insert(rest.join("\n"));
  }

  const draw = () => { if (!signal.aborted) render(editor(), main); };

  setKeys({ Escape: ["Done, if all is saved", leaveSaved], "Mod+s": ["Save now", () => wrong ? leave() : save()] });
  onChange((refs, many) => { if (many || refs.includes(ref)) return follow(); });
  signal.addEventListener("abort", () => { if (!wrong && isReady()) leaving = save(); });
  const hidden = () => { if (document.visibilityState === "hidden" && !wrong && isReady()) save(); };
  document.addEventListener("visibilitychange", hidden, { signal });
  effect(() => { if (online.value === "on" && failed?.status === 0) save(); }, signal);
  const early = main.querySelector(".early"), typed = early?.value ?? ""; // what was typed before the editor was there
  early?.remove();
  draw();
  Object.assign(field(), {
    value: now.text,
    titles: async (q, stop) => (await get("/titles", { q, limit: 12 }, stop)).filter((one) => one.link),
    toMarkdown: async (html) => (await post("/markdown", { html }, signal)).text,
    tags: async () => tags ??= await get("/tags", {}, signal),
  });
  if (draft) saidDraft = toast("Your unsaved text is back", discard, signal);
  if (wrong) {
    const lines = now.text.split("\n"), bad = Math.max(/\d+/.exec(wrong) - 1, 0);
    const start = lines.slice(0, bad).join("\n").length + (bad > 0);
    field().select(start, start + (lines[bad]?.length ?? 0));
  }
  if (!ref && !now.title && !typed.includes("\n")) main.querySelector("#title").focus();
  else field().focus();
  if (typed) takeEarly(typed);
  await preview();
}
