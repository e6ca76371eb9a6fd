// One note: read it, see its links and its history, forget it. edit.js edits it.

import { del, get, mayWrite, part, post, put, sample } from "./api.js";
import { badge, count, dialog, html, inTurn, light, noteLink, notePath, nothing, once, problem, render, showBody, svg, when, withCode } from "./parts.js";

const MOST_IN_RING = 14;
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

export async function open(main, context) {
  const { rest, query, signal, go, toast, setKeys, onChange } = context;
  let ref = rest, opened = !sample.on, note, shown, past;

  // -- reading

  // What is lit stays lit; at first it is what the address names.
  function drawBody() {
    draw();
    const body = main.querySelector(".prose"), lit = [...body.querySelectorAll(".lit")];
    const wanted = /^#L(\d+)(?:-L?(\d+))?(?:~\w{4})?$/.exec(location.hash);
    const lines = lit.length ? [+lit[0].dataset.line, +lit.at(-1).dataset.end] : wanted ? [+wanted[1], +(wanted[2] ?? wanted[1])] : shown.lines;
    const ticked = document.activeElement?.closest(".prose li[data-task]")?.dataset.line;
    const first = showBody(body, shown, lines, signal, shown.writable && !sample.on ? tick : undefined);
    if (!lit.length) first?.scrollIntoView({ block: "center" });
    if (ticked) body.querySelector(`li[data-line="${ticked}"] input`)?.focus({ preventScroll: true });
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
      drawBody();
      past = await get(`/history/${part(ref)}`, {}, signal);
      draw();
    } catch (error) {
      if (error.status !== 404) throw error;
      shown = undefined; // nothing to edit or to forget
      missing(error);
    }
  });

  // A task is ticked in its line of the file, if that is still the version that is shown.
  async function tick(line, done) {
    try {
      shown.version = (await put(`/tasks/${part(ref)}`, { line, done, version: shown.version })).version;
    } catch (error) {
      toast(error.status === 409 ? "Not ticked: this note was changed meanwhile. This is the text as it is now." : error.message);
      await load();
    }
  }

  function jump(line) {
    const body = main.querySelector(".prose");
    (light(body, [line, line]) ?? body).scrollIntoView({ block: "center" });
  }

  async function compare(version, name) {
    const { diff } = await get(`/versions/${part(ref)}`, { version }, signal);
    dialog(`From ${name} to now`, diff.length ? html`<pre class="diff" tabindex="0">${diff.slice(2).map(diffLine)}</pre>` : html`<p>Nothing changed since.</p>`);
  }

  const startEdit = () => { if (shown?.writable && !sample.on) go(`${notePath(ref)}?edit=1`); };

  const forget = () => once(`forget ${ref}`, async () => {
    if (!shown?.writable || sample.on) return;
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

  // -- drawing

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
    render(reader(), main);
  }

  // Opens the editor, with what it needs of a note that is there.
  async function startEditor() {
    const { edit } = await import("./edit.js");
    if (rest) {
      const asked = [`/notes/${part(rest)}`, `/rendered/${part(rest)}`].map((path) => get(path, {}, signal));
      [note, shown] = await Promise.all(asked);
      document.title = `${note.title} · co`;
    }
    return edit(main, context, { ref: shown?.ref ?? "", note, shown, title: query.get("title") });
  }

  if (!rest || query.get("edit") && mayWrite()) return startEditor();
  setKeys({ e: ["Edit", startEdit], f: ["Forget", forget], "[": ["Back", () => history.back()] });
  onChange((refs, many) => { if (many || refs.includes(ref)) load(); });
  await load();
}
