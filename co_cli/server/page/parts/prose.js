// The text of a note: sanitised HTML, with pictures, attachments, embedded notes, tasks, and code that can be copied.

import { blobUrl, get, part } from "./api.js";

const TAGS = new Set((
  "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s "
  + "samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var "
  + "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd "
  + "mtext mtr munder munderover").split(" "));
const ICONS = {
  abstract: "M8 4h8v3H8zM6 5H5v16h14V5h-1M8 12h8M8 16h5",
  danger: "M13 2 5 14h6l-1 8 8-12h-6z",
  example: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  failure: "M6 6l12 12M18 6 6 18",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18m0 5h.01M12 11v5",
  note: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  question: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7m0 3h.01",
  quote: "M9 7H5v6h4V7v6c0 2-1 3-3 4M19 7h-4v6h4V7v6c0 2-1 3-3 4",
  success: "M5 12.5 10 17 19 7",
  tip: "M12 3a6 6 0 0 0-3.5 10.9c.6.5 1 1.2 1 2.1h5c0-.9.4-1.6 1-2.1A6 6 0 0 0 12 3M10 20h4",
  warning: "M12 4 2.5 20h19zM12 10v4m0 3h.01",
};
const AUDIO = /\.(flac|m4a|mp3|ogg|opus|wav)$/i, VIDEO = /\.(mov|mp4|webm)$/i;

// All HTML comes from the server's sanitiser. What it never lets through is refused once more.
const isSane = (text) => [...text.matchAll(/<\/?([a-z!?][^\s/>]*)/gi)].every(([, tag]) => TAGS.has(tag.toLowerCase()));
const policy = globalThis.trustedTypes?.createPolicy("co", {
  createHTML(text) {
    if (!isSane(text)) throw new TypeError("this HTML was not sanitised");
    return text;
  },
});
const trustedHtml = (text) => policy?.createHTML(text) ?? (isSane(text) ? text : "");

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// Shows the HTML of a note in `box` and lights the lines. `tick(line, done)` is called for a task, if it may be ticked.
export function showBody(box, note, lines, signal, tick, isEmbedded = false) {
  box.innerHTML = trustedHtml(note.html);
  const first = box.firstElementChild;
  if (first?.tagName === "H1" && first.textContent.trim() === note.title) first.remove();
  for (const one of box.querySelectorAll("[data-file]")) showFile(one, note.ref, signal);
  for (const one of box.querySelectorAll("li[data-task]")) showTask(one, tick);
  for (const one of box.querySelectorAll(".callout")) showCallout(one);
  for (const one of box.querySelectorAll("pre")) showCode(one);
  for (const one of box.querySelectorAll("table")) one.tabIndex = 0;
  for (const link of box.querySelectorAll("a[href^='http']")) link.target = "_blank";
  for (const link of box.querySelectorAll("sup a.footnote")) { // to its text, which may be at the end of the note
    link.addEventListener("click", (event) => {
      const text = box.querySelector(`div.footnote[data-footnote="${link.textContent}"]`);
      if (!text) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      text.scrollIntoView({ block: "center" });
      for (const one of box.querySelectorAll(".lit")) one.classList.remove("lit");
      text.classList.add("lit");
    });
  }
  for (const link of box.querySelectorAll("a[href^='#L']")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      light(box, Array(2).fill(+link.hash.slice(2)))?.scrollIntoView({ block: "center" });
    });
  }
  if (!isEmbedded) for (const one of box.querySelectorAll("a.embed[href^='/note/']")) embed(one, signal);
  return lines ? light(box, lines) : undefined;
}

// Lights the blocks of these lines of the file, or the next one if the lines are blank, and returns the first. If that
// is all of the note, nothing is lit.
export function light(box, [from, to]) {
  const all = [...box.querySelectorAll("[data-line]")].filter((one) => !one.closest(".embedded"));
  const last = Math.max(to, +(all.find((one) => +one.dataset.end >= from)?.dataset.line ?? to));
  for (const one of all) one.classList.toggle("lit", +one.dataset.line <= last && +one.dataset.end >= from);
  const first = all.find((one) => one.classList.contains("lit"));
  if (all.every((one) => one.classList.contains("lit"))) for (const one of all) one.classList.remove("lit");
  for (let fold = first; fold && fold !== box; fold = fold.parentElement) {
    if (fold.tagName === "DETAILS") fold.open = true;
  }
  return first;
}

// A heading as links name it; the server has the same.
export const slug = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");

export const findHeading = (box, wanted) =>
  [...box.querySelectorAll("h1, h2, h3, h4, h5, h6")].find((one) => slug(one.textContent) === wanted);

// A picture, a recording or a film is shown; any other file is downloaded. All are asked for with the token.
function showFile(one, ref, signal) {
  const name = one.dataset.file;
  const media = one.classList.contains("embed") && (AUDIO.test(name) ? "audio" : VIDEO.test(name) ? "video" : "");
  const url = () => blobUrl(`/files/${part(ref)}?${new URLSearchParams({ name })}`, signal, media);
  if (one.tagName === "IMG") {
    const instead = () => one.replaceWith(element("span", { className: "soft" }, `[${one.alt || name}]`));
    url().then((found) => { one.src = found; }, instead);
  } else if (media) {
    const player = element(media, { controls: true, ariaLabel: one.textContent });
    url().then((src) => { player.src = src; one.replaceWith(player); }, () => one.replaceWith(`[${one.textContent}]`));
  } else {
    one.setAttribute("href", "#");
    one.addEventListener("click", async (event) => {
      event.preventDefault();
      element("a", { href: await url(), download: name.split("/").pop() }).click();
    });
  }
}

function showTask(item, tick) {
  const text = item.querySelector(":scope > p:first-child") ?? item;
  const box = element("input", { type: "checkbox", checked: item.dataset.task.trim() !== "", disabled: !tick });
  box.ariaLabel = text.textContent.trim().split("\n")[0] || "Task";
  box.addEventListener("change", () => tick(+item.dataset.line, box.checked));
  text.prepend(box);
}

function showCallout(box) {
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[box.dataset.callout] ?? ICONS.note);
  icon.append(path);
  box.querySelector(".callout-title")?.prepend(icon);
}

function showCode(pre) {
  pre.tabIndex = 0;
  if (!navigator.clipboard) return; // not over plain HTTP from elsewhere
  const button = element("button", { className: "quiet small", type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const language = pre.firstElementChild?.dataset.language ?? "";
  const frame = element("div", { className: "code" });
  pre.replaceWith(frame);
  frame.append(element("div", { className: "code-head" }, element("span", {}, language), button), pre);
}

// A note, or a section of it, in place of a link that stands alone. Notes inside of it stay links.
async function embed(link, signal) {
  if (link.parentElement.textContent.trim() !== link.textContent.trim()) return;
  const note = await get(`/rendered/${part(decodeURIComponent(link.pathname.slice("/note/".length)))}`, {}, signal);
  const body = element("div", {});
  showBody(body, note, undefined, signal, undefined, true);
  const start = link.hash && findHeading(body, decodeURIComponent(link.hash.slice(1)));
  if (start) {
    const level = (one) => /^H\d$/.test(one.tagName) ? +one.tagName[1] : 9, all = [...body.children];
    const rest = all.slice(all.indexOf(start) + 1);
    const end = rest.findIndex((one) => level(one) <= level(start));
    body.replaceChildren(start, ...(end < 0 ? rest : rest.slice(0, end)));
  }
  const title = element("a", { href: link.getAttribute("href"), className: "embedded-title" }, note.title);
  link.parentElement.replaceWith(element("section", { className: "embedded", ariaLabel: note.title }, title, body));
}
