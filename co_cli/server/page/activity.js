// Activity: what was asked, given to agents and saved, with plots and unanswered questions.

import { get, mayWrite } from "./api.js";
import { badge, bare, count, html, inTurn, noteLink, nothing, render, svg, when } from "./parts.js";

const DAY = 86400000, SHOWN = 20;
const KINDS = [["", "Everything"], ["asked", "Asked"], ["given", "Added to prompts"], ["saved", "Saved"]];
const SPANS = [[30, "30 days"], [90, "90 days"], [365, "1 year"]];
const OUTCOMES = { found: ["found", "good"], absent: ["nothing found", "warn"], inconclusive: ["not sure", "warn"] };
const FRONT_ENDS = { cli: "command line", mcp: "MCP", web: "this page", file: "edited file", python: "Python" };
const nameOf = (frontEnd) => FRONT_ENDS[frontEnd] ?? frontEnd;
const dayOf = (time) => new Date(time).toISOString().slice(0, 10);
const dateText = (day, options = { day: "numeric", month: "long", year: "numeric" }) =>
  new Date(`${day}T00:00Z`).toLocaleDateString("en-GB", { timeZone: "UTC", ...options });

// -- plots ----------------------------------------------------------------------------------------------------------

const WIDE = 600, HIGH = 120;

function searchPlot(days, name) {
  const most = Math.max(1, ...days.map((day) => day.searches));
  const step = WIDE / days.length, wide = Math.max(1, step * .72);
  const bar = (day, at, from, to, kind) => to > from ? svg`<rect class=${kind} x=${at * step} width=${wide}
    y=${HIGH * (1 - to / most)} height=${HIGH * (to - from) / most}><title>${about(day)}</title></rect>` : nothing;
  const about = (day) => `${dateText(day.date)}: ${count(day.searches, "question")}, ${day.unanswered} unanswered`;
  return html`<svg class="plot" viewBox="0 0 ${WIDE} ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${name}>
      ${[.5, 1].map((part) => svg`<line x1="0" x2=${WIDE} y1=${HIGH * (1 - part) + .5} y2=${HIGH * (1 - part) + .5}/>`)}
      ${days.map((day, at) => svg`${bar(day, at, 0, day.searches - day.unanswered, "answered")}
        ${bar(day, at, day.searches - day.unanswered, day.searches, "unanswered")}`)}
    </svg>
    <div class="axis small soft"><span>${dateText(days[0].date, { day: "numeric", month: "short" })}</span>
      <span class="shades"><i class="answered"></i>answered <i class="unanswered"></i>unanswered</span><span>today</span></div>`;
}

const narrow = matchMedia("(max-width: 760px)");

function calendar(memories, year) {
  const weeks = narrow.matches ? 27 : 53, last = year ? Date.UTC(year, 11, 31) : Date.parse(dayOf(Date.now()));
  const first = Math.max(year ? Date.UTC(year, 0, 1) : 0, last - (7 * weeks - 7) * DAY);
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * DAY;
  const cells = [], months = [];
  let empty = "", total = 0, most = ["", 0];
  for (let time = first; time <= last; time += DAY) {
    const day = dayOf(time), number = memories[day] ?? 0, at = Math.round((time - monday) / DAY);
    const x = 13 * Math.floor(at / 7), y = 14 + 13 * (at % 7);
    total += number;
    if (number > most[1]) most = [day, number];
    if (day.endsWith("-01")) months.push(svg`<text x=${x} y="9">${dateText(day, { month: "short" })}</text>`);
    if (!number) empty += `M${x} ${y}h11v11h-11z`;
    else cells.push(svg`<rect class="level${Math.min(4, Math.ceil(Math.sqrt(number)))}" x=${x} y=${y} width="11" height="11"
      rx="2.5"><title>${dateText(day)}: ${number} written</title></rect>`);
  }
  const span = `since ${dateText(dayOf(first), { month: "long", year: "numeric" })}`;
  const summary = total ? `${total} written ${span}, most on ${dateText(most[0])} (${most[1]})` : `None written ${span}`;
  return html`<svg class="calendar" viewBox="0 0 ${13 * (weeks + 1)} 106" role="img" aria-label=${summary}>${months}<path d=${empty}/>${cells}</svg>
    <p class="small soft">${summary}</p>`;
}

// -- what happened --------------------------------------------------------------------------------------------------

const noteChips = (notes, titles, more) => html`<ul class="chips">${notes.map((note) => html`<li>
  ${noteLink(note.ref, titles[bare(note.ref)])}
  ${note.why ? badge(note.why) : nothing} ${note.cited ? badge("cited", "accent") : nothing}</li>`)}
  ${more > 0 ? html`<li class="soft">and ${more} more</li>` : nothing}</ul>`;

function describe(entry, titles) {
  const { kind, text, outcome, total } = entry;
  if (kind === "asked") {
    return html`${text === null ? html`<span class="soft">a question (its text is not logged)</span>`
      : html`<a class="quoted" href="/?q=${encodeURIComponent(text)}">${text}</a>`}
      ${badge(...OUTCOMES[outcome] ?? [outcome])}`;
  }
  if (kind === "given" && outcome === "cited") return html`An answer cited ${entry.notes.length === 1 ? "a note" : "notes"}`;
  if (kind === "given") return html`Added to the prompt: ${count(total, "note")}, about ${entry.tokens.toLocaleString("en")} tokens`;
  const what = outcome[0].toUpperCase() + outcome.slice(1), [note] = entry.notes;
  return html`${what} ${total > 1 ? count(total, "note") : noteLink(note.ref, titles[note.ref] ?? text)}`;
}

function feedItem(entry, titles) {
  const { kind, notes, total } = entry, listed = kind === "saved" && total === 1 ? [] : notes;
  const talk = entry.conversation ? html` · conversation ${entry.conversation.slice(-6)}` : nothing;
  return html`<li class="entry ${kind}"><div class="row"><span>${describe(entry, titles)}</span>
    <span class="small soft">${nameOf(entry.front_end)}${talk} · ${when(entry.at)}</span></div>
    ${listed.length ? noteChips(listed, titles, total - listed.length) : nothing}</li>`;
}

const tile = (number, label, about) => html`<div class="card tile"><b>${number.toLocaleString("en")}</b><span>${label}</span>
  <span class="small soft">${about}</span></div>`;

const byFrontEnd = (counts) => Object.entries(counts).map(([name, number]) => `${nameOf(name)} ${number}`).join(", ");

export async function open(main, { signal, onChange }) {
  let kind = "", frontEnd = "", days = 30, year = 0, limit = SHOWN;
  let feed, stats, memories;

  const load = inTurn(async () => {
    [feed, stats, memories] = await Promise.all([
      get("/activity", { kind, front_end: frontEnd, limit }, signal),
      get("/activity/stats", { days, limit: 20 }, signal),
      get("/activity/memories", {}, signal),
    ]);
    draw();
  });
  const choose = (options, value, set, label) => html`<select aria-label=${label} @change=${(event) => set(event.target.value)}>
    ${options.map(([one, text]) => html`<option value=${one} ?selected=${String(one) === String(value)}>${text}</option>`)}</select>`;

  function draw() {
    const years = [...new Set(Object.keys(memories).map((day) => day.slice(0, 4)))].reverse();
    const ends = [...new Set([...Object.keys(stats.front_ends), ...Object.keys(stats.saves)])];
    const groups = Object.entries(Object.groupBy(feed.entries, (entry) => entry.at.slice(0, 10)));
    const [today, yesterday] = [dayOf(Date.now()), dayOf(Date.now() - DAY)];
    const most = Math.max(...stats.days.map((day) => day.searches));
    const name = `${count(stats.searches, "question")} in ${days} days, ${stats.unanswered} of them unanswered`;
    render(html`
      <div class="row head"><h1 class="grow">Activity</h1>
        ${choose(SPANS, days, (value) => { days = +value; load(); }, "Days")}</div>
      ${feed.query_log === "on" ? nothing : html`<p class="card">The setting <code>query_log</code> is
        <b>${feed.query_log}</b>: ${feed.query_log === "off" ? "nothing more" : "no text"} is recorded.</p>`}
      <div class="cards tiles">
        ${tile(stats.searches, "questions", byFrontEnd(stats.front_ends) || "none yet")}
        ${tile(stats.unanswered, "unanswered", stats.searches ? `${Math.round(100 * stats.unanswered / stats.searches)} % of all questions` : "none yet")}
        ${tile(stats.given.notes, "notes added to prompts", stats.given.turns ? `${count(stats.given.tokens, "token")}, in ${count(stats.given.turns, "turn")} of agents` : "none yet")}
        ${tile(Object.values(stats.saves).reduce((sum, one) => sum + one, 0), "changes of notes", byFrontEnd(stats.saves) || "none yet")}
      </div>
      <div class="plots">
        <section class="card"><div class="row"><h2 class="grow">Questions per day</h2>
          <span class="small soft">${most ? `up to ${most}` : "none yet"}</span></div>
          ${searchPlot(stats.days, name)}</section>
        <section class="card"><div class="row"><h2 class="grow">Memories</h2>
          ${choose([[0, "Latest"], ...years.map((one) => [one, one])], year, (value) => { year = +value; draw(); }, "Year")}</div>
          ${calendar(memories, year)}</section>
      </div>
      ${stats.found_nothing.length ? html`<section class="card"><h2>Unanswered questions</h2><ul class="questions">
        ${stats.found_nothing.map((one) => html`<li class="row"><a class="grow" href="/?q=${encodeURIComponent(one.text)}">${one.text}</a>
          <span class="small soft">${one.times === 1 ? "once" : `${one.times} times`}</span>
          ${!mayWrite() ? nothing : html`<a class="button" href="/note/?title=${encodeURIComponent(one.text)}" aria-label="Write it: ${one.text}">Write it</a>`}</li>`)}</ul></section>` : nothing}
      <div class="row filters"><h2 class="grow">What happened</h2>
        ${choose(KINDS, kind, (value) => { [kind, limit] = [value, SHOWN]; load(); }, "Kind")}
        ${choose([["", "All front ends"], ...ends.map((one) => [one, nameOf(one)])], frontEnd, (value) => { [frontEnd, limit] = [value, SHOWN]; load(); }, "Front end")}</div>
      <div aria-live="polite">
        ${groups.length ? groups.map(([day, entries]) => html`
          <h3>${day === today ? "Today" : day === yesterday ? "Yesterday" : dateText(day)}</h3>
          <ul class="card feed">${entries.map((entry) => feedItem(entry, feed.titles))}</ul>`)
        : html`<p class="empty">Nothing here yet. Ask something on the <a href="/">search page</a>, or connect an agent with <code>co mcp</code>.</p>`}
      </div>
      ${feed.next ? html`<button @click=${() => { limit += 5 * SHOWN; load(); }}>Show older</button>` : nothing}`, main);
  }

  onChange(load);
  await load();
  narrow.addEventListener("change", draw, { signal });
}
