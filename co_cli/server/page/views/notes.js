// Notes: folders, kinds and tags on the left, and a list of all notes, of which only the visible ones are drawn.

import { changes, get, mayWrite, sample } from "../parts/api.js";
import { count, html, icon, inTurn, notePath, nothing, render, repeat } from "../parts/pieces.js";
import { kindName, noteCard } from "../parts/note-card.js";

const SORTS = [["changed", "Last changed"], ["created", "Newest"], ["title", "Title"], ["opened", "Most opened"]];
const PAGE = 60; // notes in one request
const AROUND = 6; // rows above and below the window that are drawn, too
const TAGS = 16;
const MANY = 200; // notes, from which on rows are compact
let last; // what was shown, for whoever comes back to it

export async function open(main, { query, signal, go, setKeys, onChange }) {
  const chosen = { folder: query.get("folder") ?? "", kind: query.get("kind") ?? "", tag: query.getAll("tag"),
    title: query.get("title") ?? "", sort: query.get("sort") ?? "changed", opened: query.getAll("opened") };
  let counted, pages = new Map(), selected = -1, allTags = false, drawn = "", height = 0, frame, typing;

  const address = (changed = {}) => {
    const next = { ...chosen, ...changed }, said = new URLSearchParams();
    for (const [name, value] of Object.entries(next)) {
      for (const one of [value].flat()) if (one && !(name === "sort" && one === "changed")) said.append(name, one);
    }
    return said.size ? `/notes?${said}` : "/notes";
  };
  const asked = (more) => {
    const { kind, ...others } = chosen;
    return { ...others, source: kind, fold: true, ...more };
  };

  // -- loading

  // The counts and the first notes; then those that are visible.
  const load = inTurn(async () => {
    const seen = changes.count, wanted = address(), found = await get("/browse", asked({ limit: PAGE }), signal);
    if (wanted !== address()) return;
    counted = found;
    pages = new Map([[0, found.notes]]);
    last = { address: wanted, sample: sample.on, counted, pages, seen, selected };
    draw();
  });

  // The notes of a page, or when they will be there.
  function fetchPage(number) {
    const mine = pages, more = { limit: PAGE, offset: number * PAGE, counts: false };
    if (!mine.has(number)) mine.set(number, get("/browse", asked(more), signal).then(({ notes }) => {
      mine.set(number, notes);
      if (mine === pages) drawRows(true);
    }, (error) => {
      mine.delete(number);
      throw error;
    }));
    return mine.get(number);
  }

  // Another choice: its own address, so that Back returns to this one.
  function choose(changed, replace) {
    Object.assign(chosen, changed);
    selected = -1;
    history[replace ? "replaceState" : "pushState"](null, "", address());
    if (!replace) scrollTo(0, 0);
    return load();
  }

  // -- the list: rows of one height, in a box as high as all of them

  const box = () => main.querySelector(".rows");

  function visible() {
    const top = box().getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - AROUND);
    return [first, Math.min(counted.rows, Math.ceil((innerHeight - top) / height) + AROUND)];
  }

  const rowsAsChosen = () => localStorage.getItem("co-rows") ?? (counted.total > MANY ? "compact" : "large");
  const isCompact = () => rowsAsChosen() === "compact";
  const noteAt = (place) => pages.get(Math.floor(place / PAGE))?.[place % PAGE]; // none while they are on their way

  function linked(note) {
    const { series } = note, others = chosen.opened.filter((key) => key !== series?.key);
    if (series) note.href = address({ opened: series.opened ? others : [...others, series.key] });
    return note;
  }

  const row = (place) => html`<li .style=${`top:${place * height}px`} aria-setsize=${counted.rows}
    aria-posinset=${place + 1} aria-current=${place === selected ? "true" : nothing} @focusin=${() => focused(place)}>
    ${noteAt(place) ? noteCard(linked(noteAt(place))) : html`<div class="coming-note"></div>`}</li>`;

  function drawRows(again) {
    const rows = box();
    if (!rows || signal.aborted) return;
    const root = getComputedStyle(document.documentElement);
    height = parseFloat(getComputedStyle(rows).getPropertyValue("--row")) * parseFloat(root.fontSize);
    rows.style.height = `${counted.rows * height}px`;
    const [first, end] = visible(), now = `${first} ${end} ${selected}`;
    if (now === drawn && !again) return;
    drawn = now;
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, end - 1) / PAGE); page++) {
      if (page * PAGE < counted.rows) fetchPage(page);
    }
    const places = Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
    render(repeat(places, (place) => place, row), rows);
  }

  function scrolled() {
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      if (counted?.total) drawRows();
    });
  }

  function focused(place) {
    if (selected === place) return;
    selected = place;
    last.selected = place;
    drawRows();
  }

  // Selects a note, shows it, and gives it the focus, once it is loaded.
  async function select(place) {
    if (!counted?.total) return;
    selected = last.selected = Math.max(0, Math.min(place, counted.rows - 1));
    const top = box().getBoundingClientRect().top + selected * height;
    if (top < 80) scrollBy(0, top - 80);
    else if (top + height > innerHeight - 80) scrollBy(0, top + height - innerHeight + 80);
    drawRows(true);
    await fetchPage(Math.floor(selected / PAGE));
    box()?.querySelector(`[aria-posinset="${selected + 1}"] a`)?.focus({ preventScroll: true });
  }

  // -- what can be chosen

  const follow = (changed) => (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in another tab
    event.preventDefault();
    choose(changed);
  };
  const link = (changed, active, content, notes) => html`<a href=${address(changed)} @click=${follow(changed)}
    aria-current=${active ? "true" : nothing}>${content}<span class="number">${notes.toLocaleString("en")}</span></a>`;

  // Folders of the vault, and those in the chosen one.
  const folders = () => counted.folders.filter(({ name }) => {
    const parent = name.split("/").slice(0, -1).join("/");
    return !parent || chosen.folder === parent || chosen.folder.startsWith(`${parent}/`);
  });

  const folder = ({ name, notes }) => {
    const depth = name.split("/").length - 1, active = chosen.folder === name;
    return html`<li class="depth-${Math.min(depth, 5)}">${link({ folder: active ? "" : name }, active,
      html`${icon("folder")}<span class="title">${name.split("/").pop()}</span>`, notes)}</li>`;
  };

  const kind = ({ name, notes }) => html`<li>${link({ kind: chosen.kind === name ? "" : name }, chosen.kind === name,
    html`${icon(name)}<span class="title">${kindName(name)}</span>`, notes)}</li>`;

  const tag = ({ name, notes }) => {
    const active = chosen.tag.includes(name);
    const next = active ? chosen.tag.filter((one) => one !== name) : [...chosen.tag, name];
    return html`<li>${link({ tag: next }, active, `#${name}`, notes)}</li>`;
  };

  function tags() {
    const all = counted.tags.toSorted((a, b) => chosen.tag.includes(b.name) - chosen.tag.includes(a.name));
    const shown = allTags ? all : all.slice(0, TAGS), more = all.length > TAGS && !allTags;
    const button = html`<button class="quiet small" @click=${() => { allTags = true; draw(); }}>More tags</button>`;
    return all.length ? html`<h2>Tags</h2><ul class="tags">${shown.map(tag)}</ul>${more ? button : nothing}` : nothing;
  }

  const choices = () => html`<h2>Kinds</h2><ul>${counted.sources.map(kind)}</ul>
    ${counted.folders.length ? html`<h2>Folders</h2><ul>${folders().map(folder)}</ul>` : nothing}${tags()}`;

  // -- drawing

  const filters = () => [chosen.folder, chosen.kind, ...chosen.tag].filter(Boolean);

  const isEmpty = () => !counted.total && !filters().length && !chosen.title;

  function nothingFits() {
    const what = chosen.title ? `No title has “${chosen.title}”` : "No note fits";
    const which = filters().length ? ` with the filters ${filters().join(", ")}` : "";
    return html`<div class="empty"><p>${what}${which}.</p>
      <button @click=${() => choose({ folder: "", kind: "", tag: [], title: "" })}>Show all notes</button></div>`;
  }

  const sorting = ([value, text]) => html`<option value=${value} .selected=${value === chosen.sort}>${text}</option>`;

  function toggleRows() {
    localStorage.setItem("co-rows", isCompact() ? "large" : "compact");
    draw();
  }

  function type(event) {
    clearTimeout(typing);
    chosen.title = event.target.value; // at once: a list that is drawn meanwhile keeps it
    typing = setTimeout(() => choose({}, true), 120);
  }

  function draw() {
    if (!counted || signal.aborted) return;
    if (isEmpty()) return render(html`<h1>Notes</h1><div class="empty"><p>There are no notes here yet.</p>
      ${mayWrite() ? html`<a class="button primary" href="/note/">Write the first note</a>` : nothing}</div>`, main);
    render(html`<div class="head row"><h1>Notes</h1>
        <span class="soft" role="status">${count(counted.total, "note")}</span></div>
      <div class="shelves"><details class="choices" ?open=${matchMedia("(min-width: 901px)").matches}>
          <summary class="button">${icon("filter")}Filters${filters().length ? ` (${filters().length})` : ""}</summary>
          <nav aria-label="Folders, kinds and tags">${choices()}</nav></details>
        <section aria-label="List">
          <div class="row tools">
            <input class="grow" type="text" aria-label="Filter by title" placeholder="Filter by title"
              autocomplete="off" .value=${chosen.title} @input=${type}>
            <button class="quiet" aria-pressed=${isCompact()} @click=${toggleRows}>Compact</button>
            <select aria-label="Sort" @change=${(event) => choose({ sort: event.target.value })}>
              ${SORTS.map(sorting)}</select></div>
          ${counted.total ? nothing : nothingFits()}
          <ol class="rows ${isCompact() ? "compact" : ""}" ?hidden=${!counted.total}></ol></section></div>`, main);
    drawn = "";
    if (counted.total) drawRows();
  }

  const screenful = () => Math.max(1, Math.floor(innerHeight / height) - 2);
  const current = () => noteAt(selected);
  setKeys({
    ArrowDown: ["Next note", () => select(selected + 1)],
    ArrowUp: ["Previous note", () => select(selected - 1)],
    j: ["Next note", () => select(selected + 1)],
    k: ["Previous note", () => select(selected - 1)],
    PageDown: ["A screen down", () => select(selected + screenful())],
    PageUp: ["A screen up", () => select(selected - screenful())],
    Home: ["First note", () => select(0)],
    End: ["Last note", () => select(Infinity)],
    Enter: ["Open", () => { if (current()) go(notePath(current().ref)); }],
    e: ["Edit", () => { if (current()) go(`${notePath(current().ref)}?edit=1`); }],
  });
  onChange(load);
  addEventListener("scroll", scrolled, { passive: true, signal });
  addEventListener("resize", draw, { signal });
  signal.addEventListener("abort", () => clearTimeout(typing));
  if (last?.address !== address() || last.sample !== sample.on) return load();
  ({ counted, pages, selected } = last);
  draw();
  if (last.seen !== changes.count) load();
  requestAnimationFrame(() => { if (selected >= 0) select(selected); }); // after the router has scrolled there
}
