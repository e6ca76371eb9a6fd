// Review: findings of a job, decided with keys, each with undo.

import { del, get, part, post } from "./api.js";
import { badge, count, html, inTurn, noteLink, nothing, notePath, once, poll, problem, render, when } from "./parts.js";

const SHOWN = 50, LONGEST = 900, LONG = 8; // looking for secrets takes as long as all the rest
const NAMES = {
  "secret": "Secrets", "proposed": "Proposed", "conflict": "Conflicts", "near-duplicate": "Duplicates", "possible-conflict": "Possible conflicts", "expired": "Expired",
  "superseded": "Broken references", "broken-link": "Broken links", "oversized": "Too long", "orphan": "Stale, unlinked",
  "never-recalled": "Stale, linked",
};
const ACTIONS = {
  accept: ["a", "Accept", "Accept"], forget: ["f", "Forget", "Forget the older"], supersede: ["s", "", "Supersede the older"],
  edit: ["e", "Edit", "Edit the older"], keep: ["d", "Dismiss", "Dismiss"],
};
const SAID = { accept: "Saved", forget: "Forgotten", supersede: "Superseded", keep: "Dismissed" };
const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

// A text with the words marked that another one does not have.
function marked(text, other) {
  const known = new Set(words(other));
  return text.split(/([\p{L}\p{N}]+)/u).map((one, place) =>
    place % 2 && !known.has(one.toLowerCase()) ? html`<mark>${one}</mark>` : one);
}

export async function open(main, { query, signal, go, toast, setKeys, onChange }) {
  let answer, kind = query.get("kind") ?? "", limit = SHOWN, selected = 0, notes = {}, timer;
  const findings = () => answer?.findings ?? [];
  const finding = () => findings()[selected];

  // The same finding stays selected while it is listed, whatever happens to others.
  const load = inTurn(async () => {
    const asked = { kind, limit };
    let found = await get("/review", asked, signal);
    if (found.job.state === "none") {
      await post("/review", {}, signal);
      found = await get("/review", asked, signal);
    }
    clearTimeout(timer);
    if (found.job.state === "running") timer = poll(load, signal);
    const last = found.findings.length - 1, place = found.findings.findIndex((one) => one.key === finding()?.key);
    selected = Math.max(0, place >= 0 ? place : answer?.kind === asked.kind ? Math.min(selected, last) : 0);
    answer = { ...found, kind: asked.kind };
    draw();
    look();
  });

  // The texts of the selected finding's notes.
  async function look() {
    const one = finding();
    for (const ref of one?.kind === "secret" || one?.proposed ? [] : one?.refs ?? []) {
      notes[ref] ??= await get(`/notes/${part(ref)}`, {}, signal).catch((caught) => ({ ref, body: caught.message }));
    }
    if (!signal.aborted && one === finding()) draw();
  }

  function select(place) {
    selected = Math.max(0, Math.min(place, findings().length - 1));
    draw();
    look();
    main.querySelector(".finding[aria-current] button")?.focus();
  }

  async function again() {
    notes = {};
    await post("/review", {}, signal);
    await load();
  }

  const choose = (name) => async () => {
    const one = finding();
    if (!one?.actions.includes(name)) return;
    if (name === "edit") return go(`${notePath(one.refs[0])}?edit=1`);
    await once(one.key, async () => {
      const done = await post("/review/decisions", { key: one.key, action: name });
      toast(`${SAID[name]}: ${one.title || one.refs[0]}`, () => undo(done));
      await load(); // now another one is selected
    });
    main.querySelector(".finding[aria-current] button")?.focus();
  };

  const undo = (done) => once(`undo ${done.key}`, async () => {
    await del(`/review/decisions/${done.key}`);
    toast(`${SAID[done.action]}, taken back: ${done.refs[0]}`);
    notes = {};
    await load();
  });
  const undoLast = () => { if (answer?.decided.length) undo(answer.decided[0]); };

  const step = (by) => () => select(selected + by);
  const pick = (name) => {
    [kind, limit] = [name, SHOWN];
    history.replaceState(null, "", name ? `/review?kind=${name}` : "/review");
    load();
  };

  // -- drawing

  function side(ref, other) {
    const note = notes[ref];
    if (!note) return html`<div>${noteLink(ref)}</div>`;
    const text = note.body.trim(), short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
    return html`<div><h2>${noteLink(ref, note.title)}</h2>
      <p class="small soft">${ref}${note.created ? html` · ${when(note.created)}` : nothing}</p>
      <p class="text">${other && notes[other] ? marked(short, notes[other].body) : short}</p></div>`;
  }

  function detail(one) {
    const [older, newer] = one.refs;
    const version = (ref, text, other) => html`<div><p class="small soft">${noteLink(ref)}</p><p class="text">${marked(text, other)}</p></div>`;
    if (one.proposed) return html`<div class="detail"><div class=${newer ? "pair" : ""}>
      ${newer ? version(newer, one.replaced, one.proposed) : nothing}${version(older, one.proposed, newer ? one.replaced : one.proposed)}</div>${buttons(one)}</div>`;
    return html`<div class="detail">
      <div class=${newer ? "pair" : ""}>${side(older, newer)}${newer ? side(newer, older) : nothing}</div>
      ${buttons(one)}</div>`;
  }

  const buttons = (one) => html`<div class="row">${one.actions.map((name) => html`<button class=${name === "forget" ? "danger" : ""} @click=${choose(name)}>
    ${ACTIONS[name][one.refs[1] ? 2 : 1]} <kbd>${ACTIONS[name][0]}</kbd></button>`)}</div>`;

  const item = (one, place) => html`<li class="card finding" aria-current=${place === selected ? "true" : nothing}>
    <button class="fold" aria-expanded=${place === selected} @click=${() => select(place)}>
      <span class="row"><strong>${one.title || one.refs[0]}</strong>${badge(NAMES[one.kind].replace(/s$/, ""), one.kind === "secret" ? "bad" : "")}</span>
      <span class="small soft reason">${one.reason}</span></button>
    ${place === selected ? detail(one) : nothing}</li>`;

  function progress({ progress: now }) {
    const text = now ? `Looking for ${NAMES[now.step]?.toLowerCase()}: ${now.done.toLocaleString("en")} of ${count(now.total, "note")}` : "Reading notes";
    const place = Object.keys(NAMES).indexOf(now?.step), share = now ? now.done / (now.total || 1) : 0;
    const at = place > 0 ? LONG + place - 1 + share : LONG * share;
    return html`<div class="card"><label for="progress">${text}</label><progress id="progress" max=${LONG + 10} .value=${at}></progress></div>`;
  }

  function body() {
    const { job, kinds, changed, decided, degraded } = answer;
    if (job.state === "running") return progress(job);
    if (job.state === "failed") return problem({ message: job.problem });
    const total = kinds.reduce((sum, one) => sum + one.undecided, 0);
    const left = (kind ? kinds.find((one) => one.kind === kind)?.undecided ?? 0 : total) - findings().length;
    const chip = (name, text, number, title) => html`<button aria-pressed=${kind === name} title=${title} @click=${() => pick(name)}>
      ${text} <span class="number">${number.toLocaleString("en")}</span></button>`;
    return html`
      <p class="soft" role="status">${count(answer.notes, "note")} read ${when(job.finished)}, ${count(total, "finding")}${
        answer.dismissed ? `, ${answer.dismissed} dismissed earlier` : ""}.
        ${degraded.map((text) => html`<br><span class="small">${text}</span>`)}</p>
      ${changed ? html`<p class="card row">Notes have changed since this review.
        <button @click=${again}>Review again <kbd>r</kbd></button></p>` : nothing}
      <div class="row kinds" role="group" aria-label="Kinds of findings">${chip("", "All", total, "Everything")}
        ${kinds.filter((one) => one.undecided || one.kind === kind).map((one) => chip(one.kind, NAMES[one.kind], one.undecided, one.text))}</div>
      ${findings().length ? html`<ol class="findings">${findings().map(item)}</ol>`
        : html`<p class="empty">Nothing to decide here. ${decided.length ? `You decided ${count(decided.length, "finding")}.` : ""}</p>`}
      ${left > 0 ? html`<button @click=${() => { limit += SHOWN * 4; load(); }}>Show more (${left.toLocaleString("en")})</button>` : nothing}
      ${decided.length ? html`<p class="small soft">Decided since the review: ${decided.length}.
        <button class="quiet" @click=${undoLast}>Undo the last <kbd>u</kbd></button></p>` : nothing}`;
  }

  function draw() {
    render(html`<div class="row head"><h1 class="grow">Review</h1>
      <button @click=${again} ?disabled=${answer?.job.state === "running"}>Review again <kbd>r</kbd></button></div>
      ${answer ? body() : nothing}`, main);
  }

  setKeys({
    j: ["Next finding", step(1)], k: ["Previous finding", step(-1)],
    a: ["Accept the proposal", choose("accept")], f: ["Forget the note, or the older of two", choose("forget")], s: ["Supersede the older by the newer", choose("supersede")],
    e: ["Edit", choose("edit")], d: ["Dismiss: keep the note and do not ask again", choose("keep")],
    u: ["Undo the last decision", undoLast], r: ["Review again", again],
  });
  onChange(() => { notes = {}; load(); });
  draw();
  await load();
}
