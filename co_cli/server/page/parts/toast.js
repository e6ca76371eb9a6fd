// <co-toast>: a short message at the bottom, with Undo if it can be undone.

import { html, nothing, render } from "../vendor/lit-html.js";

const MOST = 3, LASTING = 4000, WITH_UNDO = 10000; // milliseconds

class Toast extends HTMLElement {
  show(text, undo) {
    const back = () => { this.remove(); undo(); };
    render(html`<span>${text}</span>${undo ? html`<button class="quiet" @click=${back}>Undo</button>` : nothing}
      <button class="quiet" aria-label="Dismiss" @click=${() => this.remove()}>✕</button>`, this);
    setTimeout(() => this.remove(), undo ? WITH_UNDO : LASTING);
  }
}
customElements.define("co-toast", Toast);

// If Undo needs its view, the view's signal ends the message together with it.
export function toast(text, undo, left) {
  const toasts = document.getElementById("toasts"), one = document.createElement("co-toast");
  one.show(text, undo);
  left?.addEventListener("abort", () => one.remove());
  toasts.append(one);
  while (toasts.children.length > MOST) toasts.firstChild.remove();
  return one;
}
