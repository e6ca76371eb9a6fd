// Search: first hits while you type, then the reader's order and the verdict. With an empty box, it is the home view.

import { changes, get, mayWrite, part, post, sample } from "../parts/api.js";
import { Asking } from "../parts/asking.js";
import { homeView, loadHome, welcome } from "./home.js";
import { kindName } from "../parts/note-card.js";
import { badge, bare, bars, count, dialog, html, icon, inTurn, menuButton, notePath, nothing, problem, render, repeat,
  showBody, svg, when } from "../parts/pieces.js";
import { freeDrafts } from "../parts/store.js";

const MOST_WORDS = 6;
const NEAREST = 3; // hits that are shown although nothing answers, as co search does
const REST = 180; // milliseconds: a pointer that rests on a hit selects it, one that passes does not
const SINCE = [["", "Any time"], ["7d", "Last week"], ["30d", "Last month"], ["365d", "Last year"]];
const FILTERED = "no note passes";
const NOTHING = "Nothing here answers that.";
const VERDICTS = { found: NOTHING, absent: NOTHING,
  inconclusive: "Nothing found, but not everything could be searched." };
const REASONS = { name: "its name matches", meaning: "close in meaning", reader: "ranked up after reading",
  recency: "recent", importance: "important", severity: "severe", tags: "shared tags", domain: "same domain",
  links: "linked with other hits", use: "used often" };
const TELLS = 0.2, READER_TELLS = 0.5; // the least share of a signal that is named; the reader says something of all
const thumb = (way = "") => svg`<svg class="icon thumb ${way}" viewBox="0 0 24 24" aria-hidden="true">
  <path d="M7 11v9H4v-9zm0 0 4-8c2 0 3 1 3 3v4h5c1 0 2 1 2 2l-1 6c0 1-1 2-2 2H7"/></svg>`;

// The snippet with its marks, which count letters and not UTF-16 units.
function marked({ snippet, marks }) {
  const letters = [...snippet], SIGNS = /(^|\s)(?:#{1,6}|[-*+>]|\[[ xX]\])(?=\s)/g; // of lines that are one now
  const text = (from, to) => letters.slice(from, to).join("").replace(SIGNS, "$1");
  let end = 0;
  const lit = (marks ?? []).map(([from, to]) => {
    const before = text(end, from);
    end = to;
    return html`${before}<mark>${text(from, to)}</mark>`;
  });
  return [...lit, text(end)];
}

// Why a hit is here, in a sentence.
function reason(found, hit) {
  const letters = [...hit?.snippet ?? ""];
  const words = (hit?.marks ?? []).map(([from, to]) => letters.slice(from, to).join(""));
  const known = [...new Map(words.map((word) => [word.toLowerCase(), word])).values()].slice(0, MOST_WORDS);
  const named = known.map((word, at) => html`${at ? ", " : ""}<em>${word}</em>`);
  const contains = known.length ? [html`contains ${named}`] : [];
  const signals = found.signals ?? {}, sum = Object.values(signals).reduce((all, value) => all + Math.max(0, value), 0);
  const tells = ([name]) => signals[name] >= sum * (name === "reader" ? READER_TELLS : TELLS);
  const others = Object.entries(REASONS).filter(tells).map(([, text]) => text);
  const all = [...contains, ...others];
  if (!all.length) return "Nothing in it clearly answers that; it is the nearest.";
  return html`It ${contains.length ? "" : "is here because: "}${all.map((one, at) => html`${at ? "; " : ""}${one}`)}.`;
}

function explained(found, hit) {
  const place = (step) => step.rank ? `${step.rank} of ${step.of}` : step.of ? `not among ${step.of}` : "none";
  return html`
    <p><strong>${found.title}</strong><br>${found.rank ? reason(found, hit)
      : `Not in the answer: lost in the step “${found.lost_in}”.`}</p>
    <details ?open=${!found.rank}><summary>Details</summary>
    ${found.rank ? html`<p class="small soft">Rank ${found.rank} of at most ${found.limit}.</p>` : nothing}
    ${bars(found.signals)}
    <div class="scroll" tabindex="0"><table><thead><tr><th>Step</th><th>Rank</th><th>Why</th></tr></thead><tbody>
      ${found.steps.map((step) => html`<tr><td>${step.name}</td><td>${place(step)}</td><td>${step.text}</td></tr>`)}
    </tbody></table></div></details>
    ${found.hints.map((hint) => html`<p class="small soft">Hint: ${hint}</p>`)}`;
}

// What stays the same if another passage of a note is its best; each turn of a conversation is a hit of its own.
const idOf = (one) => one.source === "conversation" ? one.ref : bare(one.ref);

// The hits of a new answer, with those that somebody looks at where they are: [[hit, place]].
export function settled(hits, held) {
  const ids = new Set(held.map(([one]) => idOf(one)));
  const order = hits.filter((one) => !ids.has(idOf(one)));
  const fresh = (old) => hits.find((one) => idOf(one) === idOf(old)) ?? old;
  for (const [one, place] of held.toSorted((a, b) => a[1] - b[1])) order.splice(place, 0, fresh(one));
  return order;
}

let last; // the answer to the last question, for whoever comes back to it

export async function open(main, { query, session, signal, go, toast, setKeys, onChange }) {
  const asked = Object.fromEntries(["q", "source", "tag", "since"].map((name) => [name, query.get(name) ?? ""]));
  const asking = new Asking(asked, show, signal), key = () => JSON.stringify([asked, sample.on]);
  let shown = [], selected = 0, chosen = false, pointed, home, waiting = [], filtering = false;
  let choices = { sources: [], tags: {} }, ratings = {}, looked = {}, resting;

  const hit = () => shown[selected];
  const filters = () => Object.entries(asked).filter(([name, value]) => name !== "q" && value);
  const noNotes = () => asking.final && asking.found.state === "absent" && !asking.found.searched.notes
    && !filters().length;

  // -- what the box found

  function hitsOf({ state, hits }) {
    if (asking.final && state === "found") return hits.toSorted((a, b) => !!a.weak - !!b.weak); // answers first
    return hits.filter((one, place) => !asking.final || place < NEAREST || one.signals.words);
  }

  // Draws what is new. The reader's order moves neither the hit under the pointer nor the one that was selected.
  function show(news) {
    const { found } = asking, before = hit();
    if (news === "hits" && asking.state === "asked") [shown, chosen] = [hitsOf(found), false];
    else if (news) {
      const held = [[chosen ? before : undefined, selected], [shown[pointed], pointed]].filter(([one]) => one);
      shown = settled(hitsOf(found), news === "update" ? [] : [...new Map(held.map((one) => [one[1], one])).values()]);
    }
    const stays = before && (chosen || news === "update");
    if (news) selected = stays ? Math.max(0, shown.findIndex((one) => idOf(one) === idOf(before))) : 0;
    if (!found) shown = [];
    if (asking.final) keep();
    draw();
    if (asking.state !== "typing" && hit() !== before) look();
  }

  function keep() {
    last = { key: key(), found: asking.found, shown, seen: changes.count, selected };
    sessionStorage.setItem("co-hits", JSON.stringify({ q: asked.q, refs: shown.map((one) => one.ref) }));
  }

  const address = () => {
    const said = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    history.replaceState(history.state, "", said.size ? `/?${said}` : "/");
  };

  const goHome = inTurn(async () => {
    if (!asking.empty) return;
    waiting = sample.on ? [] : await freeDrafts();
    draw();
    home = await loadHome(signal);
    draw();
  });

  function change(name, value) {
    asked[name] = value;
    pointed = undefined;
    address();
    const done = asking.changed();
    if (asking.empty) goHome();
    draw();
    return done;
  }

  // -- the selected hit

  async function look() {
    const pane = main.querySelector(".preview article"), one = hit();
    if (!pane || !one || !pane.offsetParent) return;
    try {
      looked[one.ref] ??= get(`/rendered/${part(bare(one.ref))}`, {}, signal);
      const note = await looked[one.ref];
      if (hit() !== one) return;
      const top = pane.shown === one.ref ? pane.scrollTop : undefined; // it was only drawn again
      const lit = showBody(pane, note, one.lines, signal);
      pane.shown = one.ref;
      pane.scrollTop = top ?? (lit ? Math.max(0, lit.offsetTop - pane.offsetTop - 40) : 0);
    } catch (caught) {
      delete looked[one.ref];
      if (!signal.aborted && hit() === one) pane.textContent = caught.message;
    }
  }

  function select(place, focus) {
    const before = selected;
    selected = Math.max(0, Math.min(place, shown.length - 1));
    chosen = true;
    if (last && last.shown === shown) last.selected = selected;
    if (before !== selected) { draw(); look(); }
    if (focus) main.querySelectorAll(".hit > a")[selected]?.focus();
  }

  function point(place) {
    pointed = place;
    clearTimeout(resting);
    resting = setTimeout(() => { if (pointed === place && !signal.aborted && shown[place]) select(place); }, REST);
  }

  function leave() {
    pointed = undefined;
    clearTimeout(resting);
  }

  async function why(ref) {
    if (!ref || asking.empty) return;
    const found = await get("/why", { ...asked, ref: bare(ref) }, signal);
    dialog("Why", explained(found, shown.find((one) => bare(one.ref) === bare(ref))));
  }

  async function rate(good, one = hit()) {
    const { q } = asked;
    if (!one || !asking.found || !mayWrite()) return;
    await post("/ratings", { ref: bare(one.ref), good, q });
    ratings[`${q}\n${bare(one.ref)}`] = good;
    toast(good ? "Rated as an answer" : "Rated as no answer");
    draw();
  }

  // -- keys

  // Opens the best hit for what is typed now, once it is known.
  async function enter() {
    if (asking.empty) return;
    await asking.answered();
    if (hit() && asking.final) go(notePath(hit().ref));
  }

  function keyInBox(event) {
    if (event.isComposing || event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    if (event.key === "Enter") enter();
    else if (asking.empty) main.querySelector(".group a")?.focus();
    else select(selected, true);
  }

  function keyInHits(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (step === -1 && !selected) box().focus();
    else select(selected + step, true);
  }

  // -- drawing

  function drop(names) {
    for (const name of names) asked[name] = "";
    change("q", asked.q);
  }

  const without = (names) => html`<button @click=${() => drop(names)}>
    Search without ${names.length === 1 ? "it" : "filters"}</button>`;

  function verdict() {
    const { found, state } = asking;
    if (state === "reading") return html`<span class="reading-hits">${icon("article")}Reading the hits…</span>`;
    if (!found || asking.error || noNotes()) return nothing;
    if (state !== "done") return html`<span class="soft">${count(found.hits.length, "note")}…</span>`;
    const sure = found.confidence === null ? "" : ` · ${Math.round(100 * found.confidence)} % sure`;
    const searched = `${count(found.searched.notes, "note")} searched`;
    const unmatched = found.understood.find((text) => text.startsWith(FILTERED));
    if (unmatched) {
      const names = filters().map(([name]) => name);
      const named = names.filter((name) => unmatched.startsWith(`${FILTERED} the filter ${name}:`));
      return html`${badge("filtered", "warn")} N${unmatched.slice(1)}. ${without(named.length ? named : names)}`;
    }
    if (found.state === "found" && found.hits.some((one) => !one.weak)) {
      const took = `in ${Math.round(found.took_ms)} ms`;
      const best = found.hits.filter((one) => !one.weak).length > 1 ? "Best answers" : "Best answer";
      return html`${badge(best, "good")} <span class="soft" title=${took}>${searched}${sure}</span>`;
    }
    const writing = `/note/?title=${encodeURIComponent(asked.q)}`;
    return html`${badge(VERDICTS[found.state], "warn")} ${found.hits.length ? "Nearest:" : ""}
      <span class="soft">${searched}${sure}</span>
      ${mayWrite() ? html`<a class="button" href=${writing}>${icon("edit")}Write it</a>` : nothing}`;
  }

  const isFar = (one) => asking.final && asking.found.hits.some((hit) => !hit.weak) && one.weak;

  const row = (one, place) => html`<li class="hit ${isFar(one) ? "far" : ""}"
      aria-current=${place === selected ? "true" : nothing}
      @focusin=${() => select(place)} @pointermove=${() => point(place)} @pointerleave=${leave}>
    ${isFar(one) && place && !isFar(shown[place - 1])
      ? html`<div class="near small soft">Also related</div>` : nothing}
    <a href=${notePath(one.ref)} title=${one.title}>${icon(one.source)}
      <span class="title" dir="auto">${one.title}</span></a>
    <p dir="auto">${one.snippet ? marked(one) : one.description}</p>
    <div class="meta small soft">${when(one.created)}
      ${one.heading ? html`<span class="where" dir="auto">${one.heading}</span>` : nothing}
      ${one.newer ? badge(`older: see ${one.newer}`, "warn") : nothing}
      ${one.outdated ? badge(one.outdated, "warn") : nothing}
      ${one.part_of?.length ? badge(`a part of: ${one.part_of.join(", ")}`) : nothing}
      ${one.tags.slice(0, 3).map((tag) => html`<span class="tag">#${tag}</span>`)}</div>
    <div class="narrow">${menuButton(`More about ${one.title}`, [["Why", () => why(one.ref)],
      ...mayWrite() ? [["This answers it", () => rate(true, one)], ["This does not answer it", () => rate(false, one)]]
        : []])}</div></li>`;

  const preview = (one) => {
    const rated = ratings[`${asked.q}\n${bare(one.ref)}`];
    return html`<aside class="preview card" aria-label="Preview">
      <div class="row"><h2 class="grow" dir="auto"><a href=${notePath(one.ref)}>${one.title}</a></h2>
        <button class="quiet" @click=${() => why(one.ref)} title="Why is it here? (w)">Why</button>
        ${mayWrite() ? html`
          <button class="quiet" aria-pressed=${rated === true} @click=${() => rate(true)} aria-label="This answers it"
            title="This answers it (+)">${thumb()}</button>
          <button class="quiet" aria-pressed=${rated === false} @click=${() => rate(false)}
            aria-label="This does not answer it" title="This does not answer it (-)">
            ${thumb("down")}</button>` : nothing}</div>
      <article class="prose" tabindex="0" aria-label=${one.title}></article></aside>`;
  };

  const remarks = ({ understood, suggestions, state }) => html`
    ${understood.filter((text) => !text.startsWith(FILTERED)).map((text) => html`<p class="small soft">${text}</p>`)}
    ${asking.final && suggestions.length && state !== "found" ? html`<p>Words that occur here: ${suggestions.map(
      (word) => html`<button class="quiet" @click=${() => change("q", word)}>${word}</button>`)}</p>` : nothing}`;

  const results = (found) => html`${remarks(found)}<div class="split"><div>
      <ol class="hits" @keydown=${keyInHits}>${repeat(shown, idOf, row)}</ol>
      ${asking.final ? html`${found.degraded.map((text) => html`<p class="small warn">${text}</p>`)}
        <form class="row small" @submit=${(event) => { event.preventDefault(); why(event.target.missing.value); }}>
        <label for="missing">Missing a note?</label>
        <input id="missing" name="missing" placeholder="its title or ref" required>
        <button>Why not?</button></form>` : nothing}</div>
      ${hit() ? preview(hit()) : nothing}</div>`;

  const filterName = { source: kindName, tag: (tag) => `#${tag}`, since: (age) => new Map(SINCE).get(age) ?? age };
  const chip = ([name, value]) => html`<button class="chip" @click=${() => change(name, "")}
    aria-label="Remove the filter ${name}: ${value}">${filterName[name](value)} ✕</button>`;

  const option = (value, text, now) => html`<option value=${value} .selected=${value === now}>${text}</option>`;
  const filterRow = () => html`<div class="row filters">
    <select aria-label="Kind" @change=${(event) => change("source", event.target.value)}>
      ${option("", "All kinds", asked.source)}
      ${choices.sources.map((one) => option(one, kindName(one), asked.source))}</select>
    <input list="tags" aria-label="Tag" placeholder="Tag" .value=${asked.tag}
      @change=${(event) => change("tag", event.target.value.replace(/^#/, ""))}>
    <datalist id="tags">${Object.keys(choices.tags).slice(0, 200).map((tag) => option(tag, ""))}</datalist>
    <select aria-label="Created" @change=${(event) => change("since", event.target.value)}>
      ${SINCE.map(([value, text]) => option(value, text, asked.since))}</select></div>`;

  async function toggle() {
    filtering = !filtering;
    draw();
    if (filtering) choices = await get("/filters", {}, signal);
    draw();
  }

  function draw() {
    const { found, error, empty } = asking;
    main.classList.toggle("at-home", empty);
    render(html`<h1 class=${empty ? "" : "hidden"}>${empty ? "What would you like to know?" : "Search"}</h1>
      <search><div class="box">${icon("search")}
        <input type="search" .value=${asked.q} aria-label="Search your notes" placeholder="Ask, or type a few words"
          autocomplete="off" spellcheck="false"
          @input=${(event) => change("q", event.target.value)} @keydown=${keyInBox}>
        <button class="quiet" aria-expanded=${filtering} @click=${toggle} title="Filters" aria-label="Filters">
          ${icon("filter")}</button></div>
        ${filtering ? filterRow() : nothing}
        ${filters().length ? html`<div class="row chosen">${filters().map(chip)}</div>` : nothing}
      </search>
      <div class="verdict" role="status" aria-live="polite">${verdict()}</div>
      ${error ? problem(error) : nothing}${empty ? homeView(home, waiting, session, go, goHome) : nothing}
      ${!found || error ? nothing : noNotes() ? welcome(session, go) : results(found)}`, main);
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
    if (asking.empty) goHome();
    else asking.update();
  });
  signal.addEventListener("abort", leave);
  if (asking.empty && (asked.tag || asked.source)) { // filters without a question: they list notes
    const said = Object.entries({ tag: asked.tag, kind: asked.source }).filter(([, value]) => value);
    history.replaceState(null, "", `/notes?${new URLSearchParams(said)}`);
    return dispatchEvent(new PopStateEvent("popstate"));
  }
  draw();
  box().focus({ preventScroll: true });
  if (asking.empty) return goHome();
  if (last?.key !== key()) return asking.ask();
  // the answer that was left
  Object.assign(asking, { state: "done", found: last.found });
  ({ shown, selected } = last);
  draw();
  look();
  if (selected) select(selected, true);
  if (last.seen !== changes.count) asking.update();
}
