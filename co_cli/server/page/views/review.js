// Review: an inbox. Proposals and conflicts come first, quiet findings are folded. Decide about one, several or all of
// a kind, with undo. A model rewrites the draft of an article when it is asked, and what differs is shown.

import { del, get, mayWrite, part, post } from "../parts/api.js";
import {
  badge, bare, count, html, inTurn, noteLink, nothing, notePath, once, poll, problem, render, repeat, when,
} from "../parts/pieces.js";
import { reviewCount } from "../parts/store.js";

const PAGE = 100, LONGEST = 900, SPARE = 6; // findings of a request, characters of a note, rows drawn beyond the window
const LONG = 8; // looking for secrets takes as long as all the rest
const NAMES = {
  secret: "Secrets", proposed: "Proposed", conflict: "Conflicts", "possible-conflict": "Possible conflicts",
  "near-duplicate": "Duplicates", expired: "Expired", superseded: "Broken references", "broken-link": "Broken links",
  oversized: "Too long", orphan: "Stale, unlinked", "never-recalled": "Stale, linked", combine: "To combine",
};
const CHECKS = [ // in the order in which they run
  "secret", "proposed", "conflict", "near-duplicate", "possible-conflict", "expired", "superseded", "broken-link",
  "oversized", "orphan", "never-recalled", "combine",
];
const ACTIONS = {
  accept: ["a", "Save", "Save"], rewrite: ["w", "", "Rewrite"], forget: ["f", "Forget", "Forget the older"],
  supersede: ["s", "", "Supersede the older"], edit: ["e", "Edit", "Edit the older"], keep: ["d", "Dismiss", "Dismiss"],
};
const VERSIONS = { accept: "Take the other", forget: "Keep this", edit: "Merge", keep: "Keep both" };
const SAID = { accept: "Saved", forget: "Forgotten", supersede: "Superseded", keep: "Dismissed" };
const versioned = (one) => one?.kind === "conflict" && Boolean(one.copy || one.proposed || one.replaced);
const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

// A text with the words marked that another one does not have.
function marked(text, other) {
  const known = new Set(words(other));
  return text.split(/([\p{L}\p{N}]+)/u).map((one, place) =>
    place % 2 && !known.has(one.toLowerCase()) ? html`<mark>${one}</mark>` : one);
}

export async function open(main, { query, signal, go, toast, setKeys, onChange }) {
  let answer, pages = {}, notes = {}, timer, current, anchor, showing = false, editing = false, rewritten = {}, told;
  const folded = {}, checked = new Map(); // by kind, what somebody chose; by key, the findings
  if (query.get("kind")) {
    current = { kind: query.get("kind"), index: 0 };
    folded[current.kind] = false;
  }

  // -- rows: a header for each kind that has findings and, unless it is folded, its findings

  const rowHeight = () => 3.6 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const isFolded = ({ kind, urgent }) => folded[kind] ?? !urgent;
  function groups(from = answer) {
    let start = 0;
    return from.kinds.filter((one) => one.undecided).map((one) => {
      const group = { ...one, start, rows: isFolded(one) ? 0 : one.undecided };
      start += 1 + group.rows;
      return group;
    });
  }
  const total = (all = groups()) => all.reduce((sum, one) => sum + 1 + one.rows, 0);
  const rowOf = (row, all = groups()) => {
    const group = all.findLast((one) => one.start <= row);
    return group && { group, index: row - group.start - 1 };
  };
  const pageOf = ({ kind, index }) => `${kind} ${Math.floor(index / PAGE)}`;
  const at = (kind, index) => pages[pageOf({ kind, index })]?.[index % PAGE];
  const finding = () => current && at(current.kind, current.index);

  function fetchPage(kind, index, into = pages) {
    const name = pageOf({ kind, index }), offset = index - index % PAGE;
    return into[name] ??= get("/review", { kind, offset, limit: PAGE }, signal).then((found) => {
      into[name] = found.findings;
      if (into === pages) draw();
    });
  }

  // -- loading

  // The selected place among the findings of an answer, or the nearest that there is.
  function placeIn(found) {
    const all = groups(found).filter((one) => one.rows), now = all.find(({ kind }) => kind === current?.kind);
    if (now) return { kind: now.kind, index: Math.min(current.index, now.rows - 1) };
    return all.length ? { kind: all[0].kind, index: 0 } : undefined;
  }

  // The same finding stays selected while it is listed, or else its place does, whatever happens to others.
  const load = inTurn(async () => {
    let found = await get("/review", { limit: 0 }, signal), next;
    if (found.job.state === "none") found = { ...await post("/review", {}, signal), findings: [] };
    clearTimeout(timer);
    if (found.job.state === "running") timer = poll(follow, signal);
    const fresh = {}; // keys act on what is shown, and may select another finding, until these are there
    while ((next = placeIn(found)) && !fresh[pageOf(next)]) await fetchPage(next.kind, next.index, fresh);
    const before = finding()?.key;
    [answer, pages, current] = [found, fresh, next];
    reviewCount.value = found.kinds.reduce((sum, one) => sum + (one.urgent ? one.undecided : 0), 0);
    const place = current ? fresh[pageOf(current)].findIndex((one) => one.key === before) : -1;
    if (place >= 0) current.index += place - current.index % PAGE;
    else editing = false; // what is typed belongs to no other finding
    draw();
    look();
  });

  // The texts of the selected finding's notes.
  async function look() {
    const one = finding();
    for (const ref of one?.kind === "secret" || one?.proposed || versioned(one) ? [] : one?.refs ?? []) {
      notes[ref] ??= await get(`/notes/${part(ref)}`, {}, signal).catch((caught) => ({ ref, body: caught.message }));
    }
    if (!signal.aborted && one === finding()) draw();
  }

  async function again() {
    notes = {};
    rewritten = {};
    await post("/review", {}, signal);
    await load();
  }

  // -- moving and choosing

  async function select(row, focus = true) {
    const { group, index } = rowOf(row) ?? {};
    if (!group || index < 0) return;
    current = { kind: group.kind, index };
    stopEditing();
    await fetchPage(group.kind, index);
    const list = main.querySelector(".findings"), high = rowHeight();
    const top = list.getBoundingClientRect().top + row * high;
    if (top < 80) scrollBy(0, top - 80);
    else if (top + high > innerHeight - 80) scrollBy(0, top + high - innerHeight + 80);
    draw();
    if (focus) main.querySelector(`[data-row="${row}"] .fold`)?.focus({ preventScroll: true });
    return look();
  }
  const rowNow = () => current ? groups().find((one) => one.kind === current.kind).start + 1 + current.index : 0;
  const step = (by) => () => {
    const all = groups();
    let row = rowNow();
    do row += by; while (row >= 0 && row < total(all) && rowOf(row, all).index < 0);
    if (row >= 0 && row < total(all)) return select(row);
  };

  // A click on a box, with Shift from the last one on; `x` for the selected finding.
  async function check(row, range) {
    const from = range && anchor !== undefined ? anchor : row, all = groups();
    const on = range ? true : !checked.has(at(rowOf(row).group.kind, rowOf(row).index)?.key);
    for (let one = Math.min(from, row); one <= Math.max(from, row); one++) {
      const { group, index } = rowOf(one, all);
      if (index < 0) continue;
      await fetchPage(group.kind, index);
      const found = at(group.kind, index);
      if (on) checked.set(found.key, found); else checked.delete(found.key);
    }
    anchor = row;
    draw();
  }
  const clear = () => { checked.clear(); anchor = undefined; showing = false; stopEditing(); draw(); };
  const fold = (kind, now) => { folded[kind] = !now; return load(); };

  // -- deciding

  // What others do is shown to somebody who types when that is done: the finding might be gone.
  const follow = async () => { if (!editing) await load(); };
  const stopEditing = () => { if (editing) { editing = false; load(); } };

  const chosen = () => checked.size ? [...checked.values()] : finding() ? [finding()] : [];
  const possible = (all) => Object.keys(ACTIONS).filter((name) => all.length
    && !(all.length > 1 && ["edit", "rewrite"].includes(name)) && all.every((one) => one.actions.includes(name)));

  async function send(asked, said) {
    const done = await post("/review/decisions", asked);
    if (done.problem) toast(done.problem);
    answer.decided.unshift(done); // `u` takes it back from now on, and is no letter of a text
    checked.clear();
    anchor = undefined;
    if (asked.keys?.includes(finding()?.key)) editing = false;
    draw();
    told = toast(said(done), () => undo(done));
    await load();
    if (!finding()) showing = false;
    draw();
    main.querySelector(editing ? ".detail textarea" : ".finding[aria-current] .fold")?.focus({ preventScroll: true });
  }

  const choose = (name, given) => async () => {
    const all = given ?? chosen(), [one] = all;
    if (name === "edit" && (one?.proposed || versioned(one)) && all.length === 1) return edit();
    if (!possible(all).includes(name)) return;
    if (name === "edit") return go(`${notePath(one.refs[0])}?edit=1`);
    if (name === "rewrite") return once(`rewrite ${one.key}`, () => rewrite(one));
    const isTyped = editing && one.key === finding()?.key;
    const text = all[1] ? undefined : isTyped ? main.querySelector(".detail textarea").value : rewritten[one.key];
    const title = ["combine", "conflict"].includes(one.kind) ? one.title : text ?? (one.title || one.refs[0]);
    const said = (done) => `${SAID[name]}: ${done.total > 1 ? count(done.total, "finding") : title}`;
    const keys = all.map(({ key }) => key);
    await once(`decide ${keys}`, () => send({ keys, action: name, text }, said));
  };
  const dismissAll = ({ kind }) => once(`dismiss ${kind}`, () => send({ kind, action: "keep" }, (done) =>
    `Dismissed: ${done.total.toLocaleString("en")} of the kind ${NAMES[kind].toLowerCase()}`));

  async function rewrite(one) {
    toast("The model rewrites the draft. Nothing is saved.");
    stopEditing();
    const { text } = await post("/review/rewrite", { key: one.key });
    if (!editing || finding()?.key !== one.key) rewritten[one.key] = text; // what is typed meanwhile stays
    draw();
  }

  function edit() {
    if (!mayWrite()) return;
    [editing, showing] = [true, true];
    draw();
    main.querySelector(".detail textarea").focus();
  }

  const undo = (done) => once(`undo ${done.key}`, async () => {
    await del(`/review/decisions/${done.key}`);
    told?.remove(); // it said what is taken back
    told = toast(`${SAID[done.action]}, taken back: ${done.total > 1 ? count(done.total, "finding") : done.title}`);
    notes = {};
    await load();
  });
  const undoLast = () => { if (answer?.decided.length) undo(answer.decided[0]); };

  // -- drawing

  function side(ref, other) {
    const note = notes[ref];
    if (!note) return html`<div>${noteLink(ref)}</div>`;
    const text = note.body.trim(), short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
    return html`<div><h3>${noteLink(ref, note.title)}</h3>
      <p class="small soft">${ref}${note.created ? html` · ${when(note.created)}` : nothing}</p>
      <p class="text" tabindex="0">${other && notes[other] ? marked(short, notes[other].body) : short}</p></div>`;
  }

  // Two versions of one note. A merged text starts as the other version.
  function versions(one) {
    return html`<div><h3>${noteLink(one.refs[0], "This version")}</h3>
        <p class="text article" tabindex="0">${marked(one.replaced, one.proposed)}</p></div>
      <div><h3>${editing ? "Merged" : "The other version"}</h3>${editing
        ? html`<textarea rows="20" .value=${one.proposed} aria-label="The merged text"></textarea>`
        : html`<p class="text article" tabindex="0">${marked(one.proposed, one.replaced)}</p>`}
        ${one.copy ? html`<p class="small soft">${one.copy}</p>` : nothing}</div>`;
  }

  // A memory, next to the one that it replaces, or an article, next to its draft if a model has rewritten it.
  function proposal(one) {
    const [source, known] = one.refs, talk = `/conversation/${part(bare(source))}${source.slice(bare(source).length)}`;
    const article = one.kind === "combine", now = rewritten[one.key] ?? one.proposed;
    const before = !article ? one.replaced : now === one.proposed ? "" : one.proposed;
    const save = choose("accept", [one]);
    const press = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); };
    const text = (said, other) => html`<p class="text ${article ? "article" : ""}" tabindex="0">${
      other ? marked(said, other) : said}</p>`;
    return html`${before ? html`<div><h3>${article ? "The memories' own texts" : noteLink(known)}</h3>
        ${text(before, now)}</div>` : nothing}
      <div><h3>${!before ? "Would be saved" : article ? "Rewritten by the model" : "Would be replaced by"}</h3>
        ${!editing ? text(now, before) : html`<textarea rows=${article ? 20 : 4} .value=${now} @keydown=${press}
          aria-label=${article ? "The article" : "The memory"}></textarea>`}
        <p class="small">${!article ? html`<a href=${talk}>Where it was said</a>` : html`It would supersede
          ${one.refs.map((ref, place) => [place ? ", " : "", noteLink(ref)])}. Their files stay.`}</p></div>`;
  }

  const buttons = (all) => possible(all).map((name) => {
    const [key, one, older] = ACTIONS[name], kind = { forget: "danger", accept: "primary" }[name] ?? "";
    const both = all.every(versioned) && (editing && name === "accept" ? "Save" : VERSIONS[name]);
    const text = both || (all.some(({ refs }) => refs[1]) ? older : one);
    return html`<button class=${kind} @click=${choose(name, all)}>${text} <kbd>${key}</kbd></button>`;
  });

  function detail(one) {
    const [older, newer] = one.refs;
    return html`<section class="card detail ${showing ? "showing" : ""}" aria-label="The finding">
      <div class="row"><button class="back" @click=${() => { showing = false; draw(); }}>‹ Back</button>
        ${badge(NAMES[one.kind].replace(/([^s])s$/, "$1"), one.kind === "secret" ? "bad" : "")}</div>
      <h2 dir="auto">${one.title || older}</h2><p class="soft">${one.reason}</p>
      ${versioned(one) ? versions(one) : one.proposed ? proposal(one)
        : html`${side(older, newer)}${newer ? side(newer, older) : nothing}`}
      <div class="row acts">${buttons([one])}${one.proposed && mayWrite() && !editing && !one.actions.includes("edit")
        ? html`<button @click=${edit}>Edit <kbd>e</kbd></button>` : nothing}</div></section>`;
  }

  const place = (row) => `top:${row * rowHeight()}px`;
  const header = (row, group) => html`<div class="kind ${group.urgent ? "urgent" : ""}" data-row=${row}
      .style=${place(row)}>
    <h2><button class="fold" aria-expanded=${!isFolded(group)} @click=${() => fold(group.kind, isFolded(group))}>
      ${NAMES[group.kind]} <span class="soft">${group.undecided.toLocaleString("en")}</span></button></h2>
    <span class="small soft about">${group.text}</span>
    ${mayWrite() ? html`<button class="quiet" aria-label="Dismiss all: ${NAMES[group.kind]}"
      @click=${() => dismissAll(group)}>Dismiss all</button>` : nothing}</div>`;

  function item(row, { kind }, index) {
    const one = at(kind, index), now = current?.kind === kind && current.index === index;
    if (!one) return html`<div class="finding coming" data-row=${row} .style=${place(row)}>…</div>`;
    const name = one.title || one.refs[0];
    const press = (event) => event.shiftKey ? check(row, true) : select(row).then(() => { showing = true; draw(); });
    return html`<div class="finding" data-row=${row} aria-current=${now ? "true" : nothing} .style=${place(row)}>
      ${one.actions.length ? html`<input type="checkbox" aria-label="Select: ${name}" data-key=${one.key}
        @click=${(event) => check(row, event.shiftKey)}>` : nothing}
      <button class="fold" @click=${press}><strong>${name}</strong>
        <span class="small soft">${one.reason}</span></button></div>`;
  }

  // Only the rows in the window, and some more.
  function list() {
    const all = groups(), length = total(all), high = rowHeight();
    const top = main.querySelector(".findings")?.getBoundingClientRect().top ?? 200;
    const from = Math.max(0, Math.floor(-top / high) - SPARE);
    const to = Math.min(length, Math.ceil((innerHeight - top) / high) + SPARE);
    const rows = Array.from({ length: Math.max(0, to - from) }, (_, place) => from + place);
    for (const row of rows) {
      const { group, index } = rowOf(row, all);
      if (index >= 0 && !at(group.kind, index)) fetchPage(group.kind, index);
    }
    return html`<div class="findings" .style=${`height:${length * high}px`}>${repeat(rows, (row) => row, (row) => {
      const { group, index } = rowOf(row, all);
      return index < 0 ? header(row, group) : item(row, group, index);
    })}</div>`;
  }

  function progress({ progress: now }) {
    const far = now?.done ? `: ${now.done.toLocaleString("en")} of ${count(now.total, "note")}` : "";
    const text = now ? `Looking for ${NAMES[now.step]?.toLowerCase()}${far}` : "Reading notes";
    const check = CHECKS.indexOf(now?.step), share = now ? now.done / (now.total || 1) : 0;
    const done = check > 0 ? LONG + check - 1 + share : LONG * share;
    return html`<div class="progress"><label class="small" for="progress">${text}</label>
      <progress id="progress" max=${LONG + CHECKS.length - 1} .value=${done}></progress></div>`;
  }

  function body() {
    const { job, kinds, changed, decided, degraded } = answer, one = finding();
    const left = kinds.reduce((sum, found) => sum + found.undecided, 0), running = job.state === "running";
    const made = decided.reduce((sum, done) => sum + done.total, 0);
    const earlier = answer.dismissed ? `, ${answer.dismissed.toLocaleString("en")} dismissed earlier` : "";
    return html`${running ? progress(job) : html`<p class="soft" role="status">
        ${count(left, "finding")} in ${count(answer.notes, "note")}, read ${when(job.finished)}${earlier}.
        ${made ? html`You decided ${made.toLocaleString("en")}.
          <button class="quiet" @click=${undoLast}>Undo the last <kbd>u</kbd></button>` : nothing}
        ${degraded.map((text) => html`<br><span class="small">${text}</span>`)}</p>`}
      ${job.state === "failed" ? problem({ message: job.problem }) : nothing}
      ${changed && !running ? html`<p class="card row">Notes have changed since this review.
        <button @click=${again}>Review again <kbd>r</kbd></button></p>` : nothing}
      ${left ? html`<div class="inbox">${list()}
          ${one ? detail(one) : html`<p class="soft aside">Open a kind to see its findings.</p>`}</div>`
        : running ? nothing : html`<div class="empty"><p>Nothing to decide. Your notes are in order.</p></div>`}
      ${checked.size ? html`<div class="card selected" role="group" aria-label="Selected findings">
        <b class="grow">${checked.size.toLocaleString("en")} selected</b>${buttons([...checked.values()])}
        <button class="quiet" @click=${clear}>Clear <kbd>Esc</kbd></button></div>` : nothing}`;
  }

  function draw() {
    if (signal.aborted) return;
    render(html`<div class="row head"><h1 class="grow">Review</h1>
      <button @click=${again} ?disabled=${answer?.job.state === "running"}>Review again <kbd>r</kbd></button></div>
      ${answer ? body() : nothing}`, main);
    for (const box of main.querySelectorAll(".finding input")) box.checked = checked.has(box.dataset.key);
  }

  let frame;
  const moved = () => { frame ??= requestAnimationFrame(() => { frame = undefined; if (answer) draw(); }); };
  addEventListener("scroll", moved, { signal, passive: true });
  addEventListener("resize", moved, { signal });
  const [next, previous] = [["Next finding", step(1)], ["Previous finding", step(-1)]];
  setKeys({
    j: next, k: previous, ArrowDown: next, ArrowUp: previous,
    x: ["Select the finding", () => finding() && check(rowNow())],
    a: ["Save the proposal", choose("accept")], w: ["Let the model rewrite the article", choose("rewrite")],
    f: ["Forget the note, or the older of two", choose("forget")],
    s: ["Supersede the older by the newer", choose("supersede")], e: ["Edit", choose("edit")],
    d: ["Dismiss: keep the note and do not ask again", choose("keep")], u: ["Undo the last decision", undoLast],
    r: ["Review again", again], Escape: ["Clear the selection", clear],
  });
  onChange(() => { notes = {}; return follow(); });
  await load();
  draw();
}
