// Health: checks, with a button that repairs, the index, and what waits to be embedded.

import { get, mayWrite, post } from "../parts/api.js";
import {
  badge, count, html, inTurn, notePath, nothing, poll, problem, render, when, withCode,
} from "../parts/pieces.js";

const EAGER = 2000; // with more notes, the checks start when you say so
const BUILDING = 1000; // milliseconds until new vectors are counted again
const LEVELS = { ok: ["✓", "good"], warning: ["!", "warn"], error: ["✕", "bad"] };
const counted = (number, thing) => count(number, thing).replace(/ys$/, "ies"); // 2 memories, 1 conversation

const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

export async function open(main, { signal, session, setKeys, onChange }) {
  let health, doctor, timer;

  // While checks run, only how far they are.
  const load = inTurn(async () => {
    doctor = await get("/doctor", {}, signal);
    const running = doctor.job.state === "running";
    if (!running || !health) health = await get("/health", {}, signal);
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

  // -- drawing

  // What to do about a finding: a note that is to be edited can be edited here.
  function toFix(fix) {
    const [, path] = /^co edit '?([^']+)'?$/.exec(fix) ?? [];
    return path && mayWrite() ? html`<a href="${notePath(path)}?edit=1">Fix it</a>` : withCode(fix);
  }

  const finding = ({ check: name, level, text, fix, fixed }) => html`<li class="check">
    ${badge(...(fixed ? ["fixed", "good"] : LEVELS[level]))}
    <div>${withCode(text)}${fix && !fixed ? html`<br><span class="small soft">${toFix(fix)}</span>` : nothing}
      ${name === "secrets" && level !== "ok" ? html`<a class="small" href="/review?kind=secret">Review</a>` : nothing}
    </div></li>`;

  function doctorCard() {
    const { job, findings } = doctor;
    const wrong = findings.filter((one) => one.level !== "ok"), fine = findings.filter((one) => one.level === "ok");
    const running = job.state === "running", open = wrong.filter((one) => !one.fixed);
    const fixable = session.role === "admin" && open.some((one) => /^co (doctor|index)/.test(one.fix));
    const result = open.length ? count(open.length, "finding") : "All checks passed.";
    return html`<section class="card" aria-labelledby="checks"><div class="row"><h2 id="checks" class="grow">Checks</h2>
        ${fixable ? html`<button @click=${() => check("/doctor/fix")}>Repair</button>` : nothing}
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
    const value = (name) => settings[name].value ?? "unset";
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

  function draw() {
    render(html`<h1>Health</h1>${doctorCard()}${cards(health)}`, main);
  }

  setKeys({ r: ["Check again", () => check("/doctor")] });
  onChange(load);
  render(html`<h1>Health</h1><p class="empty">Reading the state of ${count(session.notes, "note")} …</p>`, main);
  await load();
  if (doctor.job.state === "none" && session.notes <= EAGER) check("/doctor"); // the view is there meanwhile
}
