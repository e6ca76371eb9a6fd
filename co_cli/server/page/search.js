// Search: results as you type; after a pause one search that a model reads and the log keeps, with the verdict.

import { changes, get, mayWrite, part, post, sample } from "./api.js";
import { badge, bare, bars, count, dialog, html, inTurn, notePath, nothing, problem, render, showBody, svg, when } from "./parts.js";

const PAUSE = 300; // milliseconds
const NEAREST = 3; // hits that are shown although nothing answers, as co search does
const SINCE = [["", "Any time"], ["7d", "Last week"], ["30d", "Last month"], ["365d", "Last year"]];
const thumb = (way = "") => svg`<svg class="thumb ${way}" viewBox="0 0 24 24" aria-hidden="true"><path d="M7 11v9H4v-9zm0 0 4-8c2 0 3 1 3 3v4h5c1 0 2 1 2 2l-1 6c0 1-1 2-2 2H7"/></svg>`;

// The snippet with its marks, which count letters and not UTF-16 units, and without Markdown's own marks.
function marked({ snippet, marks }) {
  const letters = [...snippet], parts = [];
  const text = (from, to) => letters.slice(from, to).join("").replace(/\*\*|`|\[\[|\]\]/g, "");
  let from = 0;
  for (const [first, last] of marks ?? []) {
    parts.push(text(from, first), html`<mark>${text(first, last)}</mark>`);
    from = last;
  }
  return [...parts, text(from)];
}

function explained(found) {
  const place = (step) => step.rank ? `${step.rank} of ${step.of}` : step.of ? `not among ${step.of}` : "none";
  return html`
    <p><strong>${found.title}</strong><br>${found.rank ? `Rank ${found.rank} of at most ${found.limit}.`
      : `Not in the answer: lost in the step “${found.lost_in}”.`}</p>
    ${bars(found.signals)}
    <div class="scroll" tabindex="0"><table><thead><tr><th>Step</th><th>Rank</th><th>Why</th></tr></thead><tbody>
      ${found.steps.map((step) => html`<tr><td>${step.name}</td><td>${place(step)}</td><td>${step.text}</td></tr>`)}
    </tbody></table></div>
    ${found.hints.map((hint) => html`<p class="small soft">Hint: ${hint}</p>`)}`;
}

let last; // the answer to the last question, for whoever comes back to it

export async function open(main, { query, session, signal, go, toast, setKeys, onChange }) {
  const asked = { q: query.get("q") ?? "", source: query.get("source") ?? "", tag: query.get("tag") ?? "", since: query.get("since") ?? "" };
  let found, recent, error, shownFor, final = false, typing = false, selected = 0, ratings = {}, choices = { sources: [], tags: {} };
  let pause, serial = 0, looked = {};

  const near = (one, place) => !final || found.state === "found" || place < NEAREST || one.signals.words;
  const shown = () => found?.hits.filter(near) ?? recent ?? [];
  const hit = () => shown()[selected];

  const key = () => JSON.stringify([asked, sample.on]);

  // -- searching

  // Shows the answer or the newest notes, unless something else is asked meanwhile. If notes `changed`, it is not logged.
  async function load(changed) {
    const mine = ++serial, wanted = key(), seen = changes.count, { q, ...filters } = asked;
    try {
      const answer = q.trim() ? await get("/search", { ...asked, ...(typing ? { typing } : changed && { track: false }) }, signal) : await get("/notes", filters, signal);
      if (mine !== serial) return;
      const before = changed || document.activeElement?.closest(".hit") ? bare(hit()?.ref ?? "") : undefined;
      if (q.trim()) [found, final] = [answer, !typing];
      else [found, final, recent] = [undefined, false, answer];
      [error, shownFor, selected] = [undefined, wanted, Math.max(0, shown().findIndex((one) => bare(one.ref) === before))];
      if (final) last = { key: wanted, found, seen, selected };
    } catch (caught) {
      if (mine !== serial) return;
      if (signal.aborted || changed && shownFor === wanted) throw caught;
      [error, found] = [caught, undefined];
    }
    draw();
    if (typing) return;
    look();
    if (!changed && seen !== changes.count) update();
  }

  const update = inTurn(async () => { if (final || error || !asked.q.trim()) await load(true); });

  // One request at a time while typing, and always one for the newest text.
  const type = inTurn(async () => { if (typing) await load(); });

  function ask() {
    clearTimeout(pause);
    [typing, final] = [Boolean(asked.q.trim()), false];
    if (!typing) return settle();
    pause = setTimeout(settle, PAUSE);
    return type();
  }

  function settle() {
    const shown = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    history.replaceState(null, "", shown.size ? `/?${shown}` : "/");
    typing = false;
    return load();
  }

  // -- the selected hit

  async function look() {
    const pane = main.querySelector(".preview article"), one = hit();
    if (!pane || !one || !pane.offsetParent) return;
    try {
      looked[one.ref] ??= get(`/rendered/${part(bare(one.ref))}`, {}, signal);
      const note = await looked[one.ref];
      if (hit() !== one) return;
      const lit = showBody(pane, note, one.lines, signal);
      pane.scrollTop = lit ? Math.max(0, lit.offsetTop - pane.offsetTop - 40) : 0;
    } catch (caught) {
      delete looked[one.ref];
      if (!signal.aborted && hit() === one) pane.textContent = caught.message;
    }
  }

  function select(place, focus) {
    const before = selected;
    selected = Math.max(0, Math.min(place, shown().length - 1));
    if (last && last.found === found) last.selected = selected;
    if (before !== selected) { draw(); look(); }
    if (focus) main.querySelectorAll(".hit > a")[selected]?.focus();
  }

  async function why(ref) {
    if (!ref || !asked.q.trim()) return;
    dialog("Why", explained(await get("/why", { ...asked, ref: bare(ref) }, signal)));
  }

  async function rate(good) {
    const { q } = asked, one = hit();
    if (!one || !found || !mayWrite()) return;
    await post("/ratings", { ref: bare(one.ref), good, q });
    ratings[`${q}\n${bare(one.ref)}`] = good;
    toast(good ? "Rated as an answer" : "Rated as no answer");
    draw();
  }

  // -- drawing

  function change(name, event) {
    asked[name] = event.target.value;
    ask();
  }

  // Opens the best hit for what is typed now.
  async function enter() {
    if (shownFor !== key()) {
      clearTimeout(pause);
      await settle();
    }
    if (hit() && shownFor === key()) go(notePath(hit().ref));
  }

  function keyInBox(event) {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    if (event.key === "Enter") enter();
    else select(selected, true);
  }

  function verdict() {
    if (error || !found) return nothing;
    if (!final) return html`<span class="soft">${count(found.hits.length, "note")}…</span>`;
    const sure = found.confidence === null ? "" : ` · ${Math.round(100 * found.confidence)} % sure`;
    const searched = `${count(found.searched.notes, "note")} searched`;
    const unsure = found.hits[0]?.weak;
    if (found.state === "found" && !unsure) return html`${badge("found", "good")} <span class="soft">${searched}${sure} · ${Math.round(found.took_ms)} ms</span>`;
    const text = found.state === "found" ? "Only weak matches." : found.state === "absent" ? "Nothing here clearly answers that." : "Nothing found, but not everything could be searched.";
    return html`${badge(found.state === "found" ? "weak" : found.state, "warn")} ${text} <span class="soft">${searched}${sure}</span>
      ${!mayWrite() ? nothing : html`<a class="button" href="/note/?title=${encodeURIComponent(asked.q)}">Write it</a>`}`;
  }

  const row = (one, place) => {
    const best = Math.max(1, shown()[0].score ?? 0), parts = Object.entries(one.signals ?? {});
    const names = parts.map(([name, value]) => `${name} ${value.toFixed(2)}`).join(", ");
    return html`<li class="hit" aria-current=${place === selected ? "true" : nothing} @focusin=${() => select(place)} @mousemove=${() => select(place)}>
      <a href=${notePath(one.ref)}>${one.title}</a> ${badge(one.source)}
      ${one.weak ? badge("weak match", "warn") : nothing}${one.outdated ? badge(one.outdated, "warn") : nothing}
      ${one.part_of?.length ? badge(`a part of: ${one.part_of.join(", ")}`) : nothing}
      ${one.heading ? html`<span class="small soft">${one.heading}</span>` : nothing}
      <p>${one.snippet ? marked(one) : one.description}</p>
      <div class="row small soft">${parts.length ? html`<span class="stack" role="img" aria-label=${names}>${parts.map(
        ([name, value]) => html`<i class="part-${name}" .style=${`width:${Math.max(0, 100 * value / best)}%`}></i>`)}</span>` : nothing}
        ${when(one.created)} ${one.tags.slice(0, 4).map((tag) => html`<span>#${tag}</span>`)}
        ${found ? html`<button class="narrow" @click=${() => why(one.ref)}>Why</button>` : nothing}</div>
    </li>`;
  };

  const preview = (one) => {
    const rated = ratings[`${asked.q}\n${bare(one.ref)}`];
    return html`<aside class="preview card" aria-label="Preview">
      <div class="row"><h2 class="grow">${one.title}</h2>
        ${found ? html`<button class="quiet" @click=${() => why(one.ref)} title="Why is it here? (w)">Why</button>` : nothing}
        ${!found || !mayWrite() ? nothing : html`
          <button class="quiet" aria-pressed=${rated === true} @click=${() => rate(true)} aria-label="This answers it" title="This answers it (+)">${thumb()}</button>
          <button class="quiet" aria-pressed=${rated === false} @click=${() => rate(false)} aria-label="This does not answer it" title="This does not answer it (-)">${thumb("down")}</button>`}</div>
      ${found ? bars(one.signals) : nothing}<hr>
      <article class="prose" tabindex="0" aria-label=${one.title}></article></aside>`;
  };

  const welcome = () => html`<section class="card welcome"><h2>${sample.on ? "Three questions to try" : "There are no notes here yet"}</h2>
    ${sample.on ? nothing : html`<p>Try a sample first, the notes of a small team that makes tide clocks. Ask them:</p>`}
    <div class="row">${session.questions.map((one) => html`<button @click=${() => { sample.on = true; go(`/?q=${encodeURIComponent(one)}`); }}>${one}</button>`)}</div>
    ${sample.on ? nothing : html`<hr><p>Or begin with your own: <code>co add FOLDER</code> makes notes that you have searchable.</p>
      <a class="button primary" href="/note/">Write the first note</a>`}</section>`;

  const about = () => found ? html`
    ${found.understood.map((text) => html`<p class="small soft">${text}</p>`)}
    ${final ? found.degraded.map((text) => html`<p class="small warn">${text}</p>`) : nothing}
    ${final && found.suggestions.length && found.state !== "found" ? html`<p>Words that occur here: ${found.suggestions.map(
      (word) => html`<button class="quiet" @click=${() => { asked.q = word; ask(); draw(); }}>${word}</button>`)}</p>` : nothing}`
    : html`${sample.on || !session.notes && !recent?.length ? welcome() : nothing}
    ${recent?.length ? html`<h2>${asked.tag ? `Notes with #${asked.tag}` : "Newest notes"}</h2>`
      : recent && session.notes ? html`<p class="empty">No note fits these filters.</p>` : nothing}`;

  const results = () => html`${about()}<div class="split"><div>
      <ol class="hits">${shown().map(row)}</ol>
      ${final ? html`<form class="row small" @submit=${(event) => { event.preventDefault(); why(event.target.missing.value); }}>
        <label for="missing">Missing a note?</label><input id="missing" name="missing" placeholder="its title or ref" required>
        <button>Why not?</button></form>` : nothing}</div>
      ${hit() ? preview(hit()) : nothing}</div>`;

  function draw() {
    render(html`<h1 class="hidden">Search</h1>
      <search>
        <input type="search" .value=${asked.q} aria-label="Search your notes" placeholder="Ask, or type a few words" autocomplete="off" spellcheck="false"
          @input=${(event) => change("q", event)} @keydown=${keyInBox}>
        <div class="row filters">
          <select aria-label="Source" @change=${(event) => change("source", event)}><option value="">All sources</option>
            ${choices.sources.map((one) => html`<option .selected=${one === asked.source}>${one}</option>`)}</select>
          <input list="tags" aria-label="Tag" placeholder="Tag" .value=${asked.tag} @change=${(event) => change("tag", event)}>
          <datalist id="tags">${Object.keys(choices.tags).slice(0, 200).map((tag) => html`<option value=${tag}></option>`)}</datalist>
          <select aria-label="Created" @change=${(event) => change("since", event)}>
            ${SINCE.map(([value, text]) => html`<option value=${value} .selected=${value === asked.since}>${text}</option>`)}</select>
          ${mayWrite() ? html`<a class="button new" href="/note/" title="New note (n)">New note</a>` : nothing}
        </div>
      </search>
      <div class="verdict" role="status" aria-live="polite">${verdict()}</div>
      ${error ? problem(error) : results()}`, main);
  }

  const box = () => main.querySelector("input[type=search]");
  const one = (fn) => () => { if (hit()) fn(hit()); };
  setKeys({
    "/": ["Search", () => { box().focus(); box().select(); }],
    j: ["Next result", () => select(document.activeElement.closest(".hit") ? selected + 1 : selected, true)],
    k: ["Previous result", () => select(selected - 1, true)],
    Enter: ["Open", one((hit) => go(notePath(hit.ref)))],
    e: ["Edit", one((hit) => go(`${notePath(bare(hit.ref))}?edit=1`))],
    w: ["Why, or why not", () => hit() ? why(hit().ref) : main.querySelector("#missing")?.focus()],
    "+": ["This answers it", () => rate(true)],
    "-": ["This does not answer it", () => rate(false)],
  });
  onChange(() => {
    looked = {};
    update();
  });
  signal.addEventListener("abort", () => clearTimeout(pause));
  draw();
  box().focus({ preventScroll: true });
  get("/filters", {}, signal).then((all) => { choices = all; draw(); });
  if (last?.key !== key()) return settle();
  [found, final, shownFor] = [last.found, true, last.key];
  draw();
  look();
  if (last.selected) select(last.selected, true);
  if (last.seen !== changes.count) update();
}
