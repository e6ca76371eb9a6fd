// Health: checks, sources, index, settings, and one query ranked in two ways.

import { get, post, put, rights } from "../parts/api.js";
import {
  badge, bare, count, html, inTurn, noteLink, nothing, poll, problem, render, when, withCode,
} from "../parts/pieces.js";

const EAGER = 2000; // with more notes, the checks start when you say so
const BUILDING = 1000; // milliseconds until new vectors are counted again
const LEVELS = { ok: ["✓", "good"], warning: ["!", "warn"], error: ["✕", "bad"] };
const CHOICES = { backend: ["hybrid", "fts5", "grep"], profile: [], reader: ["small", "large", "off"] };
const counted = (number, thing) => count(number, thing).replace(/ys$/, "ies"); // 2 memories, 1 conversation
const LABELS = {
  capture: "Keep conversations", capture_days: "Days to keep them", context_tokens: "Room for notes in a prompt",
  knowledge_search_backend: "Search by", knowledge_reader: "Reader", knowledge_embedding_provider: "Vectors from",
  knowledge_profile: "Ranking", model: "Model for chats", query_log: "Log of questions",
  count_use: "Count use", secrets: "Secrets in new notes",
};
const SIDES = ["left", "right"];

const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
const shown = (value) => Array.isArray(value) ? value.join(", ") || "none" : value ?? "unset";
const weighed = (weights) =>
  Object.entries(weights ?? {}).map(([name, value]) => `${name} ${+value.toFixed(2)}`).join(", ");

// `words=0.5 recency=0.2` into an object; nothing for an empty text.
function weightsOf(text) {
  const pairs = text.split(/[\s,]+/).filter(Boolean).map((one) => one.split("="));
  return pairs.length ? Object.fromEntries(pairs.map(([name, value]) => [name, Number(value)])) : undefined;
}

// How a hit moved from one answer to the other, perhaps with another passage.
function moved(hit, place, others) {
  const before = others.findIndex((one) => bare(one.ref) === bare(hit.ref));
  if (before < 0) return badge("only here", "warn");
  if (before === place) return nothing;
  return badge(before > place ? `▲ ${before - place}` : `▼ ${place - before}`, before > place ? "good" : "bad");
}

export async function open(main, { signal, session, toast, setKeys, onChange }) {
  let health, doctor, both, error, settings, wrong = {}, asking = false, timer, all = false;
  const asked = { q: "", left: {}, right: { backend: "fts5" } };

  // While checks run, only how far they are.
  const load = inTurn(async () => {
    doctor = await get("/doctor", {}, signal);
    const running = doctor.job.state === "running";
    if (!running || !health) health = await get("/health", {}, signal);
    settings ??= await get("/settings", {}, signal);
    CHOICES.profile = Object.keys(health.profiles);
    follow();
  });

  // While vectors of another model are made, only how many there are.
  const countVectors = inTurn(async () => {
    health.status = await get("/status", {}, signal);
    follow();
  });

  function follow() {
    clearTimeout(timer);
    if (doctor.job.state === "running") timer = poll(load, signal);
    else if (health.status.building) timer = poll(countVectors, signal, BUILDING);
    draw();
  }

  async function check(path) {
    await post(path, {}, signal);
    await load();
  }

  async function compare(event) {
    event.preventDefault();
    if (!asked.q.trim()) return;
    [asking, error] = [true, undefined];
    draw();
    try {
      const sides = SIDES.map((side) => [side, { ...asked[side], weights: weightsOf(asked[side].weights ?? "") }]);
      both = await post("/compare", { q: asked.q, ...Object.fromEntries(sides) }, signal);
    } catch (caught) {
      if (signal.aborted) return;
      [error, both] = [caught, undefined];
    }
    asking = false;
    draw();
  }

  // -- drawing

  const finding = ({ check: name, level, text, fix, fixed }) => html`<li class="check">
    ${badge(...(fixed ? ["fixed", "good"] : LEVELS[level]))}
    <div>${withCode(text)}${fix && !fixed ? html`<br><span class="small soft">${withCode(fix)}</span>` : nothing}
      ${name === "secrets" && level !== "ok" ? html`<a class="small" href="/review?kind=secret">Review</a>` : nothing}
    </div></li>`;

  function doctorCard() {
    const { job, findings } = doctor;
    const wrong = findings.filter((one) => one.level !== "ok"), fine = findings.filter((one) => one.level === "ok");
    const running = job.state === "running", open = wrong.filter((one) => !one.fixed);
    const fixable = session.role === "admin" && open.some((one) => /^co (doctor|index)/.test(one.fix));
    const result = !open.length ? "All checks passed."
      : `${count(open.length, "finding")}, ${count(fine.length, "check")} passed`;
    return html`<section class="card" aria-labelledby="checks"><div class="row"><h2 id="checks" class="grow">Checks</h2>
        ${fixable ? html`<button @click=${() => check("/doctor/fix")}>Apply safe fixes</button>` : nothing}
        <button ?disabled=${running} @click=${() => check("/doctor")}>${job.state === "none" ? "Check" : "Check again"}
          <kbd>r</kbd></button></div>
      ${job.problem ? problem({ message: job.problem }) : nothing}
      ${running ? html`<label for="progress">Reading every file</label>
        <progress id="progress" max=${job.progress?.total ?? 1} .value=${job.progress?.done ?? 0}></progress>`
        : nothing}
      ${job.state === "none" ? html`<p class="soft">Compares the index with every file, and looks for damage and
        secrets.</p>` : nothing}
      <div role="status">${job.state !== "done" ? nothing
        : html`<p class=${open.length ? "warn" : "good"}>${result}</p>`}</div>
      <ul class="checks">${wrong.map(finding)}</ul>
      ${fine.length ? html`<details><summary class="soft">${count(fine.length, "check")} passed</summary>
        <ul class="checks">${fine.map(finding)}</ul></details>` : nothing}</section>`;
  }

  const facts = (title, rows) => html`<section class="card"><h2>${title}</h2><dl class="facts">${rows.map(
    ([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></section>`;

  function waiting({ unembedded, unembedded_seconds: seconds }) {
    const time = seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60).toLocaleString("en")} min`;
    return count(unembedded, "passage") + (unembedded && seconds ? `, about ${time}` : "");
  }

  function cards({ status, settings, learned, version }) {
    const value = (name) => shown(settings[name].value);
    return html`<div class="cards">
      ${facts("Index", [
        ["Notes", Object.entries(status.notes).map(([source, number]) => counted(number, source)).join(", ") || "none"],
        ["Passages", status.passages.toLocaleString("en")], ["Updated", when(status.synced_at)],
        ["Size", size(status.search_db_bytes)], ["Trash", count(status.trashed, "note")], ["Version", version]])}
      ${facts("Models", [
        ["Vectors", status.space?.replace(/@\w+|:\d+(?=:|$)/g, "") ?? "none: search by words only"],
        ...(status.building ? [["Building", status.building]] : []),  // searches use the old ones until it is complete
        ["Waiting", waiting(status)], ["Cache", `${count(status.cache_entries, "text")}${
          !status.cache_hit_rate ? "" : `, ${Math.round(100 * status.cache_hit_rate)} % found`}`],
        ["Reader", value("knowledge_reader")], ["Chat", value("model")]])}
      ${facts("Ranking", [
        ["Backend", status.backend], ["Profile", value("knowledge_profile")],
        ["Weights", `meaning ${learned?.meaning ?? value("knowledge_hybrid_vector_weight")}, words ${
          learned?.words ?? value("knowledge_hybrid_text_weight")}${learned ? " (learned)" : ""}`],
        ["Half-life", `${value("half_life_days")} days`]])}</div>`;
  }

  function freshness(one) {
    const waiting = health.waiting[one.path];
    if (!one.there) return badge("missing", "bad");
    return waiting ? badge(`${count(waiting, "file")} changed`, "warn") : badge("up to date", "good");
  }

  const sources = () => html`<h2 id="sources">Sources</h2>
    <div class="scroll card" tabindex="0" role="region" aria-labelledby="sources"><table>
    <thead><tr><th>Source</th><th class="number">Notes</th><th class="number">Skipped</th><th>State</th>
      <th>Last read</th></tr></thead>
    <tbody>${health.sources.map((one) => html`<tr>
      <td>${one.source}<br><span class="small soft path">${one.path}</span></td>
      <td class="number">${one.notes.toLocaleString("en")}</td><td class="number">${one.skipped + one.missing}</td>
      <td>${freshness(one)}</td><td>${one.synced_at ? when(one.synced_at) : "never"}</td></tr>`)}</tbody></table>
    </div>`;

  const asSet = (name) => health.settings[name === "backend" ? "knowledge_search_backend" : `knowledge_${name}`].value;

  function chooser(side) {
    const ranking = asked[side], profile = ranking.profile || health.settings.knowledge_profile.value;
    const set = (name) => (event) => { ranking[name] = event.target.value || undefined; draw(); };
    return html`<fieldset class="card"><legend>${side === "left" ? "One way" : "Another way"}</legend>
      ${Object.entries(CHOICES).map(([name, values]) => html`<label>${name}<select @change=${set(name)}>
        <option value="" ?selected=${!ranking[name]}>as set (${asSet(name)})</option>
        ${values.map((one) => html`<option ?selected=${ranking[name] === one}>${one}</option>`)}</select></label>`)}
      <label>weights<input .value=${ranking.weights ?? ""} placeholder=${Object.entries(health.profiles[profile]).map(
        ([name, value]) => `${name}=${+value.toFixed(2)}`).join(" ")} @change=${set("weights")}></label></fieldset>`;
  }

  function answer(side) {
    const found = both[side], others = both[side === "left" ? "right" : "left"].hits;
    return html`<div><p class="small soft">${badge(found.state, found.state === "found" ? "good" : "")}
        ${found.backend}, ${Math.round(found.took_ms)} ms${found.meta.read ? `, ${found.meta.read} read` : ""}<br>
        ${weighed(found.meta.weights)}</p>
      <ol class="ranked">${found.hits.map((hit, place) => html`<li><span class="row">${noteLink(hit.ref, hit.title)}
        ${moved(hit, place, others)}<span class="small soft">${hit.score.toFixed(2)}</span></span></li>`)}</ol></div>`;
  }

  const comparison = () => html`<h2>Compare two rankings</h2><form @submit=${compare}>
    <div class="row"><input class="grow" aria-label="Question" placeholder="A question to ask in both ways"
        .value=${asked.q} @input=${(event) => { asked.q = event.target.value; }}>
      <button class="primary" ?disabled=${asking}>Compare</button></div>
    <div class="pair">${SIDES.map(chooser)}</div></form>
    ${error ? problem(error) : nothing}
    <div class="pair" aria-live="polite">${both ? SIDES.map(answer) : nothing}</div>`;

  // Empty: as without your own file. A wrong value stays in its field, with what is wrong below it.
  async function change({ name, value: before }, value, isUndo) {
    if (String(value ?? "") === String(before ?? "")) return;
    try {
      settings = await put(`/settings/${name}`, { value: value === "" || value === null ? null : String(value) });
      wrong = {};
      const now = settings.settings.find((one) => one.name === name);
      const undo = () => change(now, before === now.default ? "" : before, true);
      if (!isUndo) toast(`${LABELS[name]}: ${shown(now.value)}`, undo);
    } catch (caught) {
      if (caught.status !== 400) throw caught;
      wrong = { [name]: caught };
    }
    draw();
  }

  function field(one) {
    const { name, value, choices, fixed } = one, off = fixed || !settings.may_change, about = `about-${name}`;
    const set = (event) => change(one, event.target.value.trim());
    const mine = one.origin.startsWith(`${settings.file}:`), origin = mine ? "set by you" : one.origin;
    const entry = choices.length ? html`<select id=${name} ?disabled=${off} aria-describedby=${about} @change=${set}>
        ${choices.map((choice) => html`<option ?selected=${choice === value}>${choice}</option>`)}</select>`
      : html`<input id=${name} ?disabled=${off} aria-describedby=${about} aria-invalid=${name in wrong}
        .value=${String(value ?? "")} placeholder=${one.default ?? "automatic"}
        inputmode=${one.kind === "text" ? "text" : "numeric"} @change=${set}>`;
    const reset = mine && !off ? html`<button class="quiet" aria-label="Reset: ${LABELS[name]}"
      @click=${() => change(one, "")}>Reset</button>` : nothing;
    return html`<div class="setting"><div class="grow"><label for=${name}>${LABELS[name]}</label>
        <p class="small soft" id=${about}>${withCode(one.help)}</p>
        ${name in wrong ? problem(wrong[name]) : nothing}
        ${String(value) === String(one.in_use) ? nothing : html`<p class="small warn">Agents and commands use it from
          now on, this page when <code>co web</code> starts again.</p>`}</div>
      <div class="value">${entry}<span class="small soft">${fixed ? html`fixed by <code>${origin}</code>` : origin}
        ${reset}</span></div></div>`;
  }

  const settingsCard = () => html`<h2 id="settings">Settings</h2><section class="card" aria-labelledby="settings">
    <p class="small soft">${settings.may_change ? html`Changes are written to
        <code class="path">${settings.file}</code>. A variable or the project comes first.`
      : html`They are changed where the server runs, with <code>co config set</code>.`}</p>
    ${settings.settings.map(field)}
    <details><summary class="soft">All settings and where they come from</summary>${everySetting()}</details>
    ${rights.role === "admin" ? html`<p><a href="/tokens">Tokens: who may use <code>co serve</code></a></p>` : nothing}
    </section>`;

  function everySetting() {
    const rows = Object.entries(health.settings), own = rows.filter(([, one]) => one.origin !== "default");
    return html`<div class="scroll" tabindex="0" role="region" aria-label="All settings"><table>
      <thead><tr><th>Setting</th><th>Value</th><th>From</th></tr></thead>
      <tbody>${(all ? rows : own).map(([name, { help, value, origin }]) => html`
        <tr><td><code>${name}</code><br><span class="small soft">${help}</span></td>
          <td class="path">${shown(value)}</td>
          <td><span class=${origin === "default" ? "soft" : "path"}>${origin}</span></td></tr>`)}</tbody></table>
      <button class="quiet" @click=${() => { all = !all; draw(); }}>
        ${all ? "Show what is set" : `Show all ${rows.length}`}</button></div>`;
  }

  function draw() {
    render(html`<h1>Health</h1>${doctorCard()}${cards(health)}${settingsCard()}${sources()}${comparison()}`, main);
  }

  setKeys({ r: ["Check again", () => check("/doctor")] });
  onChange(load);
  render(html`<h1>Health</h1><p class="empty">Reading the state of ${count(session.notes, "note")} …</p>`, main);
  await load();
  if (location.hash === "#settings") main.querySelector("#settings").scrollIntoView();
  if (doctor.job.state === "none" && session.notes <= EAGER) check("/doctor"); // the view is there meanwhile
}
