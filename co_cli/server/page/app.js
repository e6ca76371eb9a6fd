// The frame: sign-in, menu, router, keys, toasts and live updates.

import { ApiError, TOKEN, changes, events, get, mayWrite, onSignedOut, rights, sample, signIn } from "./api.js";
import { closeDialog, dialog, html, nothing, problem, render, svg } from "./parts.js";

// [path, module, title, icon in the menu]; a path ending in /* has a rest. A module has `open`, which draws its page.
const PAGES = [
  ["/", "search", "Search", "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 4.5 4.5"],
  ["/activity", "activity", "Activity", "M3 12h4l3-8 4 16 3-8h4"],
  ["/review", "review", "Review", "M4 6h9M4 12h7M4 18h5m5-2 3 3 5-7"],
  ["/given", "given", "Context", "M4 5h16v11H9l-5 4z"],
  ["/map", "map", "Map", "M4 4v16h16M9 15h.01M11 9h.01M16 13h.01M18 6h.01"],
  ["/health", "health", "Health", "M12 20S4 15 4 9a4 4 0 0 1 8-1 4 4 0 0 1 8 1c0 6-8 11-8 11"],
  ["/note/*", "note", "Note"],
];
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
let session, current, live, leave = new AbortController(), keys = {}, follow;

// -- menu, theme and toasts -----------------------------------------------------------------------------------------

const icon = (path) => svg`<svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path}/></svg>`;

function theme(next) {
  const now = localStorage.getItem("co-theme") ?? "auto";
  const chosen = next ? THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] : now;
  localStorage.setItem("co-theme", chosen);
  document.documentElement.dataset.theme = chosen;
  if (next) { toast(`Theme: ${chosen}`); menu(); }
  return chosen;
}

function menu() {
  const name = sample.on ? "Sample vault" : session.vault.split(/[\\/]/).filter(Boolean).pop();
  render(html`
    <a class="brand" href="/" title=${session.vault}><img src=${new URL("icon.svg", import.meta.url)} alt="" width="28" height="28"><span>${name}</span></a>
    <nav aria-label="Pages">${PAGES.filter((one) => one[3]).map(([path, module, title, shape]) => html`
      <a href=${path} aria-current=${module === current ? "page" : nothing}>${icon(shape)}<span>${title}</span></a>`)}</nav>
    <div class="tools">
      <button class="quiet" @click=${() => theme(true)} title="Theme: ${theme()}" aria-label="Theme: ${theme()}">◐</button>
      <button class="quiet" @click=${showKeys} title="Keys (?)" aria-label="Keys">?</button>
    </div>
    ${sample.on ? html`<p class="sample">This is a sample: notes of a small team that makes tide clocks.
      <button class="quiet" @click=${leaveSample}>Back to your vault</button></p>` : nothing}`,
  document.getElementById("top"));
}

function leaveSample() {
  sample.on = false;
  return start("/");
}

function toast(text, undo) {
  const box = document.createElement("div");
  const remove = () => box.remove();
  const back = () => { remove(); undo(); };
  render(html`<span>${text}</span>${undo ? html`<button class="quiet" @click=${back}>Undo</button>` : nothing}
    <button class="quiet" aria-label="Dismiss" @click=${remove}>✕</button>`, box);
  const toasts = document.getElementById("toasts");
  toasts.append(box);
  while (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(remove, undo ? 10000 : 4000);
}

// What no page catches. A request that was cut off by leaving its page does not matter.
addEventListener("unhandledrejection", (event) => {
  const { reason } = event;
  if (reason instanceof ApiError || reason.name === "AbortError") event.preventDefault();
  if (reason.name !== "AbortError") toast(reason.message);
});

// -- router ---------------------------------------------------------------------------------------------------------

function find(path) {
  for (const [pattern, module, title] of PAGES) {
    if (pattern === path) return { module, title, rest: "" };
    if (pattern.endsWith("/*") && path.startsWith(pattern.slice(0, -1))) {
      return { module, title, rest: path.slice(pattern.length - 1) };
    }
  }
}

// Loads the style of a page, once.
const styles = {};
function style(module) {
  return styles[module] ??= new Promise((done) => {
    const href = new URL(`${module}.css`, import.meta.url);
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: done, onerror: done });
    document.head.append(link);
  });
}

function go(path) {
  history.pushState(null, "", path);
  scrollTo(0, 0);
  return open();
}

async function open() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const found = find(location.pathname);
  follow = undefined;
  keys = {};
  closeDialog();
  current = found?.module;
  menu();
  if (!found) return show(html`<h1>Not found</h1><p>There is no page ${location.pathname}. <a href="/">Search instead</a></p>`);
  try {
    const [page] = await Promise.all([import(`./${found.module}.js`), style(found.module)]);
    if (signal.aborted) return;
    document.title = `${found.title} · co`;
    await page.open(emptied(found.module), {
      rest: decodeURIComponent(found.rest),
      query: new URLSearchParams(location.search),
      session, signal, go, toast,
      setKeys: (chosen) => { keys = chosen; },
      onChange: (fn) => { follow = fn; }, // both before the first request
    });
  } catch (error) {
    if (signal.aborted || error.name === "AbortError" || error.status === 401) return;
    if (!(error instanceof ApiError)) console.error(error);
    follow = open;
    show(html`<h1>${found.title}</h1>${problem(error)}`);
  }
}

function emptied(kind = "") {
  const page = document.createElement("div");
  page.className = `page ${kind}`;
  main.replaceChildren(page);
  return page;
}

const show = (content) => render(content, emptied());

addEventListener("popstate", open);
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download") || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash).then(() => {
    if (!main.contains(document.activeElement)) main.focus({ preventScroll: true }); // a page may have chosen a field
  });
});

// -- keys -----------------------------------------------------------------------------------------------------------

const ALWAYS = {
  "/": ["Search", () => go("/").then(() => main.querySelector("input[type=search]")?.focus())],
  n: ["New note", () => { if (mayWrite()) go("/note/"); }],
  "?": ["Show keys", showKeys],
};

function showKeys() {
  const rows = Object.entries({ ...keys, ...ALWAYS });
  dialog("Keys", html`<dl class="keys">${rows.map(([key, [what]]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>`);
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") {
      event.preventDefault(); // it would empty the search box
      event.target.blur();
    }
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const found = keys[event.key] ?? ALWAYS[event.key];
  if (!found) return;
  event.preventDefault();
  found[1](event);
});

// -- start ----------------------------------------------------------------------------------------------------------

function enter(event) {
  event.preventDefault();
  localStorage.setItem(TOKEN, event.target.querySelector("input").value.trim());
  location.reload();
}

onSignedOut(() => {
  leave.abort();
  if (main.querySelector("#token")) return;
  document.getElementById("top").replaceChildren();
  show(html`<h1>Sign in</h1><p>Open the newest address that <code>co web</code> printed; if it has ended, start it again.
    What you typed and did not save is kept in this browser.</p>
    <form class="row" @submit=${enter}><label for="token">Or your token for <code>co serve</code></label>
      <input id="token" type="password" autocomplete="current-password" required><button class="primary">Sign in</button></form>`);
  addEventListener("storage", (event) => { if (event.key === TOKEN) location.reload(); }); // signed in, in another tab
});

async function start(path) {
  session = await get("/session");
  rights.role = session.role;
  live ??= events(changed);
  await (path ? go(path) : open());
}

function changed(event, data) {
  if (event === "notice") return toast(data.text);
  changes.count++;
  follow?.(data.refs, data.many);
}

theme();
let refused; // a used code does not matter if this browser is signed in
try {
  await signIn().catch((error) => { refused = error; });
  await start();
} catch (error) {
  if (refused || error.status !== 401) show(html`<h1>Sign in</h1>${problem(refused ?? error)}`);
}
