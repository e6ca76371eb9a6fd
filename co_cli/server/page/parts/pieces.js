// Pieces that several pages use.

import { html, keyed, nothing, render, repeat, svg } from "../vendor/lit-html.js";
import { part } from "./api.js";

export { light, showBody } from "./prose.js";
export { html, keyed, nothing, render, repeat, svg };

// A drawing of icons.svg, by its name or the kind of a note.
const ICONS = new URL("../icons.svg", import.meta.url).pathname;
export const icon = (name) => svg`<svg class="icon" aria-hidden="true">
  <use href="${ICONS}#${name === "obsidian" ? "folder" : name}"/></svg>`;

// Loads the style of a view, once.
const styles = {};
export function style(module) {
  return styles[module] ??= new Promise((done) => {
    const href = new URL(`../styles/${module}.css`, import.meta.url), link = document.createElement("link");
    document.head.append(Object.assign(link, { rel: "stylesheet", href, onload: done, onerror: done }));
  });
}

// A ref without its lines.
export const bare = (ref) => ref.replace(/#L\d+(-L?\d+)?(~\w{4})?$/, "");

// The address of a note; the lines of a ref are its fragment.
export const notePath = (ref) => `/note/${part(bare(ref))}${ref.slice(bare(ref).length)}`;
export const noteLink = (ref, title) => html`<a href=${notePath(ref)}>${title || ref}</a>`;

// A text of ours in which `code` stands between backticks.
export const withCode = (text) => text.split("`").map((one, at) => at % 2 ? html`<code>${one}</code>` : one);

export const badge = (text, kind = "") => html`<span class="badge ${kind}">${text}</span>`;

const STEPS = [["year", 31557600], ["month", 2629800], ["week", 604800], ["day", 86400], ["hour", 3600],
  ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// A moment (seconds or text) as `3 days ago`, with the full date as its title. A bare date is stored as midnight UTC,
// and is compared with the local day.
export function when(time) {
  const date = new Date(typeof time === "number" ? time * 1000 : time), now = new Date();
  if (!time || isNaN(date)) return html`<span>${time || ""}</span>`;
  const bareDate = date % 86400000 === 0;
  const today = Date.UTC(now.getFullYear(), now.getMonth(), now.getDate());
  const ago = (date - (bareDate ? today : now)) / 1000;
  const [unit, size] = STEPS.find(([, seconds]) => Math.abs(ago) >= seconds) ?? (bareDate ? STEPS[3] : ["second", 1]);
  const text = unit === "second" ? "just now" : relative.format(Math.round(ago / size), unit);
  const full = bareDate ? date.toLocaleDateString(undefined, { timeZone: "UTC" }) : date.toLocaleString();
  return html`<time datetime=${date.toISOString()} title=${full}>${text}</time>`;
}

export const dateText = (day, options = { day: "numeric", month: "long", year: "numeric" }) =>
  new Date(`${day}T00:00Z`).toLocaleDateString("en-GB", { timeZone: "UTC", ...options });
export const clock = (time) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const localDay = (time) => new Date(time).toLocaleDateString("sv"); // 2026-11-17, here and not in UTC
export const dayText = (time) => {
  const day = localDay(time);
  if (day === localDay(Date.now())) return "Today";
  return day === localDay(Date.now() - 86400000) ? "Yesterday" : dateText(day);
};
export const byDay = (all, timeOf) => Object.entries(Object.groupBy(all, (one) => localDay(timeOf(one))));

// A time of the day here, with the full date as its title.
export const timeOf = (at) => html`<time class="small soft" datetime=${new Date(at).toISOString()}
  title=${new Date(at).toLocaleString()}>${clock(at)}</time>`;

// Who asked or saved, in words.
export const FRONT_ENDS = {
  "claude-code": "Claude Code", codex: "Codex", gemini: "Gemini CLI", qwen: "Qwen Code", opencode: "opencode",
  copilot: "GitHub Copilot", cursor: "Cursor", mcp: "Agent over MCP", agent: "Agent",
  chat: "co chat", cli: "command line", web: "this page", file: "edited file", python: "Python",
};
export const nameOf = (frontEnd) => {
  const [base, who] = frontEnd.split(":");
  return (FRONT_ENDS[base] ?? base) + (who ? ` · ${who}` : "");
};

// One bar per signal: {"words": 0.4, "meaning": 0.7}. CSP forbids style attributes, so the width is a property.
export const bars = (signals) => html`<ul class="bars">${Object.entries(signals ?? {}).map(
  ([name, value]) => html`<li><span>${name}</span>
    <span class="bar"><i .style=${`width:${Math.round(100 * Math.min(1, Math.max(0, value)))}%`}></i></span>
    <b>${value.toFixed(2)}</b></li>`)}</ul>`;

export const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

// A message begins with a capital, unless it begins with a name: a ref, a file or `co`.
export const sentence = (text) =>
  text.replace(/^(?!co )[a-z]+(?=[ ,'])/, (word) => word[0].toUpperCase() + word.slice(1));
export const problem = (error) => html`<p class="problem" role="alert">${withCode(sentence(error.message))}</p>`;

// Runs one at a time, and again if called meanwhile. Only the last error counts.
export function inTurn(fn) {
  let running, again, failed;
  async function run() {
    do {
      again = failed = undefined;
      try { await fn(); } catch (error) { failed = error; }
    } while (again);
    running = undefined;
    if (failed) throw failed;
  }
  return () => { again = true; return running ??= run(); };
}

// Loads again soon, and until it works.
export const poll = (load, signal, wait = 400) => setTimeout(
  () => load().catch(() => signal.aborted || poll(load, signal, wait)), wait);

// What is pressed twice happens once.
const pressed = new Set();
export async function once(what, fn) {
  if (pressed.has(what)) return;
  pressed.add(what);
  await fn().finally(() => pressed.delete(what));
}

// A button with a menu below it: [[title, function, kind of button]]. The frame closes it.
export const menuButton = (name, items) => html`<details class="menu">
  <summary class="button quiet" aria-label=${name} title=${name}>${icon("more")}</summary>
  <div>${items.map(([title, fn, kind = ""]) => html`
    <button class="quiet ${kind}" @click=${fn}>${title}</button>`)}</div>
</details>`;

// Arrows, Home and End move the focus among the elements of a list: @keydown=${arrows(".hit a")}.
export const arrows = (selector) => (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (!step || event.target.closest("input, textarea, select")) return;
  const all = [...event.currentTarget.querySelectorAll(selector)], at = all.indexOf(event.target.closest(selector));
  all[Math.max(0, Math.min(at + step, all.length - 1))]?.focus();
  event.preventDefault();
};

export const closeDialog = () => document.querySelector("dialog[open]")?.close();

// A modal dialog; another one is closed.
export function dialog(title, content) {
  closeDialog();
  const element = document.createElement("dialog");
  element.setAttribute("aria-label", title);
  render(html`<h2>${title}</h2>${content}<button class="quiet close" aria-label="Close" title="Esc"
    @click=${() => element.close()}>✕</button>`, element);
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}
