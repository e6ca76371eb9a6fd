// Editing a note, or writing a new one, with a preview.

import { get, part, post, put } from "./api.js";
import { draftOf, dropDraft, keepDraft } from "./drafts.js";
import { html, inTurn, notePath, nothing, problem, render, showBody, withCode } from "./parts.js";

const KINDS = [["memory", "short"], ["article", "long"], ["entity", "who or what"], ["resource", "a link"]];
const tagsOf = (text) => text.split(/[,\s]+/).map((tag) => tag.replace(/^#/, "")).filter(Boolean);

// The editor's own style, loaded with the first note that is edited.
const style = new Promise((done) => {
  const href = new URL("edit.css", import.meta.url);
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: done, onerror: done }));
});

// `ref` is empty for a new note; `note` and `shown` are the answers of /notes/REF and /rendered/REF.
export async function edit(main, { signal, go, toast, setKeys, onChange }, { ref, note, shown, title }) {
  const isNew = !ref;
  let timer, left;

  // -- what is edited

  // The note as it is now, after a change elsewhere.
  const load = inTurn(async () => {
    try {
      [note, shown] = await Promise.all([get(`/notes/${part(ref)}`, {}, signal), get(`/rendered/${part(ref)}`, {}, signal)]);
      ref = shown.ref;
    } catch (error) {
      if (error.status !== 404) throw error;
      shown = undefined; // it was forgotten; what was typed stays
      draw();
      throw error;
    }
    draw();
  });

  // Of a note whose frontmatter cannot be read, the whole file is edited.
  const wrong = note?.problem;
  let whole;
  try {
    if (wrong) whole = await get(`/whole/${part(ref)}`, {}, signal);
  } catch (error) {
    if (error.status !== 400) throw error;
    toast(error.message);
    return go(notePath(ref));
  }
  const fresh = isNew ? { title: title ?? "", tags: "", text: "", source: "memory", url: "" }
    : { title: note.title, tags: shown.own_tags.join(", "), text: note.body, version: note.version, wrong, ...whole };
  const draft = draftOf(ref), now = { before: fresh, ...fresh, ...draft };

  function replaceText(values) {
    if (left) return;
    Object.assign(now, values);
    keep();
    draw();
    preview();
  }

  function keep() {
    const { title, tags, text, version, source, url, before } = now;
    const same = ["title", "tags", "text", "url"].every((name) => now[name] === before[name]);
    if (same) dropDraft(ref);
    else keepDraft(ref, { title, tags, text, version, source, url });
  }

  function type(name, event) {
    now[name] = event.target.value;
    keep();
    clearTimeout(timer);
    if (name === "text") timer = setTimeout(preview, 200);
    if (name === "source") draw();
  }

  async function preview() {
    if (left || now.wrong || now.present !== undefined) return;
    const text = now.text, found = await post("/rendered", { text, ref: ref || null }, signal);
    const pane = main.querySelector(".edit .prose");
    if (pane && now.text === text) showBody(pane, { html: found.html, ref, title: "" }, undefined, signal);
  }

  function stop() {
    dropDraft(ref);
    clearTimeout(timer);
    left = true;
  }

  // Without a version the present text is replaced, and kept in the trash.
  async function save(version = now.version) {
    if (left || now.saving) return;
    Object.assign(now, { saving: true, error: undefined });
    draw();
    let saved;
    try {
      saved = await send(version);
    } catch (error) {
      now.saving = false;
      if (signal.aborted) throw error;
      if (error.status === 409 && error.data.present !== null) now.present = error.data.present;
      else now.error = error;
      return draw();
    }
    stop();
    toast(saved.outcome === "duplicate" ? `Nothing was written: ${saved.detail}`
      : saved.related?.length ? `Saved. Similar: ${saved.related.map((one) => one.title).join(", ")}`
      : saved.detail && version === null ? "Saved; the other text is in the trash" : "Saved");
    if (!signal.aborted) go(notePath(saved.ref));
  }

  function send(version) {
    const { title, tags, text, source, url, before, wrong } = now;
    if (isNew) {
      const fields = source === "resource" && url.trim() ? { url: url.trim() } : {};
      return post("/notes", { content: text, title: title.trim() || null, tags: tagsOf(tags), source, fields });
    }
    if (wrong) return put(`/whole/${part(ref)}`, { text, version });
    const change = { version: version ?? null };
    if (text !== before.text) change.content = text;
    if (title !== before.title) change.title = title;
    if (tags !== before.tags) change.tags = tagsOf(tags);
    return put(`/notes/${part(ref)}`, change);
  }

  async function takeTheirs() {
    const { text, version, present, before } = now;
    await load();
    replaceText({ text: note.body, version: note.version, present: undefined, before: { ...before, text: note.body } });
    toast("This is the other text now", () => replaceText({ text, version, present, before }));
  }

  function cancel() {
    const draft = draftOf(ref), again = `${notePath(ref)}?edit=1`;
    stop();
    if (draft) toast("Discarded what you typed", () => { keepDraft(ref, draft); go(again); });
    go(isNew ? "/" : notePath(ref));
  }

  function submit(event) {
    event.preventDefault();
    save();
  }

  function keyInEditor(event) {
    if ((event.ctrlKey || event.metaKey) && (event.key === "Enter" || event.key === "s")) submit(event);
  }

  // -- drawing

  const editor = () => html`<h1>${isNew ? "New note" : `Edit: ${note.title}`}</h1>
    ${!isNew && !now.saving && now.present === undefined && now.version !== (shown && note.version) ? html`<p class="problem" role="status">This note was just changed elsewhere. If you save, you will see both texts.</p>` : nothing}
    ${now.error ? problem(now.error) : nothing}
    <form class="edit" @submit=${submit} @keydown=${keyInEditor}>
      ${now.wrong ? html`<p class="problem">${withCode(now.wrong)}</p>` : html`<div class="row"><div class="grow field"><label for="title">Title</label><input id="title" .value=${now.title} ?readonly=${now.saving} @input=${(event) => type("title", event)} placeholder=${isNew ? "made from the first sentence" : ""}></div>
        <div class="field"><label for="tags">Tags</label><input id="tags" .value=${now.tags} ?readonly=${now.saving} @input=${(event) => type("tags", event)} placeholder="deploy, ops"></div>
        ${isNew ? html`<div class="field"><label for="kind">Kind</label><select id="kind" @change=${(event) => type("source", event)}>${KINDS.map(([kind, about]) => html`<option value=${kind} .selected=${kind === now.source}>${kind} (${about})</option>`)}</select></div>` : nothing}
        ${isNew && now.source === "resource" ? html`<div class="field"><label for="url">Link</label><input id="url" type="url" .value=${now.url} ?readonly=${now.saving} @input=${(event) => type("url", event)} placeholder="https://example.org"></div>` : nothing}</div>`}
      ${now.present === undefined ? nothing : html`<div class="problem" role="alert"><strong>This note was changed while you edited it.</strong> Nothing was written, and both texts are here.</div>`}
      <div class="split"><div class="field"><label for="text">${now.present === undefined ? "Text" : "Your text"}</label>
          <textarea id="text" .value=${now.text} ?readonly=${now.saving} @input=${(event) => type("text", event)} required></textarea></div>
        ${now.wrong ? nothing : now.present === undefined
          ? html`<div class="field"><span class="soft small" id="preview-name">Preview</span><section class="card prose" tabindex="0" aria-labelledby="preview-name"></section></div>`
          : html`<div class="field"><label for="present">The text as it is now</label><textarea id="present" readonly .value=${now.present}></textarea></div>`}</div>
      <div class="row">${now.present === undefined ? html`<button class="primary">Save</button>`
        : html`<button type="button" class="primary" @click=${() => save(null)}>Save mine, keep the other in the trash</button><button type="button" @click=${takeTheirs}>Continue with the other text</button>`}
        <button type="button" ?disabled=${now.saving} @click=${cancel}>Cancel</button>${now.present === undefined ? html`<span class="soft small">Ctrl+Enter saves</span>` : nothing}</div>
    </form>`;

  const draw = () => { if (!left) render(editor(), main); };

  setKeys({});
  await style;
  if (!isNew) onChange((refs, many) => { if (many || refs.includes(ref)) load(); });
  draw();
  if (draft) toast("Your unsaved text is back", () => replaceText(fresh));
  const first = main.querySelector(isNew && !now.title ? "#title" : "#text");
  const lines = now.text.split("\n"), bad = wrong ? Math.max(/\d+/.exec(wrong) - 1, 0) : 0;
  const start = lines.slice(0, bad).join("\n").length + (bad > 0);
  first.setSelectionRange(start, start + (wrong ? lines[bad]?.length : 0));
  first.focus();
  await preview();
}
