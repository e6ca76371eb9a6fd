// The frame: sign-in, menu, router, keys, toasts and live updates.

import {
  ApiError, TOKEN, changes, events, get, mayWrite, onSignedOut, rights, sample, signIn, whose,
} from "./parts/api.js";
import { allKeys, keyText, setAlways, setKeys } from "./parts/keys.js";
import { closeDialog, dialog, html, problem, render, style } from "./parts/pieces.js";
import { THEMES, effect, online, reviewCount, session, signal, theme } from "./parts/store.js";
import { toast } from "./parts/toast.js";

// What the menu in index.html links to, and views without an entry there: [path, module, title, key after g]. A path
// that ends in /* has a rest. A module has `open`, which draws its view, and a style of the same name.
const top = document.getElementById("top");
const entries = [...top.querySelectorAll("nav a")];
const PAGES = [
  ...entries.map((one) => [one.pathname, one.dataset.view, one.textContent.trim(), one.dataset.key]),
  ["/note/*", "note", "Note"],
  ["/conversation/*", "conversation", "Conversation"],
  ["/tokens", "tokens", "Tokens"],
  ["/clipper", "clipper", "Clipper"],
];
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

function nextTheme() { chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]); }
const newNote = () => { if (mayWrite()) go("/note/"); };

function menu() {
  document.documentElement.dataset.theme = theme.value;
  for (const one of entries) {
    if (one.dataset.view === current.value) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  const waiting = top.querySelector(".badge"), brand = top.querySelector(".brand");
  waiting.textContent = reviewCount.value || "";
  waiting.hidden = !reviewCount.value;
  top.querySelector(".theme").title = top.querySelector(".theme").ariaLabel = `Theme: ${theme.value}`;
  if (!session.value) return;
  brand.querySelector("span").textContent = sample.on ? "Sample vault" : session.value.name;
  brand.title = session.value.vault;
  top.querySelector(".new").hidden = !mayWrite();
  top.querySelector(".sample").hidden = !sample.on;
  top.hidden = false;
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // another address would open the view anew
  main.focus();
});
top.querySelector(".jump kbd").textContent = keyText("Mod+k");
top.querySelector(".jump").addEventListener("click", openPalette);
top.querySelector(".theme").addEventListener("click", nextTheme);
top.querySelector(".keyboard").addEventListener("click", showKeys);
top.querySelector(".sample button").addEventListener("click", leaveSample);

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

function go(path, { state = null, replace = false } = {}) {
  places[here()] = scrollY;
  history[replace ? "replaceState" : "pushState"](state, "", path);
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
  if (found.module === "note" && (!found.rest || new URLSearchParams(location.search).get("edit"))) catchEarly();
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

// A field for what is typed before the editor is there. Nothing typed then is a shortcut, and no letter is lost.
function catchEarly() {
  const early = document.createElement("textarea");
  Object.assign(early, { className: "early", ariaLabel: "Text" });
  emptied("note").append(early);
  early.focus({ preventScroll: true });
}

function emptied(kind = "") {
  const view = document.createElement("div"), early = main.querySelector(".early");
  view.className = `page ${kind}`;
  if (early && kind === "note") {
    main.firstElementChild.className = view.className;
    return main.firstElementChild; // it keeps the focus
  }
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

// Opens a dialog that is loaded first. It gets what is typed until then, and no letter of that is a shortcut.
async function openTyped(name, loading, open) {
  const early = dialog(name, html`<input aria-label=${name}>`);
  try {
    const module = await loading;
    if (early.open) open(module, early.querySelector("input").value);
  } finally {
    early.close();
  }
}

function openPalette() {
  return openTyped("Search or go to", load("palette", "parts"),
    (palette, typed) => palette.open({ go, toast, typed, commands: commands() }));
}

// What can be done here: [title, key, function].
const commands = () => [
  ...Object.entries(allKeys()).filter(([key]) => key !== "Mod+k").map(([key, [title, fn]]) => [title, key, fn]),
  ["Copy link", "", () => navigator.clipboard.writeText(location.href).then(() => toast("Copied the link"))],
  ...THEMES.map((one) => [`Theme: ${one}`, "", () => chooseTheme(one)]),
];

const today = () => mayWrite() && import("./parts/capture.js").then(({ openToday }) => openToday({ go, toast }));
const capture = () => mayWrite() && openTyped("Capture a thought", import("./parts/capture.js"),
  (one, typed) => one.capture({ toast, typed }));

setAlways({
  "Mod+k": ["Search or go to", openPalette],
  "Mod+Shift+k": ["Capture a thought", capture],
  t: ["Today", today],
  "/": ["Search", () => go("/").then(() => main.querySelector("input[type=search]")?.focus())],
  n: ["New note", newNote],
  ...Object.fromEntries(PAGES.filter((one) => one[3]).map(
    ([path, , title, key]) => [`g ${key}`, [`Go to ${title}`, () => go(path)]])),
  "?": ["Show keys", showKeys],
});

function showKeys() {
  const rows = Object.entries(Object.groupBy(Object.entries(allKeys()), ([, [what]]) => what));
  const signs = ([key]) => keyText(key).split(" ").map((one) => html`<kbd>${one}</kbd> `);
  dialog("Keys", html`<dl class="keys">${rows.map(([what, keys]) => html`
    <dt>${keys.map(signs)}</dt><dd>${what}</dd>`)}</dl>`);
}

// -- start ----------------------------------------------------------------------------------------------------------

const { team } = document.documentElement.dataset; // the name of the vault of `co serve`; none in `co web`

async function enter(event) {
  event.preventDefault();
  const token = main.querySelector("#token").value.trim();
  if (!await whose(token)) return showSignIn(undefined, true);
  localStorage.setItem(TOKEN, token);
  location.reload();
}

function toggleToken(event) {
  const field = main.querySelector("#token"), hides = field.type === "text";
  field.type = hides ? "password" : "text";
  event.target.textContent = hides ? "Show" : "Hide";
}

let provider; // where people of an organization sign in

function showSignIn(elsewhere = provider, isWrong = Boolean(localStorage.getItem(TOKEN))) {
  provider = elsewhere;
  top.hidden = true;
  if (!team) {
    return show(html`<h1>Sign in</h1><p>Open the newest address that <code>co web</code> printed; if it has ended, start
      it again. What you typed and did not save is kept in this browser.</p>`);
  }
  show(html`<h1>Sign in to ${team}</h1>
    ${provider ? html`<p><button class="primary" @click=${() => location.assign(provider)}>Sign in with your
      organization</button></p>` : ""}
    <form class="field" @submit=${enter}><label for="token">Paste the token you were given</label>
      <div class="row"><input id="token" class="grow" type="password" autocomplete="current-password" required
          aria-describedby="wrong-token"><button type="button" class="quiet" @click=${toggleToken}>Show</button></div>
      <p id="wrong-token" class="small warn" role="alert">${
        isWrong ? "This token is not valid, or has expired." : ""}</p>
      <div><button class="primary">Sign in</button></div></form>`);
  main.querySelector("#token").focus();
}

onSignedOut((elsewhere) => {
  leave.abort();
  if (!main.querySelector("#token")) showSignIn(elsewhere);
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
  live ??= events(changed, found.revision);
  countFindings();
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
const showOthers = () => { top.querySelector(".more").open = wide.matches; };
showOthers();
wide.addEventListener("change", showOthers);
effect(showConnection);
let refused; // a used code does not matter if this browser is signed in
try {
  await signIn(mayReplace).catch((error) => { refused = error; });
  top.inert = false; // a link that is followed before would lose the code
  await start();
} catch (error) {
  if (refused || error.status !== 401) show(html`<h1>Sign in</h1>${problem(refused ?? error)}`);
}
