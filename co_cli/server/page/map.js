// Notes by meaning: points to look at on a canvas, and the same notes as a list.

import { get } from "./api.js";
import { count, html, inTurn, noteLink, notePath, nothing, problem, render, when } from "./parts.js";

const DAY = 86400000;
const AGES = [["this week", 7], ["this month", 31], ["this quarter", 92], ["this year", 366], ["older", Infinity]];
const MOST_TAGS = 7;
const NEAR = 14; // pixels
const LISTED = 40;

export async function open(main, { query, signal, go, onChange, setKeys }) {
  let notes = [], working = true, failed, listed = LISTED, pointed, timer;
  let colour = ["source", "age"].find((one) => one === query.get("colour")) ?? "tag";
  let filter = query.get("q") ?? "";
  const view = { x: 0, y: 0, zoom: 1 }; // the middle, in units of the map, and how much larger than all of it

  // -- which notes, in which colours ----------------------------------------------------------------------------

  const haystack = (note) => (note.text ??= [note.title, note.ref, ...note.tags].join(" ").toLowerCase());
  const chosen = () => {
    const words = filter.toLowerCase().split(/\s+/);
    return notes.filter((note) => words.every((word) => haystack(note).includes(word)));
  };

  // The groups of the legend, [label, class], and which of them a note belongs to.
  function groups() {
    if (colour === "age") {
      const bin = (note) => AGES.findIndex(([, days]) => Date.now() - new Date(note.created) < days * DAY);
      return [AGES.map(([label], number) => [label, `a${number}`]), bin];
    }
    const counts = new Map();
    const values = (note) => (colour === "tag" ? note.tags : [note.source]);
    for (const note of notes) for (const one of values(note)) counts.set(one, (counts.get(one) ?? 0) + 1);
    const most = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, MOST_TAGS);
    const bin = (note) => {
      const found = most.findIndex((one) => values(note).includes(one));
      return found < 0 ? most.length : found;
    };
    const labels = colour === "tag" ? [...most, "other"] : most;
    return [labels.map((label, number) => [label, label === "other" ? "c7" : `c${number}`]), bin];
  }

  // -- the canvas -----------------------------------------------------------------------------------------------

  const canvas = () => main.querySelector("canvas");
  const placed = () => notes.filter((note) => note.place);

  function frame() {
    const area = canvas();
    const { width, height } = area.getBoundingClientRect();
    const [xs, ys] = [0, 1].map((axis) => placed().map((note) => note.place[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = view.zoom * Math.min((width - 50) / (right - left || 1), (height - 50) / (bottom - top || 1));
    const middle = [(left + right) / 2 + view.x, (top + bottom) / 2 + view.y];
    const at = ([x, y]) => [width / 2 + (x - middle[0]) * scale, height / 2 + (y - middle[1]) * scale];
    return { area, width, height, scale, at };
  }

  function draw() {
    if (!canvas()) return;
    const { area, width, height, at } = frame();
    const ratio = devicePixelRatio || 1, ink = area.getContext("2d"), style = getComputedStyle(area);
    area.width = width * ratio;
    area.height = height * ratio;
    ink.scale(ratio, ratio);
    const lit = new Set(chosen()), [, bin] = groups(), all = placed();
    const paints = [...main.querySelectorAll(".legend i")].map((one) => getComputedStyle(one).backgroundColor);
    const size = Math.min(7, Math.max(2.5, 60 / Math.sqrt(all.length))) * Math.min(1.6, view.zoom ** 0.3);
    const dot = (note, radius) => {
      const [x, y] = at(note.place);
      ink.moveTo(x + radius, y);
      ink.arc(x, y, radius, 0, 7);
    };
    const parts = paints.map(() => [[], []]); // dimmed and lit
    for (const note of all) parts[bin(note)][lit.has(note) ? 1 : 0].push(note);
    for (const shown of [0, 1]) {
      ink.globalAlpha = shown ? 0.9 : 0.15;
      for (let number = paints.length - 1; number >= 0; number--) { // "other" is below
        ink.beginPath();
        for (const note of parts[number][shown]) dot(note, size);
        ink.fillStyle = paints[number];
        ink.fill();
      }
    }
    ink.globalAlpha = 1;
    if (pointed?.place) {
      ink.beginPath();
      dot(pointed, size + 4);
      ink.lineWidth = 2;
      ink.strokeStyle = style.color;
      ink.stroke();
    }
    label(ink, all.filter((note) => lit.has(note)), at, size, style, width, height);
  }

  // Titles next to points, as far as they cover neither each other nor another point.
  function label(ink, shown, at, size, style, width, height) {
    const full = new Set(), cell = (x, y) => Math.round(x / 8) * 10000 + Math.round(y / 8);
    for (const note of shown) full.add(cell(...at(note.place)));
    ink.font = `12px ${style.fontFamily}`;
    ink.textBaseline = "middle";
    ink.fillStyle = style.color;
    const write = (note, text, whatever) => {
      const [x, y] = at(note.place), wide = ink.measureText(text).width;
      let from = x + size + 5;
      if (from + wide > width - 4) from = x - size - 5 - wide;
      const cells = [];
      for (let right = 0; right <= wide + 8; right += 8) for (const down of [-8, 0, 8]) cells.push(cell(from + right, y + down));
      const own = cell(x, y), outside = from < 0 || x < 0 || x > width || y < 0 || y > height;
      if (!whatever && (outside || cells.some((one) => one !== own && full.has(one)))) return;
      for (const one of cells) full.add(one);
      if (whatever) {
        from = Math.max(4, from);
        ink.lineWidth = 6;
        ink.strokeStyle = style.backgroundColor;
        ink.strokeText(text, from, y);
      }
      ink.fillText(text, from, y);
    };
    for (const note of shown) if (note !== pointed) write(note, note.title.length > 32 ? `${note.title.slice(0, 30).trimEnd()}…` : note.title);
    if (pointed?.place) write(pointed, pointed.title, true);
  }

  function nearest(event) {
    const { area, at } = frame();
    const box = area.getBoundingClientRect();
    let best, least = NEAR;
    for (const note of chosen()) {
      if (!note.place) continue;
      const [x, y] = at(note.place);
      const far = Math.hypot(x + box.left - event.clientX, y + box.top - event.clientY);
      if (far < least) [best, least] = [note, far];
    }
    return best;
  }

  function point(note) {
    if (pointed === note) return;
    pointed = note;
    canvas()?.classList.toggle("on-note", Boolean(note));
    draw();
  }

  function zoom(times, event) {
    if (!placed().length) return;
    const { area, width, height, scale } = frame();
    const box = area.getBoundingClientRect();
    const next = Math.min(40, Math.max(1, view.zoom * times));
    const stay = (1 / scale) * (1 - view.zoom / next); // what is under the pointer stays there
    view.x += event ? (event.clientX - box.left - width / 2) * stay : 0;
    view.y += event ? (event.clientY - box.top - height / 2) * stay : 0;
    view.zoom = next;
    if (next === 1) view.x = view.y = 0;
    draw();
  }

  let drag;
  const hold = (event) => { drag = { moved: 0 }; canvas().setPointerCapture(event.pointerId); };
  const move = (event) => {
    if (!drag || !placed().length) return point(nearest(event));
    const { scale } = frame();
    view.x -= event.movementX / scale;
    view.y -= event.movementY / scale;
    drag.moved += Math.abs(event.movementX) + Math.abs(event.movementY);
    draw();
  };
  const release = (event) => {
    const note = drag?.moved < 5 && nearest(event);
    drag = undefined;
    if (note) go(notePath(note.ref));
  };
  const wheel = { handleEvent(event) { event.preventDefault(); zoom(1.0015 ** -event.deltaY, event); }, passive: false };

  // -- the page -------------------------------------------------------------------------------------------------

  function choose(change) {
    ({ filter, colour } = { filter, colour, ...change });
    listed = LISTED;
    const asked = new URLSearchParams({ ...(filter && { q: filter }), ...(colour !== "tag" && { colour }) });
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    show();
  }

  function show() {
    const found = chosen(), [legend] = groups();
    const state = filter ? `${found.length.toLocaleString("en")} of ${count(notes.length, "note")}` : count(notes.length, "note");
    const waiting = working && !placed().length;
    render(html`<h1>Map</h1>
      <div class="row">
        <input class="grow" aria-label="Filter notes" placeholder="Filter by title or tag" .value=${filter} @input=${(event) => choose({ filter: event.target.value })}>
        <label>Colour <select @change=${(event) => choose({ colour: event.target.value })}>${["tag", "source", "age"].map(
          (one) => html`<option ?selected=${one === colour}>${one}</option>`)}</select></label>
      </div>
      ${failed ? problem(failed) : nothing}
      <div class="sides">
        <figure>
          <canvas role="img" aria-label=${`${count(notes.length, "note")} by meaning: similar notes are close together. The list has the same notes.`}
            @pointerdown=${hold} @pointermove=${move} @pointerup=${release} @pointerleave=${() => point()} @wheel=${wheel}></canvas>
          <p class="state soft" role="status">${!notes.length && !working ? "There are no notes here yet." : waiting ? "Arranging your notes…" : working ? "Updating…" : ""}</p>
          <div class="zoom">
            <button aria-label="Zoom in" @click=${() => zoom(1.5)}>+</button><button aria-label="Zoom out" @click=${() => zoom(1 / 1.5)}>−</button>
          </div>
          <figcaption class="legend">${legend.map(([text, kind]) => html`<span><i class=${kind}></i>${text}</span>`)}</figcaption>
        </figure>
        <section aria-label="Notes">
          <p class="soft small" role="status">${state}</p>
          <ol tabindex="0" aria-label="Notes on the map">${found.slice(0, listed).map((note) => html`
            <li @pointerenter=${() => point(note)} @focusin=${() => point(note)} @pointerleave=${() => point()}>
              ${noteLink(note.ref, note.title)}<span class="soft small">${note.source} · ${when(note.created)}</span></li>`)}
            ${found.length > listed ? html`<li><button @click=${() => { listed += 5 * LISTED; show(); }}>Show more</button></li>` : nothing}
          </ol>
        </section>
      </div>`, main);
    draw();
  }

  const load = inTurn(async () => {
    clearTimeout(timer);
    try {
      ({ notes, working } = await get("/map", {}, signal));
      failed = undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      [failed, working] = [error, false];
    }
    pointed = undefined;
    show();
    if (working) timer = setTimeout(load, 500 + notes.length / 4);
  });

  setKeys({
    f: ["Filter", () => main.querySelector("input").focus()],
    c: ["Next colour", () => choose({ colour: { tag: "source", source: "age", age: "tag" }[colour] })],
    "+": ["Zoom in", () => zoom(1.5)],
    "-": ["Zoom out", () => zoom(1 / 1.5)],
  });
  onChange(load);
  await load();
  const resized = new ResizeObserver(draw), themed = new MutationObserver(draw);
  resized.observe(canvas());
  themed.observe(document.documentElement, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => { resized.disconnect(); themed.disconnect(); });
}
