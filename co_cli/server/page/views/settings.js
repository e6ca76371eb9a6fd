// Settings by subject, each with its sentence and where its value comes from. Advanced has the ranking and the rest.

import { get, put, rights } from "../parts/api.js";
import { comparing } from "../parts/comparison.js";
import { html, inTurn, nothing, problem, render, withCode } from "../parts/pieces.js";
import { THEMES, theme } from "../parts/store.js";

const LABELS = {
  capture: "Keep conversations", capture_days: "Days to keep them", context_tokens: "Room for notes in a prompt",
  knowledge_search_backend: "Search by", knowledge_reader: "Reader", knowledge_embedding_provider: "Vectors from",
  knowledge_profile: "Ranking", model: "Model for chats", query_log: "Log of questions",
  count_use: "Count use", secrets: "Secrets in new notes",
};
const SUBJECTS = [
  ["Memory", ["capture", "capture_days", "context_tokens", "model"]],
  ["Search", ["knowledge_search_backend", "knowledge_reader", "knowledge_embedding_provider"]],
  ["Privacy", ["query_log", "count_use", "secrets"]],
];
const ADVANCED = ["knowledge_profile"];
const shown = (value) => Array.isArray(value) ? value.join(", ") || "none" : value ?? "unset";

// Why something else than your own file decides.
const cause = (origin) => origin.startsWith("CO_") ? "a variable comes before your own file"
  : origin.startsWith("--") ? "a flag comes before your own file" : "the project comes before your own file";

export async function open(main, { signal, toast }) {
  let settings, health, comparison, all = false;
  const wrong = {};

  const load = inTurn(async () => {
    settings = await get("/settings", {}, signal);
    draw();
  });

  const openAdvanced = inTurn(async () => {
    health ??= await get("/health", {}, signal);
    comparison ??= comparing(health, draw, signal);
    draw();
  });

  // Empty: as without your own file. A wrong value stays in its field, with what is wrong below it.
  async function change({ name, value: before }, value, isUndo) {
    delete wrong[name];
    if (String(value ?? "") === String(before ?? "")) return draw();
    try {
      settings = await put(`/settings/${name}`, { value: value === "" || value === null ? null : String(value) });
      const now = settings.settings.find((one) => one.name === name);
      const undo = () => change(now, before === now.default ? "" : before, true);
      if (!isUndo) toast(`${LABELS[name]}: ${shown(now.value)}`, undo);
    } catch (caught) {
      if (caught.status !== 400) throw caught;
      wrong[name] = caught;
    }
    draw();
  }

  // -- drawing

  function entry(one, off) {
    const { name, value, choices } = one, about = `about-${name}`;
    const set = (event) => change(one, event.target.value.trim());
    if (choices.length === 2 && choices.includes("on") && choices.includes("off")) {
      return html`<input type="checkbox" role="switch" class="switch" id=${name} ?disabled=${off}
        aria-describedby=${about} .checked=${value === "on"}
        @change=${(event) => change(one, event.target.checked ? "on" : "off")}>`;
    }
    return choices.length ? html`<select id=${name} ?disabled=${off} aria-describedby=${about} @change=${set}>
        ${choices.map((choice) => html`<option ?selected=${choice === value}>${choice}</option>`)}</select>`
      : html`<input id=${name} ?disabled=${off} aria-describedby=${about} aria-invalid=${name in wrong}
        .value=${String(value ?? "")} placeholder=${one.default ?? "automatic"}
        inputmode=${one.kind === "text" ? "text" : "numeric"} @change=${set}>`;
  }

  function field(name) {
    const one = settings.settings.find((setting) => setting.name === name), { value, fixed, origin } = one;
    const mine = origin.startsWith(`${settings.file}:`), off = fixed || !settings.may_change;
    return html`<div class="setting"><div class="grow"><label for=${name}>${LABELS[name]}</label>
        <p class="small soft" id="about-${name}">${withCode(one.help)}</p>
        ${fixed ? html`<p class="small warn">Fixed by <code>${origin}</code>: ${cause(origin)}.</p>` : nothing}
        ${name in wrong ? problem(wrong[name]) : nothing}
        ${String(value) === String(one.in_use) ? nothing : html`<p class="small warn">Agents and commands use it from
          now on, this page when <code>co web</code> starts again.</p>`}</div>
      <div class="value">${mine && !off ? html`<button class="quiet small" aria-label="Reset: ${LABELS[name]}"
        @click=${() => change(one, "")}>Reset</button>` : nothing}${entry(one, off)}</div></div>`;
  }

  const chooseTheme = (event) => {
    localStorage.setItem("co-theme", event.target.value);
    theme.value = event.target.value;
  };

  const appearance = () => html`<section><h2>Appearance</h2>
    <div class="setting"><div class="grow"><label for="theme">Theme</label>
      <p class="small soft">Light, dark, or as your system is. In this browser only.</p></div>
      <div class="value"><select id="theme" @change=${chooseTheme}>${THEMES.map((one) => html`
        <option ?selected=${one === theme.value}>${one}</option>`)}</select></div></div></section>`;

  function everySetting() {
    const rows = Object.entries(health.settings), own = rows.filter(([, one]) => one.origin !== "default");
    return html`<h3>All settings</h3><div class="scroll" tabindex="0" role="region" aria-label="All settings"><table>
      <thead><tr><th>Setting</th><th>Value</th><th>From</th></tr></thead>
      <tbody>${(all ? rows : own).map(([name, { help, value, origin }]) => html`
        <tr><td><code>${name}</code><br><span class="small soft">${help}</span></td>
          <td class="path">${shown(value)}</td>
          <td><span class=${origin === "default" ? "soft" : "path"}>${origin}</span></td></tr>`)}</tbody></table>
      <button class="quiet" @click=${() => { all = !all; draw(); }}>
        ${all ? "Show what is set" : `Show all ${rows.length}`}</button></div>`;
  }

  function draw() {
    render(html`<h1>Settings</h1>
      <p class="small soft">${settings.may_change ? html`Changes are written to
        <code class="path">${settings.file}</code>, and used from then on.`
        : html`They are changed where the server runs, with <code>co config set</code>.`}
        ${rights.role === "admin"
          ? html`<a href="/tokens">Tokens: who may use this vault</a>` : nothing}</p>
      ${SUBJECTS.map(([title, names]) => html`<section><h2>${title}</h2>${names.map(field)}</section>`)}
      ${appearance()}
      <details class="advanced" @toggle=${(event) => { if (event.target.open) openAdvanced(); }}>
        <summary><h2>Advanced</h2></summary>${ADVANCED.map(field)}
        ${health ? html`${comparison()}${everySetting()}` : nothing}</details>`, main);
  }

  await load();
}
