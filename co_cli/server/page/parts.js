// Pieces that several pages use.

import { html, nothing, render, svg } from "./vendor/lit-html.js";
import { part } from "./api.js";

export { html, nothing, render, svg };

// Only HTML of the server's sanitiser comes here; elements that it never lets through are refused once more.
const NEVER = /<\/?(?:script|style|link|meta|base|iframe|frame|object|embed|form|svg|math|template)\b/i;
const policy = globalThis.trustedTypes?.createPolicy("co", {
  createHTML(text) {
    if (NEVER.test(text)) throw new TypeError("this HTML was not sanitised");
    return text;
  },
});

// For a property, as in html`<article .innerHTML=${trustedHtml(note.html)}></article>`.
export const trustedHtml = (text) => policy?.createHTML(text) ?? (NEVER.test(text) ? "" : text);

export const notePath = (ref) => `/note/${part(ref)}`;
export const noteLink = (ref, title) => html`<a href=${notePath(ref)}>${title || ref}</a>`;

export const badge = (text, kind = "") => html`<span class="badge ${kind}">${text}</span>`;

const STEPS = [["year", 31557600], ["month", 2629800], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
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

export const problem = (error) => html`<p class="problem" role="alert">${error.message}</p>`;

// A modal dialog. `actions` are [label, value, kind]; resolves to the value of the button, or undefined.
export function dialog(title, content, actions = [["Close", undefined]]) {
  return new Promise((resolve) => {
    const element = document.createElement("dialog");
    element.setAttribute("aria-label", title);
    let answer;
    const choose = (value) => { answer = value; element.close(); };
    render(html`<h2>${title}</h2>${content}<div class="row end">${actions.map(
      ([label, value, kind]) => html`<button class=${kind ?? ""} @click=${() => choose(value)}>${label}</button>`)}</div>`, element);
    element.addEventListener("close", () => { element.remove(); resolve(answer); });
    document.body.append(element);
    element.showModal();
  });
}
