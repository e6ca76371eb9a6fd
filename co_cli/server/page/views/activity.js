// Activity: what agents did, session by session, and live; conversations; everything; and numbers below.

import { get, mayWrite, part } from "../parts/api.js";
import {
  FRONT_ENDS, arrows, badge, bare, byDay, clock, count, dayText, html, icon, inTurn, nameOf, noteLink, nothing, render,
  repeat, showBody, timeOf,
} from "../parts/pieces.js";
import { charts } from "../parts/charts.js";
import { givenNotes, stopGiving } from "../parts/note-card.js";

const SHOWN = 20, NEAR = 5000; // milliseconds between a prompt and what it was given
const VIEWS = [["", "Agents"], ["conversations", "Conversations"], ["log", "Everything"]];
const KINDS = [["", "Everything"], ["asked", "Asked"], ["given", "Added to prompts"], ["saved", "Saved"]];
const OUTCOMES = { found: ["found", "good"], absent: ["nothing found", "warn"], inconclusive: ["not sure", "warn"] };
const WHY = {
  always: "marked `loading: always`", named: "asked about by name",
  contextual: "marked `loading: contextual`, and about the prompt",
  recalled: "clearly about the prompt",
};

// -- one session ----------------------------------------------------------------------------------------------------

const noteChips = (notes, titles, more = 0) => html`<ul class="chips">${notes.map((note) => html`<li>
  ${noteLink(note.ref, titles[bare(note.ref)])} ${note.cited ? badge("cited", "accent") : nothing}</li>`)}
  ${more > 0 ? html`<li class="soft">and ${more} more</li>` : nothing}</ul>`;

const step = (at, kind, shape, content) => html`<li class="step ${kind}">${timeOf(at)}
  <span class="dot">${icon(shape)}</span><div>${content}</div></li>`;

const bubble = (who, text) => html`<p class="small soft who">${who}</p><p class="bubble">${text}</p>`;

function found({ text, outcome, notes, total }, titles) {
  const about = text === null ? html`<span class="soft">text is not logged</span>`
    : html`<a class="quoted" href="/?q=${encodeURIComponent(text)}">${text}</a>`;
  return html`<p>Looked up “${about}” ${badge(...OUTCOMES[outcome] ?? [outcome])}</p>
    ${notes.length ? noteChips(notes, titles, total - notes.length) : nothing}`;
}

function saved({ outcome, text, notes: [note], total }, titles) {
  const what = outcome[0].toUpperCase() + outcome.slice(1);
  return html`<p>${what} ${total > 1 ? count(total, "note") : noteLink(note.ref, titles[note.ref] ?? text)}</p>`;
}

// What a prompt was given: each note with its reason, and a button that stops it.
function given(entry, shown, stop) {
  const { notes, total, tokens, titles = shown.titles } = entry;
  if (entry.outcome === "nothing") return html`<p class="soft">No note was given: none was clearly about it</p>`;
  if (entry.outcome === "late") {
    return html`<p class="soft">No note was given: too slow, ${entry.late.toFixed(1)} s</p>`;
  }
  if (entry.outcome === "cited") return html`<p>The answer cites</p>${noteChips(notes, titles)}`;
  const row = ({ ref, cited, why, tokens }) => ({
    ref, tokens, title: titles[bare(ref)], mark: cited && ["cited", "accent"], why: WHY[why] ?? why ?? "cited",
    stopped: shown.stopped.includes(bare(ref)), stays: !titles[bare(ref)],
  });
  return html`<p>Given ${count(total, "note")}, about ${count(tokens, "token")}</p>
    ${notes.length ? givenNotes(notes.map(row), stop)
      : html`<p class="small soft">The log leaves their names out.</p>`}
    ${entry.given ? html`<details><summary class="small soft">The exact text</summary>
      <pre class="wrap" tabindex="0">${entry.given}</pre></details>` : nothing}`;
}

// Prompts, what they were given, tools and answers, by time. A conversation that was kept has the prompts itself.
function steps(shown, stop) {
  const { entries, talk, titles, session } = shown, all = [];
  const turns = (talk?.turns ?? []).filter((turn) => turn.at !== null);
  for (const turn of turns) {
    const asks = turn.role === "person";
    const answers = turn.speaker === "Assistant" ? nameOf(session.front_end) : turn.speaker;
    all.push([turn.at * 1000, asks ? 0 : 3, turn.role, asks ? "entity" : "conversation", html`
      <p class="small soft who">${asks ? "Prompt" : answers}</p>
      <div class="bubble prose" tabindex="0" data-turn=${talk.turns.indexOf(turn)}></div>`]);
  }
  for (const entry of entries) {
    const at = Date.parse(entry.at);
    const known = turns.some((turn) => turn.role === "person" && Math.abs(turn.at * 1000 - at) < NEAR);
    if (entry.prompt && !known) all.push([at, 0, "person", "entity", bubble("Prompt", entry.prompt)]);
    const [order, shape, content] = {
      given: () => [1, "memory", given(entry, shown, stop)], asked: () => [2, "search", found(entry, titles)],
      saved: () => [2, "edit", saved(entry, titles)],
    }[entry.kind]();
    all.push([at, order, entry.kind, shape, content]);
  }
  all.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  return all.map(([at, , kind, shape, content]) => step(at, kind, shape, content));
}

// -- the view -------------------------------------------------------------------------------------------------------

const summary = ({ prompts, late, late_seconds: seconds, notes, tokens, asked, saved: changes }) => [
  late ? `${late} of ${count(prompts, "prompt")}: too slow, ${seconds.toFixed(1)} s` : "",
  notes ? `${count(notes, "note")} · ${count(tokens, "token")}` : "no notes given",
  asked ? count(asked, "look-up") : "", changes ? `${changes} saved` : "",
].filter(Boolean).join(" · ");

export async function open(main, { query, signal, toast, setKeys, onChange }) {
  let view = query.get("view") ?? "", opened = query.get("session"), limit = SHOWN, kind = "", frontEnd = "";
  let sessions, shown, talks, feed, numbers, seen;

  const load = inTurn(async () => {
    if (view === "conversations") talks = await get("/conversations", { limit }, signal);
    else if (view === "log") feed = await get("/activity", { kind, front_end: frontEnd, limit }, signal);
    else sessions = await get("/activity/sessions", { limit }, signal);
    const [first] = sessions?.sessions ?? [];
    if (view === "" && opened === null && first && !seen && matchMedia("(min-width: 761px)").matches) opened = first.id;
    if (view === "" && opened) {
      const gone = (error) => ({ problem: error.message });
      shown = await get(`/activity/sessions/${part(opened)}`, {}, signal).catch(gone);
    }
    draw();
    seen = Object.fromEntries((sessions?.sessions ?? []).map((one) => [one.id, one.ended]));
  });
  const loadNumbers = inTurn(async () => {
    const [stats, memories] = await Promise.all([
      get("/activity/stats", { days: 30, limit: 20 }, signal), get("/activity/memories", {}, signal)]);
    numbers = { stats, memories };
    draw();
  });

  function address() {
    const asked = new URLSearchParams({ ...view && { view }, ...view === "" && opened && { session: opened } });
    history.replaceState(null, "", asked.size ? `/activity?${asked}` : "/activity");
  }
  const show = (next) => {
    [view, limit] = [next, SHOWN];
    address();
    return load();
  };
  const toggle = (id) => {
    [opened, shown] = [opened === id ? "" : id, undefined];
    address();
    draw();
    return load();
  };

  const stop = (ref, stopped) => stopGiving(ref, stopped, toast, load);

  // -- drawing

  const sessionItem = (one) => {
    const isOpen = one.id === opened, fresh = seen && seen[one.id] !== one.ended, ref = sessions.conversations[one.id];
    const [from, to] = [clock(one.started), clock(one.ended)], times = from === to ? from : `${from}–${to}`;
    return html`<li class="card session ${fresh ? "fresh" : ""}">
      <button class="fold" aria-expanded=${isOpen} @click=${() => toggle(one.id)}>
        <span class="row"><strong>${nameOf(one.front_end)}</strong><span class="soft">${times}</span>
          <span class="soft about">${summary(one)}</span></span>
        ${one.prompt && !isOpen ? html`<span class="prompt soft">${one.prompt}</span>` : nothing}</button>
      ${!isOpen ? nothing : html`<div class="inside">${shown?.problem ? html`<p class="soft">${shown.problem}</p>`
        : shown?.session.id !== one.id ? html`<p class="soft">Reading…</p>`
          : html`<ol class="steps">${steps(shown, stop)}</ol>`}
        ${ref ? html`<p><a class="button" href="/conversation/${part(ref)}">Read the conversation</a></p>` : nothing}
      </div>`}</li>`;
  };

  function agents() {
    const { sessions: all, total, query_log: log } = sessions;
    return html`${log === "on" ? nothing : html`<p class="card warning">The setting <code>query_log</code> is
        <b>${log}</b>:
        ${log === "off" ? "nothing more" : "no text"} is recorded. <a href="/settings">Settings</a></p>`}
      <div @keydown=${arrows(".session > .fold")}>${byDay(all, (one) => one.ended).map(([, group]) => html`
        <h2 class="day">${dayText(group[0].ended)}</h2>
        <ol class="sessions">${repeat(group, (one) => one.id, sessionItem)}</ol>`)}</div>
      ${all.length ? nothing : html`<div class="empty"><p>No agent was given a note, looked one up or saved one yet.</p>
        <p>Connect one with <code>co setup claude-code</code>, or any other with <code>co mcp</code>.</p></div>`}
      ${total > all.length ? html`<button @click=${older}>Show earlier sessions</button>` : nothing}
      ${numbers ? below() : nothing}`;
  }

  function below() {
    const { stats, memories } = numbers, nothingFound = stats.found_nothing;
    const write = (text) => mayWrite() ? html`<a class="button" href="/note/?title=${encodeURIComponent(text)}"
      aria-label="Write it: ${text}">Write it</a>` : nothing;
    const row = ({ text, times }) => html`<li><a class="grow" href="/?q=${encodeURIComponent(text)}">${text}</a>
      <span class="small soft">${times === 1 ? "once" : `${times} times`}</span>${write(text)}</li>`;
    return html`${nothingFound.length ? html`<section class="card"><h2>Unanswered questions</h2>
        <ul class="questions">${nothingFound.map(row)}</ul></section>` : nothing}
      ${charts(stats, memories, draw)}`;
  }

  const talk = ({ ref, title, agent, created }) => html`<li><a href="/conversation/${part(ref)}">${title}</a>
    ${ref.startsWith("checkpoint:") ? badge("checkpoint") : nothing}
    <span class="small soft">${agent ? `${agent} · ` : ""}${clock(created * 1000)}</span></li>`;

  const conversations = () => html`<div @keydown=${arrows(".talks a")}>${
    byDay(talks, (one) => one.created * 1000).map(([, group]) => html`
      <h2 class="day">${dayText(group[0].created * 1000)}</h2><ul class="card talks">${group.map(talk)}</ul>`)}</div>
    ${talks.length ? nothing : html`<div class="empty"><p>No conversation was kept yet.</p>
      <p>Keep those of your agents in the <a href="/settings">settings</a>.</p></div>`}
    ${talks.length === limit ? html`<button @click=${older}>Show older</button>` : nothing}`;

  function logItem(entry) {
    const { titles } = feed;
    const content = { asked: found, saved, given: () => html`<p>${entry.outcome === "cited" ? "An answer cited"
      : `Added to a prompt: ${count(entry.total, "note")}, about ${count(entry.tokens, "token")}`}</p>
      ${noteChips(entry.notes, titles)}` }[entry.kind](entry, titles);
    return html`<li class="entry ${entry.kind}"><div class="grow">${content}</div>
      <span class="small soft">${nameOf(entry.front_end)} · ${clock(entry.at)}</span></li>`;
  }

  const choose = (options, value, set, label) => html`<select aria-label=${label}
    @change=${(event) => { limit = SHOWN; set(event.target.value); load(); }}>
    ${options.map(([one, text]) => html`<option value=${one} ?selected=${one === value}>${text}</option>`)}</select>`;

  const fronts = [["", "All front ends"], ...Object.entries(FRONT_ENDS)];
  const log = () => html`<div class="row filters">${choose(KINDS, kind, (value) => { kind = value; }, "Kind")}
      ${choose(fronts, frontEnd, (value) => { frontEnd = value; }, "Front end")}</div>
    ${byDay(feed.entries, (one) => one.at).map(([, group]) => html`<h2 class="day">${dayText(group[0].at)}</h2>
      <ul class="card feed">${group.map(logItem)}</ul>`)}
    ${feed.entries.length ? nothing : html`<p class="empty">Nothing here. <a href="/">Ask something</a></p>`}
    ${feed.next ? html`<button @click=${older}>Show older</button>` : nothing}`;

  const older = () => { limit += 5 * SHOWN; load(); };

  function draw() {
    const ready = { "": sessions, conversations: talks, log: feed }[view];
    render(html`<div class="row head"><h1 class="grow">Activity</h1>
      <div class="row views" role="group" aria-label="Show">${VIEWS.map(([name, title]) => html`
        <button aria-pressed=${view === name} @click=${() => show(name)}>${title}</button>`)}</div></div>
      ${!ready ? html`<div class="waiting" aria-busy="true"></div>`
        : view === "" ? agents() : view === "log" ? log() : conversations()}`, main);
    for (const one of main.querySelectorAll("[data-turn]")) {
      const turn = shown?.talk?.turns[one.dataset.turn];
      if (turn && one.shown !== turn) showBody(one, { ...turn, ref: shown.talk.ref, title: "" }, null, signal);
      one.shown = turn;
    }
  }

  setKeys({
    a: ["Agents", () => show("")], c: ["Conversations", () => show("conversations")],
    l: ["Everything", () => show("log")],
  });
  addEventListener("co-activity", () => load(), { signal });
  onChange(load);
  draw();
  await load();
  loadNumbers().catch((error) => { if (!signal.aborted) throw error; });
}
