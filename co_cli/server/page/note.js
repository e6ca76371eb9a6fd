// One note: read it, edit it with a preview, see its links and its history, forget it.

import { del, get, mayWrite, part, post, put, sample } from "./api.js";
import { badge, count, dialog, html, inTurn, light, noteLink, notePath, nothing, once, problem, render, showBody, svg, when, withCode } from "./parts.js";

const MOST_IN_RING = 14;
const KINDS = [["memory", "short"], ["article", "long"], ["entity", "who or what"], ["resource", "a link"]];
const draftKey = (ref) => `co-draft:${ref}`;
const tagsOf = (text) => text.split(/[,\s]+/).map((tag) => tag.replace(/^#/, "")).filter(Boolean);
const size = (bytes) => bytes > 0 ? `+${bytes}` : `${bytes}`;

// The notes around this one; the lists next to it say the same to screen readers.
function ring(title, around, go) {
  const shown = around.slice(0, MOST_IN_RING);
  return svg`<svg class="ring" viewBox="-100 -100 200 200" aria-hidden="true">${shown.map((one, place) => {
    const angle = 2 * Math.PI * place / shown.length - Math.PI / 2, x = 70 * Math.cos(angle), y = 70 * Math.sin(angle);
    return svg`<line x1="0" y1="0" x2=${x} y2=${y}/><circle class=${one.kind} cx=${x} cy=${y} r="9" @click=${() => go(notePath(one.ref))}><title>${one.title}</title></circle>`;
  })}<circle r="14" class="centre"><title>${title}</title></circle></svg>`;
}

const diffLine = (line) => html`<span class=${{ "+": "added", "-": "removed", "@": "soft" }[line[0]] ?? ""}>${line}
</span>`;

export async function open(main, { rest, query, signal, go, toast, setKeys, onChange }) {
  let ref = rest, opened = !sample.on, note, shown, past, edit, timer;
  const isNew = !rest;

  // -- reading

  // What is lit stays lit; at first it is what the address names.
  function drawBody() {
    draw();
    const body = main.querySelector(".prose"), lit = [...body.querySelectorAll(".lit")];
    const wanted = /^#L(\d+)(?:-L?(\d+))?(?:~\w{4})?$/.exec(location.hash);
    const lines = lit.length ? [+lit[0].dataset.line, +lit.at(-1).dataset.end] : wanted ? [+wanted[1], +(wanted[2] ?? wanted[1])] : shown.lines;
    const first = showBody(body, shown, lines, signal);
    if (!lit.length) first?.scrollIntoView({ block: "center" });
    draw();
  }

  // The note as it is now, then its history; it can be forgotten between the two.
  const load = inTurn(async () => {
    try {
      [note, shown] = await Promise.all([
        get(`/notes/${part(ref)}`, opened ? { opened } : {}, signal),
        get(`/rendered/${part(ref)}`, {}, signal),
      ]);
      [ref, opened] = [shown.ref, false];
      document.title = `${note.title} · co`;
      if (edit) return draw();
      drawBody();
      if (location.search === "?edit=1") {
        history.replaceState(null, "", location.pathname); // so that a reload shows the note
        startEdit();
      }
      past = await get(`/history/${part(ref)}`, {}, signal);
      if (!edit) draw();
    } catch (error) {
      if (error.status !== 404) throw error;
      shown = undefined; // nothing to edit or to forget
      if (!edit) return missing(error);
      draw();
      throw error;
    }
  });

  function jump(line) {
    const body = main.querySelector(".prose");
    (light(body, [line, line]) ?? body).scrollIntoView({ block: "center" });
  }

  async function compare(version, name) {
    const { diff } = await get(`/versions/${part(ref)}`, { version }, signal);
    dialog(`From ${name} to now`, diff.length ? html`<pre class="diff" tabindex="0">${diff.slice(2).map(diffLine)}</pre>` : html`<p>Nothing changed since.</p>`);
  }

  const forget = () => once(`forget ${ref}`, async () => {
    if (!shown?.writable || sample.on || edit) return;
    const gone = await del(`/notes/${part(ref)}`);
    const again = gone.valid_again.length ? `. Valid again, because it superseded them: ${gone.valid_again.join(", ")}` : "";
    toast(`Forgotten: ${note.title}${again}`, restore);
    if (!signal.aborted) go("/");
  });

  const restore = () => once(`restore ${ref}`, async () => {
    await post("/restored", { ref });
    go(notePath(ref));
  });

  // A note that is not there, or no longer.
  function missing(error) {
    render(html`<h1>Not found</h1>${problem(error)}<div class="row">
      ${error.kind === "note_forgotten" && mayWrite() ? html`<button class="primary" @click=${restore}>Restore it</button>` : nothing}
      <a class="button" href="/">Search</a></div>`, main);
  }

  // -- writing

  // Of a note whose frontmatter cannot be read, the whole file is edited.
  async function startEdit() {
    if (edit || !isNew && (!shown?.writable || sample.on)) return;
    const wrong = note?.problem, whole = wrong && await get(`/whole/${part(ref)}`, {}, signal);
    if (edit || !isNew && !shown) return; // meanwhile
    const fresh = isNew ? { title: query.get("title") ?? "", tags: "", text: "", source: "memory", url: "" }
      : { title: note.title, tags: shown.own_tags.join(", "), text: note.body, version: note.version, wrong, ...whole };
    const draft = JSON.parse(localStorage.getItem(draftKey(ref)) ?? "null");
    edit = { before: fresh, ...fresh, ...draft };
    if (draft) toast("Your unsaved text is back", () => replaceText(fresh));
    draw();
    preview();
    const first = main.querySelector(isNew && !edit.title ? "#title" : "#text");
    const lines = edit.text.split("\n"), bad = wrong ? Math.max(/\d+/.exec(wrong) - 1, 0) : 0, start = lines.slice(0, bad).join("\n").length + (bad > 0);
    first.setSelectionRange(start, start + (wrong ? lines[bad]?.length : 0));
    first.focus();
  }

  function replaceText(values) {
    if (!edit) return;
    Object.assign(edit, values);
    keepDraft();
    draw();
    preview();
  }

  function keepDraft() {
    const { title, tags, text, version, source, url, before } = edit;
    const same = ["title", "tags", "text", "url"].every((name) => edit[name] === before[name]);
    if (same) localStorage.removeItem(draftKey(ref));
    else localStorage.setItem(draftKey(ref), JSON.stringify({ title, tags, text, version, source, url }));
  }

  function type(name, event) {
    edit[name] = event.target.value;
    keepDraft();
    clearTimeout(timer);
    if (name === "text") timer = setTimeout(preview, 200);
    if (name === "source") draw();
  }

  async function preview() {
    if (!edit || edit.wrong || edit.present !== undefined) return;
    const text = edit.text, found = await post("/rendered", { text, ref: ref || null }, signal);
    const pane = main.querySelector(".edit .prose");
    if (pane && edit?.text === text) showBody(pane, { html: found.html, ref, title: "" }, undefined, signal);
  }

  function stopEdit() {
    localStorage.removeItem(draftKey(ref));
    clearTimeout(timer);
    edit = undefined;
  }

  // Without a version the present text is replaced, and kept in the trash.
  async function save(version = edit?.version) {
    if (!edit || edit.saving) return;
    Object.assign(edit, { saving: true, error: undefined });
    draw();
    let saved;
    try {
      saved = await send(version);
    } catch (error) {
      edit.saving = false;
      if (signal.aborted) throw error;
      if (error.status === 409 && error.data.present !== null) edit.present = error.data.present;
      else edit.error = error;
      return draw();
    }
    stopEdit();
    toast(saved.outcome === "duplicate" ? `Nothing was written: ${saved.detail}`
      : saved.related?.length ? `Saved. Similar: ${saved.related.map((one) => one.title).join(", ")}`
      : saved.detail && version === null ? "Saved; the other text is in the trash" : "Saved");
    if (signal.aborted) return;
    if (isNew) go(notePath(saved.ref));
    else load();
  }

  function send(version) {
    const { title, tags, text, source, url, before, wrong } = edit;
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
    const { text, version, present, before } = edit;
    await load();
    replaceText({ text: note.body, version: note.version, present: undefined, before: { ...before, text: note.body } });
    toast("This is the other text now", () => replaceText({ text, version, present, before }));
  }

  function cancel() {
    const draft = localStorage.getItem(draftKey(ref)), again = `${notePath(ref)}?edit=1`;
    stopEdit();
    if (draft) toast("Discarded what you typed", () => { localStorage.setItem(draftKey(ref), draft); go(again); });
    if (isNew) return go("/");
    if (shown) drawBody();
    return load();
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
    ${!isNew && !edit.saving && edit.present === undefined && edit.version !== (shown && note.version) ? html`<p class="problem" role="status">This note was just changed elsewhere. If you save, you will see both texts.</p>` : nothing}
    ${edit.error ? problem(edit.error) : nothing}
    <form class="edit" @submit=${submit} @keydown=${keyInEditor}>
      ${edit.wrong ? html`<p class="problem">${withCode(edit.wrong)}</p>` : html`<div class="row"><div class="grow field"><label for="title">Title</label><input id="title" .value=${edit.title} ?readonly=${edit.saving} @input=${(event) => type("title", event)} placeholder=${isNew ? "made from the first sentence" : ""}></div>
        <div class="field"><label for="tags">Tags</label><input id="tags" .value=${edit.tags} ?readonly=${edit.saving} @input=${(event) => type("tags", event)} placeholder="deploy, ops"></div>
        ${isNew ? html`<div class="field"><label for="kind">Kind</label><select id="kind" @change=${(event) => type("source", event)}>${KINDS.map(([kind, about]) => html`<option value=${kind} .selected=${kind === edit.source}>${kind} (${about})</option>`)}</select></div>` : nothing}
        ${isNew && edit.source === "resource" ? html`<div class="field"><label for="url">Link</label><input id="url" type="url" .value=${edit.url} ?readonly=${edit.saving} @input=${(event) => type("url", event)} placeholder="https://example.org"></div>` : nothing}</div>`}
      ${edit.present === undefined ? nothing : html`<div class="problem" role="alert"><strong>This note was changed while you edited it.</strong> Nothing was written, and both texts are here.</div>`}
      <div class="split"><div class="field"><label for="text">${edit.present === undefined ? "Text" : "Your text"}</label>
          <textarea id="text" .value=${edit.text} ?readonly=${edit.saving} @input=${(event) => type("text", event)} required></textarea></div>
        ${edit.wrong ? nothing : edit.present === undefined
          ? html`<div class="field"><span class="soft small" id="preview-name">Preview</span><section class="card prose" tabindex="0" aria-labelledby="preview-name"></section></div>`
          : html`<div class="field"><label for="present">The text as it is now</label><textarea id="present" readonly .value=${edit.present}></textarea></div>`}</div>
      <div class="row">${edit.present === undefined ? html`<button class="primary">Save</button>`
        : html`<button type="button" class="primary" @click=${() => save(null)}>Save mine, keep the other in the trash</button><button type="button" @click=${takeTheirs}>Continue with the other text</button>`}
        <button type="button" ?disabled=${edit.saving} @click=${cancel}>Cancel</button>${edit.present === undefined ? html`<span class="soft small">Ctrl+Enter saves</span>` : nothing}</div>
    </form>`;

  const links = () => {
    const out = [...new Map(note.links.filter((one) => one.ref).map((one) => [one.ref, { ref: one.ref, title: one.target, kind: "out" }])).values()];
    const back = note.linked_from.map((one) => ({ ...one, kind: "in" }));
    const broken = note.links.filter((one) => !one.there);
    const list = (name, notes) => notes.length ? html`<h3>${name}</h3><ul>${notes.map((one) => html`<li>${noteLink(one.ref, one.title)}</li>`)}</ul>` : nothing;
    return html`<section class="card"><h2>Links</h2>${out.length + back.length ? ring(note.title, [...out, ...back], go) : html`<p class="soft small">No note is linked with this one.</p>`}
      ${list("Links to", out)}${list("Linked from", back)}${list("Named in", note.mentions)}
      ${broken.length ? html`<h3>Broken links</h3><ul>${broken.map((one) => html`<li class="soft">${one.target}</li>`)}</ul>` : nothing}</section>`;
  };

  const outline = () => {
    const headings = [...main.querySelectorAll(".prose :is(h1, h2, h3)")];
    return html`<section class="card"><h2>In this note</h2>
      ${headings.length ? html`<ul class="plain">${headings.map((one) => html`<li class=${one.tagName}><button class="quiet" @click=${() => jump(+one.dataset.line)}>${one.textContent}</button></li>`)}</ul>` : nothing}
      <form class="row" @submit=${(event) => { event.preventDefault(); jump(+event.target.line.value); }}><label for="line">Line</label>
        <input id="line" name="line" type="number" min="1" required><button>Go</button></form></section>`;
  };

  const change = (one) => html`<li>${when(one.at)} <strong>${one.what}</strong>
    <span class="soft">${[one.front_end && `by ${one.front_end}`, one.author, one.grew && `${size(one.grew)} bytes`, one.lines_added !== null && `+${one.lines_added} −${one.lines_deleted} lines`, one.before && `from ${one.before}`].filter(Boolean).join(", ")}</span>
    ${one.source === "git" ? html`<button class="quiet small" @click=${() => compare(one.hash, one.what)}>Compare</button>` : nothing}</li>`;

  const used = () => {
    const { history, copies } = past;
    return html`<section class="card"><h2>History</h2>
      <p class="small">Found ${count(history.recalls, "time")}${history.recalled ? html`, last ${when(history.recalled)}` : nothing};
        opened ${count(history.opens, "time")}.</p>
      <ul class="plain small">${history.changes.map(change)}
        ${copies.map((path) => html`<li>Kept in the trash <button class="quiet small" @click=${() => compare(path, "the kept text")}>Compare</button></li>`)}</ul>
      ${history.left_out.map((text) => html`<p class="small warn">${text}</p>`)}</section>`;
  };

  const reader = () => html`<div class="row"><h1 class="grow">${note.title}</h1>
      ${shown.writable && !sample.on ? html`<button @click=${startEdit} title="Edit (e)">Edit</button><button class="danger" @click=${forget}>Forget</button>` : nothing}</div>
    <div class="row about">${badge(note.source)} ${badge(`said by ${shown.provenance}`, shown.provenance === "user" ? "good" : "warn")}
      ${shown.in_prompts ? badge("trusted vault", "good") : badge("not added to prompts", "warn")}
      ${note.category ? badge(note.category) : nothing} ${shown.outdated ? badge(shown.outdated, "bad") : nothing}
      ${note.tags.map((tag) => html`<a class="small" href="/?tag=${encodeURIComponent(tag)}">#${tag}</a>`)}
      <span class="soft small">${when(note.updated ?? note.created)}</span>
      ${/^https?:\/\//i.test(note.metadata.url) ? html`<a class="small" href=${note.metadata.url} target="_blank">${note.metadata.url}</a>` : nothing}</div>
    ${note.problem ? html`<p class="small warn">${withCode(note.problem)}</p>` : nothing}
    <div class="reading"><div><article class="card prose"></article><p class="soft small path">${note.path}</p></div>
      <aside aria-label="About this note">${outline()}${links()}${past ? used() : nothing}</aside></div>`;

  function draw() {
    render(edit ? editor() : reader(), main);
  }

  setKeys({ e: ["Edit", startEdit], f: ["Forget", forget], "[": ["Back", () => history.back()] });
  if (isNew) return startEdit();
  onChange((refs, many) => { if (many || refs.includes(ref)) load(); });
  await load();
}
