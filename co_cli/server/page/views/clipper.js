// The clipper: a bookmarklet that hands the page you read to a window of this one.

import { get } from "../parts/api.js";
import { html, render } from "../parts/pieces.js";

// Runs in other people's pages, as its text. The window asks, so that what it gets goes to no other origin.
function clip(origin, token) {
  const address = new URLSearchParams({ token, url: location.href });
  const shown = window.open(`${origin}/clip#${address}`, "", "width=520,height=560");
  if (!shown) return alert(`This page opens no windows. Save it with: co add ${location.href}`);
  addEventListener("message", function hand({ source, origin: from }) {
    if (source !== shown || from !== origin) return;
    removeEventListener("message", hand);
    const chosen = getSelection(), range = chosen && chosen.rangeCount ? chosen.getRangeAt(0) : new Range();
    const around = range.commonAncestorContainer, near = around.closest ? around : around.parentElement;
    const box = document.createElement(near?.closest("pre") ? "pre" : "div");
    box.append(range.cloneContents());
    const selection = range.collapsed ? "" : box.outerHTML;
    const page = selection ? "" : document.documentElement.outerHTML;
    shown.postMessage({ url: location.href, title: document.title, selection, html: page }, origin);
  });
}

export async function open(main, { signal, toast }) {
  const { token } = await get("/clipper", {}, signal);
  const code = `(${clip})(${JSON.stringify(location.origin)},${JSON.stringify(token)})`;
  const address = `javascript:${encodeURIComponent(`${code};void 0`)}`;
  const copy = async () => { await navigator.clipboard.writeText(address); toast("Copied"); };
  const drag = (event) => { event.preventDefault(); toast("Drag it to your bookmarks"); };
  render(html`<h1>Clipper</h1>
    <p>Drag this to your bookmarks, or copy it as the address of a new one:</p>
    <p class="row"><a class="button primary" href=${address} @click=${drag}>Save to co</a>
      <button @click=${copy}>Copy</button></p>
    <p>On a page that you want to keep, click the bookmark. A window shows what it got: what you selected, or the whole
      page. Nothing is saved before you press Save there.</p>
    <p class="small soft">It works while co web runs at ${location.origin}.
      ${location.port === "8766" ? "That is its port unless another program uses it."
    : html`To keep this port, start it with <code>co web --port ${location.port}</code>.`}
      <code>co web --sign-out</code> ends all bookmarklets.</p>`, main);
}
