// Pieces that several pages use.

import { html, keyed, nothing, render, repeat, svg } from "./vendor/lit-html.js";
import { blobUrl, part } from "./api.js";
import { icon } from "./icons.js";

export { html, icon, keyed, nothing, render, repeat, svg };

// Only HTML of the server's sanitiser comes here; elements that it never lets through are refused once more.
const NEVER = /<\/?(?:script|style|link|meta|base|iframe|frame|object|embed|form|svg|math|template)\b/i;
const policy = globalThis.trustedTypes?.createPolicy("co", {
  createHTML(text) {
    if (NEVER.test(text)) throw new TypeError("this HTML was not sanitised");
    return text;
  },
});

const trustedHtml = (text) => policy?.createHTML(text) ?? (NEVER.test(text) ? "" : text);

// A ref without its lines.
export const bare = (ref) => ref.replace(/#L\d+(-L?\d+)?(~\w{4})?$/, "");

export const notePath = (ref) => `/note/${part(ref)}`;
export const noteLink = (ref, title) => html`<a href=${notePath(ref)}>${title || ref}</a>`;

// A text of ours in which `code` stands between backticks.
export const withCode = (text) => text.split("`").map((one, at) => at % 2 ? html`<code>${one}</code>` : one);

export const badge = (text, kind = "") => html`<span class="badge ${kind}">${text}</span>`;

const STEPS = [["year", 31557600], ["month", 2629800], ["week", 604800], ["day", 86400], ["hour", 3600],
  ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// A moment (seconds or text) as `3 days ago`, with the full date as its title.
export function when(time) {
  const date = new Date(typeof time === "number" ? time * 1000 : time);
  if (!time || isNaN(date)) return html`<span>${time || ""}</span>`;
  const ago = (date - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, seconds]) => Math.abs(ago) >= seconds) ?? ["second", 1];
  const text = unit === "second" ? "just now" : relative.format(Math.round(ago / size), unit);
  return html`<time datetime=${date.toISOString()} title=${date.toLocaleString()}>${text}</time>`;
}

// One bar per signal: {"words": 0.4, "meaning": 0.7}. CSP forbids style attributes, so the width is a property.
export const bars = (signals) => html`<ul class="bars">${Object.entries(signals ?? {}).map(
  ([name, value]) => html`<li><span>${name}</span>
    <span class="bar"><i .style=${`width:${Math.round(100 * Math.min(1, Math.max(0, value)))}%`}></i></span>
    <b>${value.toFixed(2)}</b></li>`)}</ul>`;

export const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

// A message begins with a capital, unless it begins with a name: a ref, a file or `co`.
const sentence = (text) => text.replace(/^(?!co )[a-z]+(?=[ ,'])/, (word) => word[0].toUpperCase() + word.slice(1));
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
  <summary class="button" aria-label=${name} title=${name}>${icon("more")}</summary>
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
  render(html`<h2>${title}</h2>${content}<div class="row end">
    <button autofocus @click=${() => element.close()}>Close</button></div>`, element);
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
}

// Shows the HTML of a note: lights the lines, and fetches its pictures and attachments with the token.
export function showBody(element, note, lines, signal) {
  element.innerHTML = trustedHtml(note.html);
  const first = element.firstElementChild;
  if (first?.tagName === "H1" && first.textContent.trim() === note.title) first.remove();
  for (const one of element.querySelectorAll("[data-file]")) {
    const url = () => blobUrl(`/files/${part(note.ref)}?${new URLSearchParams({ name: one.dataset.file })}`, signal);
    if (one.tagName === "IMG") url().then((found) => { one.src = found; }, () => one.replaceWith(`[${one.alt || one.dataset.file}]`));
    else {
      one.setAttribute("href", "#");
      one.addEventListener("click", async (event) => {
        event.preventDefault();
        const link = Object.assign(document.createElement("a"), { href: await url(), download: one.dataset.file.split("/").pop() });
        link.click();
      });
    }
  }
  for (const link of element.querySelectorAll("a[href^='http']")) link.target = "_blank";
  for (const link of element.querySelectorAll("a[href^='#L']")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      light(element, Array(2).fill(+link.hash.slice(2)))?.scrollIntoView({ block: "center" });
    });
  }
  for (const one of element.querySelectorAll("pre, table")) one.tabIndex = 0;
  return lines ? light(element, lines) : undefined;
}

// Lights the blocks of these lines of the file, or the next one if the lines are blank, and returns the first.
export function light(element, [from, to]) {
  const all = [...element.querySelectorAll("[data-line]")];
  const last = Math.max(to, +(all.find((one) => +one.dataset.end >= from)?.dataset.line ?? to));
  for (const one of all) one.classList.toggle("lit", +one.dataset.line <= last && +one.dataset.end >= from);
  return all.find((one) => one.classList.contains("lit"));
}
