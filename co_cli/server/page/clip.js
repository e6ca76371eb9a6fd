// The window that a bookmarklet opens: it shows what the page handed over, and saves it when the person says so.

import { get, post, useToken } from "./parts/api.js";
import { html, notePath, nothing, problem, render } from "./parts/pieces.js";
import { theme } from "./parts/store.js";

const PATIENCE = 5000; // milliseconds until a page that has handed over nothing is given up
const LOOK = 800; // milliseconds before Save works: a page may open this window under a hand that clicks already
const given = new URLSearchParams(location.hash.slice(1)), view = document.querySelector(".page");
history.replaceState(null, "", location.pathname); // the token is in no history
useToken(given.get("token") ?? "");
document.documentElement.dataset.theme = theme.value;
let page, target, receipt, error, late, saving = true;

// A page that cuts the windows it opens (COOP), shows no HTML, or is no page of the web.
function instead(reason) {
  const url = given.get("url"), known = URL.canParse(url) && new URL(url).href; // spelled so that nothing is hidden
  const address = /^https?:/.test(known) ? known.replaceAll("'", "%27") : "ADDRESS";
  render(html`<h1>Nothing to save</h1><p role="alert">${reason} Let co fetch the page instead:</p>
    <pre><code>co add '${address}'</code></pre>`, view);
}

const bytes = (text) => new Blob([text]).size;

function draw() {
  const { title, url, selection } = page, size = bytes(selection || page.html);
  const large = size > target.largest && { message: `This is too large: ${size.toLocaleString("en")} bytes of HTML, and
    at most ${target.largest.toLocaleString("en")} can be saved. Select the part that you want.` };
  const note = receipt && html`<a href=${notePath(receipt.ref)} target="_blank">${title || receipt.ref}</a>`;
  render(html`<h1>Save to ${target.vault}</h1>
    <dl><dt class="small soft">Title</dt><dd dir="auto">${title}</dd>
      <dt class="small soft">Address</dt><dd class="path">${url}</dd>
      <dt class="small soft">Size</dt><dd>${selection ? "Your selection" : "The page"},
        ${size.toLocaleString("en")} bytes of HTML</dd></dl>
    ${error || large ? problem(error || large) : nothing}
    ${receipt ? html`<p role="status">${receipt.outcome === "created" ? "Saved" : "It was saved already"}: ${note}</p>
      <button @click=${() => close()}>Close</button>`
    : html`<button class="primary" ?disabled=${saving || large} @click=${save}>Save</button>`}`, view);
}

async function save() {
  [saving, error] = [true, undefined];
  draw();
  try {
    receipt = await post("/clips", page);
  } catch (caught) {
    error = caught;
  }
  saving = false;
  draw();
}

// The first message counts: what is shown is what is saved. No page can speak for another one.
function take({ source, origin, data }) {
  if (page || !source || source !== opener) return;
  clearTimeout(late);
  const [url, title, selection, text] = ["url", "title", "selection", "html"].map((name) => String(data?.[name] ?? ""));
  if (!URL.canParse(url) || new URL(url).origin !== origin) return instead("This page hides where it is from.");
  page = { url: new URL(url).href, title, selection, html: selection ? "" : text }; // spelled so that nothing is hidden
  draw();
  setTimeout(() => { saving = false; draw(); }, LOOK);
}

try {
  target = await get("/clips");
  if (opener) {
    addEventListener("message", take);
    opener.postMessage("co-clip", "*"); // says that the window is there, and nothing else
    late = setTimeout(instead, PATIENCE, "The page hands over nothing.");
  } else {
    instead("This page is cut off from the windows that it opens.");
  }
} catch (caught) {
  const message = "co does not know this bookmarklet: make a new one with `co web --clipper`";
  render(html`<h1>Nothing to save</h1>${problem(caught.status === 401 ? { message } : caught)}`, view);
}
