// Notes by meaning: points to look at on a canvas, with named groups, and the same notes as a list.

import { get, part } from "../parts/api.js";
import { count, html, inTurn, noteLink, notePath, nothing, problem, render, when } from "../parts/pieces.js";

const DAY = 86400000;
const AGES = [["this week", 7], ["this month", 31], ["this quarter", 92], ["this year", 366], ["older", Infinity]];
const COLOURS = ["subject", "tag", "source", "age"];
const MOST_TAGS = 7, LISTED = 40, MOST_LABELS = 60, MOST_HITS = 12;
const NEAR = 14; // pixels
const PAUSE = 200; // milliseconds, until what is typed is asked, and until the links of a note are fetched
const FEW = 1500; // points that are drawn as circles; more are squares, which take a tenth of the time

export async function open(main, { query, signal, go, onChange, setKeys }) {
  let notes = [], groups = [], working = true, progress, failed, listed = LISTED, pointed, links = [], timer, waiting;
  let colour = COLOURS.find((one) => one === query.get("colour")) ?? "subject", filter = query.get("q") ?? "";
  let placed = [], bounds, legend = [], off = new Set(), hits = [], chosen = [], lit, asked, planned;
  const view = { x: 0, y: 0, zoom: 1 }; // the middle, in units of the map, and how much larger than all of it
  const linked = new Map(); // places of the notes that a note links to, or that link to it, by its ref

  // -- which notes, in which colours ----------------------------------------------------------------------------

  function choose() {
    const words = filter.toLowerCase().split(/\s+/), found = new Set(hits);
    const fits = (note) => found.has(note.ref) || words.every((word) => note.text.includes(word));
    const here = notes.filter((note) => !off.has(note.bin));
    chosen = filter ? here.filter(fits) : here;
    if (found.size) chosen.sort((a, b) => (hits.indexOf(a.ref) + 1 || 1e9) - (hits.indexOf(b.ref) + 1 || 1e9));
    lit = new Set(chosen);
  }

  // Gives each note the number of its entry in the legend: [{ label, paint }].
  function sort() {
    if (colour === "subject" && groups.length) {
      legend = groups.map(({ name, colour: paint }) => ({ label: name, paint: `c${paint}` }));
      for (const note of notes) note.bin = note.group ?? -1;
    } else if (colour === "age") {
      legend = AGES.map(([label], at) => ({ label, paint: `a${at}` }));
      const old = (note) => (Date.now() - new Date(note.created)) / DAY;
      for (const note of notes) note.bin = AGES.findIndex(([, days]) => old(note) < days);
    } else {
      const counts = new Map(), values = (note) => (colour === "source" ? [note.source] : note.tags);
      for (const note of notes) for (const one of values(note)) counts.set(one, (counts.get(one) ?? 0) + 1);
      const most = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, MOST_TAGS);
      legend = [...most.map((label, at) => ({ label, paint: `c${at}` })), { label: "other", paint: "c7" }];
      for (const note of notes) {
        const found = most.findIndex((one) => values(note).includes(one));
        note.bin = found < 0 ? most.length : found;
      }
      if (!notes.some((note) => note.bin === most.length)) legend.pop();
    }
    choose();
  }

  function toggle(bin) {
    if (!off.delete(bin)) off.add(bin);
    choose();
    show();
  }

  // -- the canvas -----------------------------------------------------------------------------------------------

  const canvas = () => main.querySelector("canvas");

  function frame() {
    const area = canvas(), { width, height, left, top } = area.getBoundingClientRect();
    const scale = view.zoom * Math.min((width - 80) / bounds.width, (height - 80) / bounds.height);
    const [x, y] = [bounds.x + view.x, bounds.y + view.y];
    const place = { x: (at) => width / 2 + (at - x) * scale, y: (at) => height / 2 + (at - y) * scale };
    return { area, width, height, left, top, scale, ...place };
  }

  // Once for each picture that the screen shows.
  const draw = () => { planned ??= requestAnimationFrame(() => { planned = undefined; paint(); }); };

  function paint() {
    if (!canvas() || !placed.length) return;
    const began = performance.now(), space = frame(), { area, width, height } = space;
    const ratio = devicePixelRatio || 1, ink = area.getContext("2d"), style = getComputedStyle(area);
    area.width = width * ratio;
    area.height = height * ratio;
    ink.scale(ratio, ratio);
    const paints = [...main.querySelectorAll(".legend i")].map((one) => getComputedStyle(one).backgroundColor);
    const size = Math.min(7, Math.max(2.5, 60 / Math.sqrt(placed.length))) * Math.min(1.6, view.zoom ** 0.3);
    const parts = paints.map(() => [[], []]); // dimmed and lit
    for (const note of placed) if (!off.has(note.bin)) parts[note.bin]?.[lit.has(note) ? 1 : 0].push(note);
    for (const shown of [0, 1]) {
      ink.globalAlpha = shown ? 0.9 : 0.13;
      for (let at = paints.length - 1; at >= 0; at--) { // "other" is below
        ink.beginPath();
        for (const note of parts[at][shown]) dot(ink, space.x(note.place[0]), space.y(note.place[1]), size);
        ink.fillStyle = paints[at];
        ink.fill();
      }
    }
    ink.globalAlpha = 1;
    if (pointed?.place) point(ink, space, style, size);
    label(ink, space, style, size);
    area.dataset.took = (performance.now() - began).toFixed(2);
  }

  function dot(ink, x, y, size, round = placed.length < FEW) {
    if (!round) return ink.rect(x - size, y - size, 2 * size, 2 * size);
    ink.moveTo(x + size, y);
    ink.arc(x, y, size, 0, 7);
  }

  // A ring around the note under the pointer, and lines to those that it is linked with.
  function point(ink, space, style, size) {
    const [x, y] = [space.x(pointed.place[0]), space.y(pointed.place[1])];
    ink.strokeStyle = style.color;
    ink.lineWidth = 1.5;
    ink.beginPath();
    for (const [to, down] of links) {
      ink.moveTo(x, y);
      ink.lineTo(space.x(to), space.y(down));
    }
    ink.stroke();
    ink.lineWidth = 2;
    ink.beginPath();
    dot(ink, x, y, size + 4, true);
    ink.stroke();
  }

  // Names of groups, and titles next to points, as far as they cover neither each other nor another point.
  function label(ink, space, style, size) {
    const full = new Set(), cell = (x, y) => Math.round(x / 8) * 10000 + Math.round(y / 8);
    const { width, height } = space;
    const inside = (x, y) => x > 0 && x < width && y > 0 && y < height;
    const shown = chosen.filter((note) => note.place && inside(space.x(note.place[0]), space.y(note.place[1])));
    ink.textBaseline = "middle";
    ink.strokeStyle = style.backgroundColor;
    ink.fillStyle = style.color;
    const write = (text, x, y, away, whatever, inGroup) => {
      const wide = ink.measureText(text).width, cells = [];
      let from = x + away;
      if (from + wide > width - 4) from = x - away - wide;
      if (inGroup) from = Math.max(4, Math.min(x + away, width - 4 - wide));
      for (let right = 0; right <= wide + 8; right += 8) {
        for (const down of [-8, 0, 8]) cells.push(cell(from + right, y + down));
      }
      const own = cell(x, y);
      if (!whatever && (from < 0 || cells.some((one) => one !== own && full.has(one)))) return false;
      for (const one of cells) full.add(one);
      ink.lineWidth = 5;
      ink.strokeText(text, Math.max(4, from), y);
      ink.fillText(text, Math.max(4, from), y);
      return true;
    };
    if (colour === "subject") {
      ink.font = `600 ${width < 500 ? 12 : 15}px ${style.fontFamily}`;
      groups.forEach(({ name, place: [x] }, at) => { // above its points or below them, so that none is hidden
        const half = ink.measureText(name).width / 2;
        const rows = placed.filter((one) => one.bin === at).map(({ place }) => space.y(place[1])).sort((a, b) => a - b);
        if (off.has(at) || !rows.length) return;
        const [above, below] = [rows[0], rows.at(-1)], isFree = (y) => write(name, space.x(x), y, -half, false, true);
        [above - 16, below + 16, above - 36, below + 36].some(isFree); // the legend has it, too
      });
    }
    ink.font = `12px ${style.fontFamily}`;
    if (shown.length <= MOST_LABELS) {
      for (const note of shown) full.add(cell(space.x(note.place[0]), space.y(note.place[1])));
      for (const { title, place: [x, y] } of shown) {
        write(title.length > 32 ? `${title.slice(0, 30).trimEnd()}…` : title, space.x(x), space.y(y), size + 5);
      }
    }
    if (pointed?.place) write(pointed.title, space.x(pointed.place[0]), space.y(pointed.place[1]), size + 7, true);
  }

  function nearest(event) {
    const space = frame(), x = event.clientX - space.left, y = event.clientY - space.top;
    let best, least = NEAR;
    for (const note of chosen) {
      if (!note.place) continue;
      const far = Math.hypot(space.x(note.place[0]) - x, space.y(note.place[1]) - y);
      if (far < least) [best, least] = [note, far];
    }
    return best;
  }

  function look(note) {
    if (pointed === note) return;
    [pointed, links] = [note, linked.get(note?.ref) ?? []];
    clearTimeout(waiting);
    if (note && !linked.has(note.ref)) waiting = setTimeout(() => follow(note), PAUSE);
    canvas()?.classList.toggle("on-note", Boolean(note));
    draw();
  }

  async function follow(note) {
    const found = await get(`/notes/${part(note.ref)}`, {}, signal);
    const refs = new Set([...found.links, ...found.linked_from].map((one) => one.ref));
    linked.set(note.ref, placed.filter((one) => refs.has(one.ref)).map((one) => one.place));
    if (pointed !== note) return;
    links = linked.get(note.ref);
    draw();
  }

  function zoom(times, event) {
    if (!placed.length) return;
    const { left, top, width, height, scale } = frame(), next = Math.min(40, Math.max(1, view.zoom * times));
    const stay = (1 / scale) * (1 - view.zoom / next); // what is under the pointer stays there
    view.x += event ? (event.clientX - left - width / 2) * stay : 0;
    view.y += event ? (event.clientY - top - height / 2) * stay : 0;
    view.zoom = next;
    if (next === 1) view.x = view.y = 0;
    draw();
  }

  let drag;
  const hold = (event) => { drag = { moved: 0 }; canvas().setPointerCapture(event.pointerId); };
  const move = (event) => {
    if (!placed.length) return;
    if (!drag) return look(nearest(event));
    const { scale } = frame();
    view.x -= event.movementX / scale;
    view.y -= event.movementY / scale;
    drag.moved += Math.abs(event.movementX) + Math.abs(event.movementY);
    draw();
  };
  const release = (event) => {
    const note = drag?.moved < 5 && placed.length && nearest(event);
    drag = undefined;
    if (note) go(notePath(note.ref));
  };
  const wheel = {
    handleEvent(event) { event.preventDefault(); zoom(1.0015 ** -event.deltaY, event); },
    passive: false,
  };

  // -- the page -------------------------------------------------------------------------------------------------

  function keep() {
    const shown = new URLSearchParams({ ...(filter && { q: filter }), ...(colour !== "subject" && { colour }) });
    history.replaceState(null, "", shown.size ? `?${shown}` : location.pathname);
  }

  // Words of titles and tags at once, and after a pause what a search finds.
  function type(text) {
    [filter, hits, listed] = [text, [], LISTED];
    clearTimeout(asked);
    if (filter.trim()) asked = setTimeout(ask, PAUSE);
    keep();
    choose();
    show();
  }

  async function ask() {
    const q = filter, found = await get("/search", { q, typing: true, limit: MOST_HITS }, signal);
    if (q !== filter) return;
    hits = found.hits.map((hit) => hit.ref.replace(/#L.*/, ""));
    choose();
    show();
  }

  function colourBy(chosen) {
    [colour, off, listed] = [chosen, new Set(), LISTED];
    keep();
    sort();
    show();
  }

  const arranging = () => {
    if (!working) return notes.length ? "" : "There are no notes here yet.";
    if (!progress) return placed.length ? "Updating…" : "Arranging your notes…";
    return html`<label>${placed.length ? "Updating" : "Arranging your notes"}
      <progress max=${progress.total} .value=${progress.done}></progress></label>`;
  };

  const more = () => { listed += 5 * LISTED; show(); };

  function show() {
    const number = chosen.length.toLocaleString("en"), all = count(notes.length, "note");
    render(html`<h1>Map</h1>
      <div class="row">
        <input type="text" class="grow" aria-label="Light notes" placeholder="Light notes by title, tag or meaning"
          .value=${filter} @input=${(event) => type(event.target.value)}>
        <label>Colour <select @change=${(event) => colourBy(event.target.value)}>${COLOURS.map(
          (one) => html`<option ?selected=${one === colour}>${one}</option>`)}</select></label>
      </div>
      ${failed ? problem(failed) : nothing}
      <div class="sides">
        <figure>
          <canvas role="img" @pointerdown=${hold} @pointermove=${move} @pointerup=${release} @wheel=${wheel}
            @pointerleave=${() => look()} aria-label="${all} by meaning: similar notes are close together. The list has
            the same notes."></canvas>
          <p class="state soft" role="status">${arranging()}</p>
          <div class="zoom"><button aria-label="Zoom in" @click=${() => zoom(1.5)}>+</button>
            <button aria-label="Zoom out" @click=${() => zoom(1 / 1.5)}>−</button></div>
          <figcaption class="legend">${legend.map(({ label, paint }, at) => html`
            <button class="quiet" aria-pressed=${!off.has(at)} @click=${() => toggle(at)}>
              <i class=${paint}></i>${label}</button>`)}</figcaption>
        </figure>
        <section aria-label="Notes">
          <p class="soft small" role="status">${chosen.length < notes.length ? `${number} of ${all}` : all}</p>
          <ol tabindex="0" aria-label="Notes on the map">${chosen.slice(0, listed).map((note) => html`
            <li @pointerenter=${() => look(note)} @focusin=${() => look(note)} @pointerleave=${() => look()}>
              ${noteLink(note.ref, note.title)}
              <span class="soft small">${note.source} · ${when(note.created)}</span></li>`)}
            ${chosen.length > listed ? html`<li><button @click=${more}>Show more</button></li>` : nothing}
          </ol>
        </section>
      </div>`, main);
    draw();
  }

  const load = inTurn(async () => {
    clearTimeout(timer);
    try {
      ({ notes, groups, working, progress } = await get("/map", {}, signal));
      failed = undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      [failed, working] = [error, false];
    }
    for (const note of notes) note.text = [note.title, note.ref, ...note.tags].join(" ").toLowerCase();
    placed = notes.filter((note) => note.place);
    const [left, top, right, bottom] = placed.reduce(([x, y, X, Y], { place: [a, b] }) => [
      Math.min(x, a), Math.min(y, b), Math.max(X, a), Math.max(Y, b)], [Infinity, Infinity, -Infinity, -Infinity]);
    bounds = { x: (left + right) / 2, y: (top + bottom) / 2, width: right - left || 1, height: bottom - top || 1 };
    pointed = undefined;
    linked.clear();
    sort();
    show();
    if (working) timer = setTimeout(load, 500);
  });

  setKeys({
    f: ["Light notes", () => main.querySelector("input").focus()],
    c: ["Next colour", () => colourBy(COLOURS[(COLOURS.indexOf(colour) + 1) % COLOURS.length])],
    "+": ["Zoom in", () => zoom(1.5)],
    "-": ["Zoom out", () => zoom(1 / 1.5)],
  });
  onChange(load);
  await load();
  if (filter) ask();
  const resized = new ResizeObserver(draw), themed = new MutationObserver(draw);
  resized.observe(canvas());
  themed.observe(document.documentElement, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => { resized.disconnect(); themed.disconnect(); });
}
