// A card with title, kind and first words of the note that a link leads to, while the mouse or the focus is on it.

import { get, part } from "./api.js";
import { badge, html, render, showBody } from "./pieces.js";

const DELAY = 300, LONGEST = 240;

class HoverCard extends HTMLElement {
  connectedCallback() {
    Object.assign(this, { id: "hover-card", role: "tooltip", hidden: true });
  }

  async show(link, signal) {
    this.link = link;
    await new Promise((done) => setTimeout(done, DELAY));
    if (this.link !== link || signal.aborted) return;
    const content = link.classList.contains("missing")
      ? html`<strong>${new URL(link.href).searchParams.get("title")}</strong>
        <p>There is no such note yet. Open the link to create it.</p>`
      : await this.about(link, signal);
    if (this.link !== link || signal.aborted || !link.isConnected) return;
    render(content, this);
    this.hidden = false;
    const at = link.getBoundingClientRect(), own = this.getBoundingClientRect();
    const above = at.bottom + own.height + 12 > innerHeight && at.top > own.height;
    this.style.top = `${above ? at.top - own.height - 6 : at.bottom + 6}px`;
    this.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 8))}px`;
    link.setAttribute("aria-describedby", this.id);
  }

  async about(link, signal) {
    const ref = part(decodeURIComponent(link.pathname.slice("/note/".length)));
    const [note, shown] = await Promise.all([get(`/notes/${ref}`, {}, signal), get(`/rendered/${ref}`, {}, signal)]);
    const text = document.createElement("div");
    const withoutFiles = { ...shown, html: shown.html.replace(/ data-file="[^"]*"/g, "") };
    showBody(text, withoutFiles, undefined, signal, undefined, true);
    for (const one of text.querySelectorAll("button")) one.remove();
    const words = text.textContent.replace(/\s+/g, " ").trim();
    return html`<strong>${note.title}</strong> ${badge(note.source)}
      <p>${words.length > LONGEST ? `${words.slice(0, LONGEST)}…` : words}</p>`;
  }

  hide() {
    this.link?.removeAttribute("aria-describedby");
    this.link = undefined;
    this.hidden = true;
  }
}
customElements.define("hover-card", HoverCard);

// Shows cards for the links to notes in `box`, until the view is left. A finger shows none.
export function hoverCards(box, signal) {
  const card = box.parentElement.appendChild(document.createElement("hover-card"));
  const linkOf = (event) => event.target.closest?.("a[href^='/note/']");
  const show = (event) => {
    const link = linkOf(event);
    if (link && event.pointerType !== "touch" && link !== card.link) card.show(link, signal).catch(() => card.hide());
  };
  const hide = () => card.hide();
  box.addEventListener("pointerover", show, { signal });
  box.addEventListener("focusin", (event) => {
    if (linkOf(event)?.matches(":focus-visible")) show(event);
  }, { signal });
  box.addEventListener("pointerout", (event) => { if (linkOf(event)) hide(); }, { signal });
  box.addEventListener("focusout", hide, { signal });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); }, { signal });
  addEventListener("scroll", hide, { signal, passive: true });
  signal.addEventListener("abort", () => card.remove());
}
