// One note: read it, see its links and its history, forget it. edit.js edits it.

import { del, get, mayWrite, part, post, put, sample } from "../parts/api.js";
import { badge, bare, closeDialog, count, dialog, html, icon, inTurn, light, menuButton, nameOf, noteLink, notePath,
  nothing, once, render, sentence, showBody, when, withCode } from "../parts/pieces.js";
import { findHeading } from "../parts/prose.js";
import { hoverCards } from "../parts/hover-card.js";
import { draftOf, dropDraft, forgetNote, freeDrafts, keepDraft, newDraft, rememberNote, takeDraft }
  from "../parts/store.js";

const LINES = /^#L(\d+)(?:-L?(\d+))?(?:~\w{4})?$/;
const WRITTEN = { user: "written by you", agent: "written by an agent", web: "from the web", import: "imported" };
const PINNED = "decay_protected"; // the field of a note that never grows old
const MOST = 1000; // notes that link to one
const size = (bytes) => bytes > 0 ? `+${bytes}` : `${bytes}`;

const diffLine = (line) => html`<span class=${{ "+": "added", "-": "removed", "@": "soft" }[line[0]] ?? ""}>${line}
</span>`;

export async function open(main, context) {
  const { rest, query, session, signal, go, toast, setKeys, onChange } = context;
  let ref = rest, opened = !sample.on, note, shown, past, backlinks = [], titles = new Map(), most = 10;
  let moving = false, current, observer, titled, ticks = 0, ticking;

  // -- reading

  // What is lit stays lit; at first it is what the address names: lines, or a heading.
  function drawBody() {
    draw();
    const body = main.querySelector(".prose"), lit = [...body.querySelectorAll(".lit")];
    const lines = lit.length ? [+lit[0].dataset.line, +lit.at(-1).dataset.end] : shown.lines;
    const ticked = document.activeElement?.closest(".prose li[data-task]")?.dataset.line;
    const first = showBody(body, shown, lines, signal, shown.writable && !sample.on ? tick : undefined)
      ?? (location.hash && findHeading(body, decodeURIComponent(location.hash.slice(1))));
    if (!mayWrite()) {
      for (const link of body.querySelectorAll(".missing")) link.href = `/?q=${encodeURIComponent(link.textContent)}`;
    }
    if (!lit.length && first) first.scrollIntoView({ block: "center" });
    if (ticked) body.querySelector(`li[data-line="${ticked}"] input`)?.focus({ preventScroll: true });
    follow(body);
    draw();
  }

  // The outline marks the last heading that was scrolled to the upper part of the window.
  function follow(body) {
    observer?.disconnect();
    observer = new IntersectionObserver(() => {
      const above = [...body.querySelectorAll("h1, h2, h3")].filter((one) => one.getBoundingClientRect().top < 200);
      const line = above.at(-1)?.dataset.line;
      if (line !== current) { current = line; draw(); }
    }, { rootMargin: "0px 0px -70% 0px", threshold: [0, 1] });
    for (const one of body.querySelectorAll("h1, h2, h3")) observer.observe(one);
    titled?.disconnect();
    titled = new IntersectionObserver(([{ isIntersecting }]) => main.classList.toggle("scrolled", !isIntersecting),
      { rootMargin: "-56px 0px 0px 0px" });
    titled.observe(main.querySelector("h1"));
    signal.addEventListener("abort", () => { observer.disconnect(); titled.disconnect(); }, { once: true });
  }

  // The note as it is now, then its history; it can be forgotten between the two.
  const load = inTurn(async () => {
    try {
      let both, before;
      do { // a text from before a task was ticked would untick it
        before = ticks;
        await ticking;
        both = await Promise.all([
          get(`/notes/${part(ref)}`, opened ? { opened } : {}, signal),
          get(`/rendered/${part(LINES.test(location.hash) ? bare(ref) + location.hash : ref)}`, {}, signal),
        ]);
        opened = false;
      } while (ticks !== before);
      [note, shown] = both;
      ref = shown.ref;
      document.title = `${note.title} · co`;
      if (!sample.on) rememberNote({ ref, title: note.title, kind: note.source });
      drawBody();
      [past, backlinks] = await Promise.all(
        [get(`/history/${part(ref)}`, {}, signal), get(`/backlinks/${part(ref)}`, { limit: most }, signal)]);
      const linked = note.links.map((one) => one.ref).filter(Boolean);
      const found = linked.length && await get("/browse", { ref: linked, counts: false, limit: 500 }, signal);
      titles = new Map((found?.notes ?? []).map((one) => [one.ref, one.title]));
      draw();
    } catch (error) {
      if (error.status !== 404) throw error;
      shown = undefined; // nothing to edit or to forget
      await missing(error);
    }
  });

  // A task is ticked in its line of the file, if that is still the version that is shown; one after the other.
  function tick(line, done) {
    ticks++;
    ticking = Promise.resolve(ticking).then(async () => {
      shown.version = (await put(`/tasks/${part(ref)}`, { line, done, version: shown.version })).version;
    }).catch((error) => {
      const changed = "Not ticked: this note was changed meanwhile. This is the text as it is now.";
      toast(error.status === 409 ? changed : error.message);
      load();
    });
  }

  function jump(line) {
    const body = main.querySelector(".prose");
    (light(body, [line, line]) ?? body).scrollIntoView({ block: "center" });
  }

  // What changed in the text since a version, which can be restored; the text of now is then in the trash.
  async function compare(version, name) {
    const { diff, body } = await get(`/versions/${part(ref)}`, { version }, signal);
    const again = () => once(`again ${ref}`, async () => {
      const changed = "Not restored: this note was changed meanwhile. This is the text as it is now.";
      const failed = (error) => error.status === 409 ? changed : error.message;
      const text = await put(`/notes/${part(ref)}`, { content: body, version: note.version, keep: true })
        .then(() => "Restored; the other text is in the trash", failed);
      closeDialog();
      toast(text);
      await load();
    });
    dialog(`From ${name} to now`, diff.length
      ? html`<pre class="diff" tabindex="0">${diff.slice(2).map(diffLine)}</pre>
        ${shown.writable && !sample.on ? html`<p><button @click=${again}>Restore this version</button></p>` : nothing}`
      : html`<p>The text has not changed since.</p>`);
  }

  const moreLinks = () => { most = MOST; return load(); };

  async function copy(text, what) {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}`);
  }

  const mayEdit = () => shown?.writable && !sample.on;
  const startEdit = () => { if (mayEdit()) go(`${notePath(ref)}?edit=1`, { state: { from: ref } }); };

  const forget = () => once(`forget ${ref}`, async () => {
    if (!mayEdit()) return;
    const gone = await del(`/notes/${part(ref)}`);
    forgetNote(ref);
    const again = gone.valid_again.length
      ? `. Valid again, because it superseded them: ${gone.valid_again.join(", ")}` : "";
    toast(`Forgotten: ${note.title}${again}`, restore);
    if (!signal.aborted) go("/");
  });

  const isPinned = () => note.metadata[PINNED] === true;
  const pin = () => once(`pin ${ref}`, async () => {
    const pinned = isPinned();
    await put(`/notes/${part(ref)}`, { fields: { [PINNED]: pinned ? null : true } });
    toast(pinned ? "Unpinned" : "Pinned to Home");
    await load();
  });

  // Asks for one text, says what links here, and does something with the text.
  function askFor(title, label, value, name, more, act) {
    const number = note.linked_from.length;
    const send = (event) => {
      event.preventDefault();
      const { text, links } = event.target.elements, given = text.value.trim();
      closeDialog();
      if (given !== value) act(given, links?.checked).catch((error) => toast(error.message));
    };
    dialog(title, html`<form class="field" @submit=${send}><label for="text">${label}</label>
      <input id="text" name="text" .value=${value} autofocus autocomplete="off">
      ${number ? html`<p class="soft small">${count(number, "note")} ${number === 1 ? "links" : "link"} here. Links keep
        working.</p>${more(number)}` : nothing}
      <div><button class="primary">${name}</button></div></form>`).querySelector("#text").select();
  }

  // Another title. Links by the old one still find the note; they can be written anew.
  async function retitle(title, links, aliases) {
    const before = note.title;
    await put(`/notes/${part(ref)}`, { title });
    note.title = title;
    const { notes } = links ? await post("/links", { ref, before }) : { notes: [] };
    if (aliases) await put(`/notes/${part(ref)}`, { fields: { aliases: aliases.length ? aliases : null } });
    await load().catch((error) => { if (!signal.aborted) throw error; });
    return notes.length;
  }
  const rename = () => askFor("Rename", "Title", note.title, "Rename", (number) => html`<label class="check">
      <input type="checkbox" name="links"> Update ${count(number, "link")}</label>`, async (title, links) => {
    if (!title) return;
    const { title: before, metadata: { aliases } } = note, updated = await retitle(title, links);
    toast(`Renamed${updated ? `, links updated in ${count(updated, "note")}` : ""}`,
      () => retitle(before, links, [aliases ?? []].flat()));
  });

  const move = () => {
    const [home, ...folders] = note.path.split("/").slice(0, -1), file = note.path.split("/").pop();
    askFor("Move", `Folder in ${home}`, folders.join("/"), "Move", () => nothing, async (folder) => {
      moving = true; // what is said of its old place no longer matters here
      const path = folder ? `${folder.replace(/\/+$/, "")}/` : file;
      const failed = (error) => { moving = false; throw error; };
      const moved = await put(`/notes/${part(ref)}`, { path }).catch(failed);
      forgetNote(ref);
      toast(`Moved to ${home}/${folder}`);
      go(notePath(moved.ref));
    });
  };

  const restore = () => once(`restore ${ref}`, async () => {
    await post("/restored", { ref });
    go(notePath(ref));
  });

  // A note that is not there, or no longer.
  async function missing(error) {
    const { closest = [] } = error.data ?? {};
    const name = ref.split(/[/:]/).pop().replace(/\.md$/, "").replaceAll("-", " ");
    const near = closest.length ? (await get("/browse", { ref: closest, counts: false }, signal)).notes : [];
    render(html`<h1>Not found</h1><p>${near.length ? html`There is no note <code>${ref}</code>. Did you mean ${
      near.map((one, place) => html`${place ? ", " : ""}${noteLink(one.ref, one.title)}`)}?`
      : withCode(sentence(error.message))}</p>
      <div class="row">
      ${error.kind === "note_forgotten" && mayWrite()
        ? html`<button class="primary" @click=${restore}>Restore it</button>` : nothing}
      <a class="button" href="/?q=${encodeURIComponent(name)}">Search for “${name}”</a>
      ${mayWrite() && error.kind !== "note_forgotten" ? html`<a class="button"
        href="/note/?title=${encodeURIComponent(name)}">Write it</a>` : nothing}</div>`, main);
  }

  // -- drawing

  const links = () => {
    const out = [...new Map(note.links.filter((one) => one.ref).map((one) => [one.ref, one])).values()];
    const broken = note.links.filter((one) => !one.there);
    const list = (name, items) => items.length ? html`<h3>${name}</h3><ul>${items}</ul>` : nothing;
    return html`<section><h2>Links</h2>
      ${out.length + backlinks.length + note.mentions.length + broken.length ? nothing
        : html`<p class="soft small">No note is linked with this one.</p>`}
      ${list("Linked from", backlinks.map((one) => html`<li>${noteLink(one.ref, one.title)}
        ${one.line ? html`<p class="soft small">${one.line}</p>` : nothing}</li>`))}
      ${note.linked_from.length > most && most < MOST ? html`<button class="quiet small" @click=${moreLinks}>
        Show all ${note.linked_from.length}</button>` : nothing}
      ${list("Links to", out.map((one) => html`<li>${noteLink(one.ref, titles.get(one.ref) ?? one.target)}</li>`))}
      ${list("Named in", note.mentions.map((one) => html`<li>${noteLink(one.ref, one.title)}</li>`))}
      ${list("Broken links", broken.map((one) => html`<li class="soft">${one.target}
        ${mayWrite() && !/\.\w{1,8}$/.test(one.target)
          ? html`<a href="/note/?title=${encodeURIComponent(one.target)}">Create it</a>` : nothing}</li>`))}</section>`;
  };

  const outline = () => {
    const headings = [...main.querySelectorAll(".prose :is(h1, h2, h3)")].filter((one) => !one.closest(".embedded"));
    return headings.length < 2 ? nothing : html`<nav class="outline" aria-label="In this note">
      <h2>In this note</h2>
      <ul class="plain">${headings.map((one) => html`<li class=${one.tagName}>
        <button class="quiet" aria-current=${one.dataset.line === current ? "true" : nothing}
          @click=${() => jump(+one.dataset.line)}>${one.textContent}</button></li>`)}</ul></nav>`;
  };

  // Where this note is among the hits of the last search.
  const hits = () => {
    const { q, refs = [] } = JSON.parse(sessionStorage.getItem("co-hits") ?? "{}");
    const at = refs.findIndex((one) => bare(one) === ref);
    if (at < 0 || refs.length < 2) return nothing;
    const step = (to, name, sign) => refs[to]
      ? html`<a class="button" href=${notePath(refs[to])} aria-label=${name}>${sign}</a>`
      : html`<button disabled aria-label=${name}>${sign}</button>`;
    return html`<span class="hits-of" title="Search: ${q}">${step(at - 1, "Previous hit", "‹")}
      <span class="small">hit ${at + 1} of ${refs.length}</span>${step(at + 1, "Next hit", "›")}</span>`;
  };

  const change = (one) => html`<li>${when(one.at)} <strong>${one.what === "seen" ? "first seen" : one.what}</strong>
    <span class="soft">${[one.front_end && `by ${nameOf(one.front_end)}`, one.author,
      one.grew && `${size(one.grew)} bytes`,
      one.lines_added !== null && `+${one.lines_added} −${one.lines_deleted} lines`,
      one.before && `from ${one.before}`].filter(Boolean).join(", ")}</span>
    ${one.source === "git"
      ? html`<button class="quiet small" @click=${() => compare(one.hash, one.what)}>Compare</button>` : nothing}</li>`;

  const used = () => {
    const { history, copies } = past;
    return html`<section><h2>History</h2>
      <p class="small">Found ${count(history.recalls, "time")}${
        history.recalled ? html`, last ${when(history.recalled)}` : nothing};
        opened ${count(history.opens, "time")}.</p>
      <ul class="plain small">${history.changes.map(change)}
        ${copies.map(({ path, at }) => html`<li>Text until ${when(at)}
          <button class="quiet small" @click=${() => compare(path, "the kept text")}>Compare</button></li>`)}</ul>
      ${history.left_out.map((text) => html`<p class="small warn">${text}</p>`)}</section>`;
  };

  const inVault = (path) => path.startsWith(session.vault) ? path.slice(session.vault.length + 1) : path;

  // Its own, and what the note says of itself: only what tells something.
  const tells = () => html`<div class="row about small soft">
      <span>${note.source}</span><span>${when(note.updated ?? note.created)}</span>
      ${["user", "unknown"].includes(shown.provenance) ? nothing
        : badge(WRITTEN[shown.provenance] ?? `written by ${shown.provenance}`, "warn")}
      ${shown.in_prompts ? nothing : badge("not given to agents", "warn")}
      ${note.category ? html`<span>${note.category}</span>` : nothing}
      ${shown.outdated ? badge(shown.outdated, "bad") : nothing}
      ${note.tags.map((tag) => html`<a href="/notes?tag=${encodeURIComponent(tag)}">#${tag}</a>`)}
      ${/^https?:\/\//i.test(note.metadata.url)
        ? html`<a href=${note.metadata.url} target="_blank">${note.metadata.url}</a>` : nothing}</div>
    ${note.problem ? html`<p class="problem row"><span class="grow">${withCode(sentence(note.problem))}</span>
      ${mayEdit() ? html`<button @click=${startEdit}>Fix it</button>` : nothing}</p>` : nothing}`;

  // What stays at the top: where the note is or, once its title is scrolled away, the title.
  const bar = () => html`<div class="bar-of-note"><p class="grow small soft path" title=${note.path}>
      <span class="place">${inVault(note.path)}</span><span class="name" dir="auto">${note.title}</span></p>
    <div class="row">${hits()}
      ${note.source === "conversation" || ref.startsWith("checkpoint:")
        ? html`<a class="button quiet" href="/conversation/${part(ref)}">Read as a chat</a>` : nothing}
      ${mayEdit() ? html`<button class="quiet" @click=${startEdit} title="Edit (e)">
        ${icon("edit")}Edit</button>` : nothing}
      ${menuButton("More", [
        ...mayEdit() ? [["Rename", rename], ["Move", move], [isPinned() ? "Unpin" : "Pin", pin]] : [],
        ["Print", () => print()],
        ...navigator.clipboard ? [["Copy link", () => copy(location.href, "the link")],
          ["Copy as Markdown", () => copy(note.body, "the text as Markdown")]] : [],
        ["Open in the map", () => go(`/map?q=${encodeURIComponent(note.title)}`)],
        ...mayEdit() ? [["Forget", forget, "danger"]] : []])}</div></div>`;

  const reader = () => html`${bar()}
    <div class="reading"><div class="sheet"><h1 dir="auto">${note.title}</h1>${tells()}
        <article class="prose" aria-label=${note.title}></article></div>
      <aside aria-label="About this note">${outline()}${links()}${past ? used() : nothing}</aside></div>`;

  function draw() {
    render(reader(), main);
  }

  // Opens the editor, with what it needs of a note that is there.
  async function startEditor() {
    const { edit, lastSave } = await import("./edit.js");
    await lastSave();
    if (rest) {
      const asked = [`/notes/${part(rest)}`, `/rendered/${part(rest)}`].map((path) => get(path, {}, signal));
      try {
        [note, shown] = await Promise.all(asked);
      } catch (error) {
        const draft = error.status === 404 && draftOf(rest), id = newDraft();
        if (!draft) throw error;
        keepDraft(id, { ...draft, version: undefined, before: { text: "" } }); // its note is gone: it becomes another
        dropDraft(rest);
        return go(`/note/?draft=${id}`, { replace: true });
      }
      document.title = `${note.title} · co`;
    }
    const ref = shown?.ref ?? "", draftId = ref || await takeNew(lastSave);
    return edit(main, context, { ref, draftId, note, shown, title: query.get("title") });
  }

  // The draft of a new note: the one that the address names, or one that was left unless there is a title, or another.
  async function takeNew(lastSave) {
    signal.throwIfAborted();
    const left = new Promise((end) => signal.addEventListener("abort", end)).then(lastSave);
    const others = query.has("title") || !navigator.locks ? [] : (await freeDrafts()).filter((one) => one.isNew);
    const asked = [query.get("draft"), ...others.map((one) => one.id)].filter((id) => id !== null);
    const id = await takeDraft([...asked, newDraft()], left);
    signal.throwIfAborted();
    query.set("draft", id);
    history.replaceState(history.state, "", `/note/?${query}`);
    return id;
  }

  if (!rest || query.get("edit") && mayWrite()) return startEditor();
  setKeys({ e: ["Edit", startEdit], f: ["Forget", forget], "[": ["Back", () => history.back()] });
  hoverCards(main, signal);
  onChange((refs, many) => { if (!moving && (many || refs.includes(ref))) load(); });
  await load();
}
