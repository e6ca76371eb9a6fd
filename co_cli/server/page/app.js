// The frame: sign-in, menu, router, keys, toasts and live updates.

import { ApiError, TOKEN, changes, events, get, mayWrite, onSignedOut, rights, sample, signIn } from "./parts/api.js";
import { allKeys, keyText, setAlways, setKeys } from "./parts/keys.js";
import { badge, closeDialog, dialog, html, icon, nothing, problem, render, style } from "./parts/pieces.js";
import { THEMES, effect, online, reviewCount, session, signal, theme } from "./parts/store.js";
import { toast } from "./parts/toast.js";

// [path, module, title, key after g]; a path ending in /* has a rest. A module has `open`, which draws its view, and a
// style of the same name. Those with a key are in the menu; on a phone, those after the fourth are behind "More".
const PAGES = [
  ["/", "search", "Home", "s"],
  ["/notes", "notes", "Notes", "n"],
  ["/activity", "activity", "Activity", "a"],
  ["/review", "review", "Review", "r"],
  ["/context", "context", "Context", "c"],
  ["/map", "map", "Map", "m"],
  ["/health", "health", "Health", "h"],
  ["/note/*", "note", "Note"],
  ["/conversation/*", "conversation", "Conversation"],
  ["/tokens", "tokens", "Tokens"],
];
const IN_BAR = 4;
const SKELETON = 150; // milliseconds until a view that has drawn nothing shows that it is coming
const AGAIN = 3000; // milliseconds until a view that the server could not answer is opened again
const main = document.getElementById("main");
const current = signal();
const wide = matchMedia("(min-width: 761px)");
let live, leave = new AbortController(), follow, opening = 0;

// -- menu -----------------------------------------------------------------------------------------------------------

function chooseTheme(chosen) {
  localStorage.setItem("co-theme", chosen);
  theme.value = chosen;
  toast(`Theme: ${chosen}`);
}

const nextTheme = () => chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]);
const newNote = () => { if (mayWrite()) go("/note/"); };

const entry = ([path, module, title]) => html`
  <a href=${path} aria-current=${module === current.value ? "page" : nothing}>
    ${icon(module === "search" ? "home" : module)}<span>${title}</span>
    ${module === "review" && reviewCount.value ? badge(reviewCount.value, "accent") : nothing}</a>`;

function menu() {
  document.documentElement.dataset.theme = theme.value;
  const top = document.getElementById("top"), pages = PAGES.filter((one) => one[3]);
  if (!session.value) return;
  const name = sample.on ? "Sample vault" : session.value.name;
  render(html`
    <a class="brand" href="/" title=${session.value.vault}>
      <img src=${new URL("icon.svg", import.meta.url)} alt="" width="28" height="28"><span>${name}</span></a>
    ${mayWrite() ? html`<a class="button primary new" href="/note/" title="New note (n)">
      ${icon("new")}<span>New</span></a>` : nothing}
    <button class="jump" @click=${openPalette} aria-label="Search or go to (${keyText("Mod+k")})">
      ${icon("search")}<span>Go to…</span><kbd>${keyText("Mod+k")}</kbd></button>
    <nav aria-label="Views">${pages.slice(0, IN_BAR).map(entry)}
      <details class="more"><summary>${icon("more")}<span>More</span></summary>
        <div>${pages.slice(IN_BAR).map(entry)}</div></details></nav>
    <div class="tools">
      <button class="quiet" @click=${nextTheme} title="Theme: ${theme.value}" aria-label="Theme: ${theme.value}">
        ${icon("theme")}</button>
      <button class="quiet keyboard" @click=${showKeys} title="Keys (?)" aria-label="Keys">
        ${icon("keys")}</button></div>
    ${sample.on ? html`<p class="sample">This is a sample: notes of a small team that makes tide clocks.
      <button class="quiet" @click=${leaveSample}>Back to your vault</button></p>` : nothing}`, top);
  top.querySelector(".more").open = wide.matches; // there the others are always shown
}

function leaveSample() {
  sample.on = false;
  return start("/");
}

// A bar that stays while the server does not answer; pages load again by themselves when it is back.
function showConnection() {
  const bar = document.getElementById("offline");
  bar.hidden = online.value === "on";
  const text = "co is not running. When you start it again, this page goes on and has what you typed.";
  bar.textContent = bar.hidden ? "" : text;
}

// What no view catches. A request that was cut off by leaving its view does not matter.
addEventListener("unhandledrejection", (event) => {
  const { reason } = event;
  if (reason instanceof ApiError || reason.name === "AbortError") event.preventDefault();
  if (reason.name !== "AbortError" && reason.status !== 0) toast(reason.message);
});

// Menus close when something else is clicked.
addEventListener("click", (event) => {
  for (const one of document.querySelectorAll("details.menu[open], details.more[open]")) {
    const stays = one.matches(".more") && wide.matches;
    if (!stays && (!one.contains(event.target) || event.target.closest("a, button"))) one.open = false;
  }
});

// -- files and addresses from elsewhere -----------------------------------------------------------------------------

const offerDrop = () => import("./parts/drop.js").then((drop) => drop.offerDrop(document, { go, toast }));
addEventListener("dragenter", offerDrop, { once: true });
addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text/plain").trim() ?? "", target = event.composedPath()[0];
  if (event.defaultPrevented || !/^https?:\/\/\S+$/i.test(text) || !mayWrite()) return;
  if (target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
  import("./parts/drop.js").then((drop) => drop.offerPage(text, { go, toast }));
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

// A module that cannot be loaded means that the server is away, or was updated.
async function load(module, room = "views") {
  try {
    return (await Promise.all([import(`./${room}/${module}.js`), style(module)]))[0];
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    online.value = "off";
    effect(() => { if (online.value === "on") location.reload(); });
    throw new ApiError(0, { kind: "offline", message: "co web does not answer: this view opens when it is back" });
  }
}

function go(path) {
  places[here()] = scrollY;
  history.pushState(null, "", path);
  scrollTo(0, 0);
  return open();
}

async function open() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave, found = find(location.pathname);
  follow = undefined;
  setKeys({});
  closeDialog();
  current.value = found?.module;
  if (!found) {
    return show(html`<h1>Not found</h1><p>There is no page ${location.pathname}. <a href="/">Search instead</a></p>`);
  }
  const late = setTimeout(() => {
    if (!signal.aborted) main.classList.add("coming");
  }, SKELETON);
  opening++;
  try {
    const view = await load(found.module);
    if (signal.aborted) return;
    document.title = `${found.title} · co`;
    await view.open(emptied(found.module), {
      rest: decodeURIComponent(found.rest),
      query: new URLSearchParams(location.search),
      session: session.value, signal, go, toast, setKeys,
      onChange: (fn) => { follow = fn; }, // both before the first request
    });
  } catch (error) {
    if (signal.aborted || error.name === "AbortError" || error.status === 401) return;
    if (!(error instanceof ApiError)) console.error(error);
    follow = open;
    show(html`<h1>${found.title}</h1>${problem(error)}`);
    if (error.status >= 500) setTimeout(() => signal.aborted || open(), AGAIN);
  } finally {
    opening--;
    clearTimeout(late);
    if (!signal.aborted) main.classList.remove("coming");
  }
}

function emptied(kind = "") {
  const view = document.createElement("div");
  view.className = `page ${kind}`;
  main.replaceChildren(view);
  return view;
}

const show = (content) => render(content, emptied());

// Back and forward restore the scroll, when the view is there again.
const places = JSON.parse(sessionStorage.getItem("co-scroll") ?? "{}");
history.scrollRestoration = "manual";
const here = () => location.pathname + location.search;
addEventListener("scroll", () => { if (!opening) places[here()] = scrollY; }, { passive: true });
addEventListener("pagehide", () => sessionStorage.setItem("co-scroll", JSON.stringify(places)));
addEventListener("popstate", async () => {
  const place = places[here()] ?? 0;
  await open();
  restore(place);
});

// A view may grow after it was opened: it is scrolled until it is where it was, or the person does something.
function restore(place) {
  const done = new AbortController(), { signal } = done;
  const follow = () => { scrollTo(0, place); if (Math.ceil(scrollY) >= place) done.abort(); };
  const grown = new ResizeObserver(follow);
  signal.addEventListener("abort", () => grown.disconnect());
  leave.signal.addEventListener("abort", () => done.abort());
  for (const one of ["wheel", "pointerdown", "keydown"]) addEventListener(one, () => done.abort(), { signal });
  grown.observe(main);
}
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]"), { metaKey, ctrlKey, shiftKey, altKey } = event;
  if (!link || event.defaultPrevented || event.button || metaKey || ctrlKey || shiftKey || altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash).then(() => {
    if (!main.contains(document.activeElement)) main.focus({ preventScroll: true }); // a view may have chosen a field
  });
});

// -- keys and the palette -------------------------------------------------------------------------------------------

async function openPalette() {
  const { open } = await load("palette", "parts");
  open({ go, toast, commands: commands() });
}

// What can be done here: [title, key, function].
const commands = () => [
  ...Object.entries(allKeys()).filter(([key]) => key !== "Mod+k").map(([key, [title, fn]]) => [title, key, fn]),
  ["Copy link", "", () => navigator.clipboard.writeText(location.href).then(() => toast("Copied the link"))],
  ...THEMES.map((one) => [`Theme: ${one}`, "", () => chooseTheme(one)]),
];

setAlways({
  "Mod+k": ["Search or go to", openPalette],
  "/": ["Search", () => go("/").then(() => main.querySelector("input[type=search]")?.focus())],
  n: ["New note", newNote],
  ...Object.fromEntries(PAGES.filter((one) => one[3]).map(
    ([path, , title, key]) => [`g ${key}`, [`Go to ${title}`, () => go(path)]])),
  "?": ["Show keys", showKeys],
});

function showKeys() {
  const rows = Object.entries(allKeys());
  dialog("Keys", html`<dl class="keys">${rows.map(([key, [what]]) => html`
    <dt>${keyText(key).split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${what}</dd>`)}</dl>`);
}

// -- start ----------------------------------------------------------------------------------------------------------

function enter(event) {
  event.preventDefault();
  localStorage.setItem(TOKEN, event.target.querySelector("input").value.trim());
  location.reload();
}

onSignedOut((elsewhere) => {
  leave.abort();
  if (main.querySelector("#token")) return;
  document.getElementById("top").replaceChildren();
  show(html`<h1>Sign in</h1>
    ${elsewhere ? html`<p><button class="primary" @click=${() => location.assign(elsewhere)}>Sign in with your
      organization</button></p>` : ""}
    <p>Open the newest address that <code>co web</code> printed; if it has ended, start it
    again. What you typed and did not save is kept in this browser.</p>
    <form class="row" @submit=${enter}><label for="token">Or your token for <code>co serve</code></label>
      <input id="token" type="password" autocomplete="current-password" required>
      <button class="primary">Sign in</button></form>`);
  addEventListener("storage", (event) => { if (event.key === TOKEN) location.reload(); }); // signed in, in another tab
});

const mayReplace = (before, after) => new Promise((answer) => {
  const replace = () => { answer(true); closeDialog(); };
  const asked = dialog("Sign in as somebody else?", html`<p>You are signed in as ${before}. The address that you opened
    signs you in as ${after}: go on only if you asked for that.</p>
    <p><button class="primary" @click=${replace}>Sign in as ${after}</button></p>`);
  asked.addEventListener("close", () => answer(false));
});

async function start(path) {
  const found = await get("/session");
  rights.role = found.role; // before the menu is drawn
  session.value = found;
  live ??= events(changed);
  await (path ? go(path) : open());
}

const countFindings = async () => { reviewCount.value = (await get("/review/count")).count; };

function changed(event, data) {
  if (event === "notice") return toast(data.text);
  countFindings();
  if (event === "activity") return dispatchEvent(new Event("co-activity")); // agents did something
  changes.count++;
  follow?.(data.refs, data.many);
}

effect(menu);
wide.addEventListener("change", menu);
effect(showConnection);
let refused; // a used code does not matter if this browser is signed in
try {
  await signIn(mayReplace).catch((error) => { refused = error; });
  await start();
} catch (error) {
  if (refused || error.status !== 401) show(html`<h1>Sign in</h1>${problem(refused ?? error)}`);
}
