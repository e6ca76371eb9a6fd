// <note-card>: a note in a list, with its kind, title, first words, tags, time and a picture. All of it is a link; that
// of a series, `note.href`, opens or folds it.

import { blobUrl, get, mayWrite, part, put } from "./api.js";
import {
  badge, bare, count, html, icon, noteLink, notePath, nothing, once, render, when, withCode,
} from "./pieces.js";

const OWN = ["memory", "article", "entity", "resource", "conversation"]; // others are files that co only reads
const PINNED = "decay_protected"; // the field of a note that never grows old
const MOST_TAGS = 2, KEPT = 50000; // milliseconds: a picture's address works for a minute

// The pictures that were shown lately, so that scrolling back does not load them again.
const pictures = new Map();
function pictureOf({ ref, picture }) {
  const path = `/files/${part(ref)}?${new URLSearchParams({ name: picture })}`;
  if (!pictures.has(path)) {
    pictures.set(path, blobUrl(path));
    setTimeout(() => pictures.delete(path), KEPT);
  }
  return pictures.get(path);
}

const KINDS = { memory: "Memories", article: "Articles", entity: "People and things", resource: "Resources",
  conversation: "Conversations", folder: "Linked folders", obsidian: "Obsidian" };
export const kindName = (source) => KINDS[source] ?? source;

// The folder, without the one that every note of its kind is in.
const place = ({ folder }) => folder.replace(/^(memories|articles|entities|resources|conversations)(\/|$)/, "");

class NoteCard extends HTMLElement {
  set note(note) {
    if (note === this.shown) return;
    this.shown = note;
    this.draw();
  }

  draw() {
    const { shown: note } = this, { series } = note, folder = place(note), does = note.pinned ? "Unpin" : "Pin";
    const mine = OWN.includes(note.source) && !/^(user|team|project):/.test(note.ref);
    const words = note.excerpt.replace(/…$/, "") === note.title ? "" : note.excerpt;
    render(html`
      <a href=${series && !series.opened ? note.href : notePath(note.ref)} title=${note.title}>${icon(note.source)}
        <span class="title" dir="auto">${note.title}</span></a>
      <p dir="auto">${words}</p>
      <div class="meta small soft">${series ? html`<a class="series" href=${note.href} aria-expanded=${series.opened}>
          ${series.opened ? "Fold" : count(series.notes, "note")}</a>` : nothing}
        ${note.outdated ? html`<span class="badge warn" title=${note.outdated}>${note.outdated.split(" by ")[0]}</span>`
          : nothing}
        ${note.missing ? badge("file is gone", "warn") : nothing}
        ${note.tags.slice(0, MOST_TAGS).map((tag) => html`<span class="tag">#${tag}</span>`)}
        ${folder ? html`<span class="where">${folder}</span>` : nothing}${when(note.changed)}</div>
      ${note.picture ? html`<img class="picture" alt="" hidden>` : nothing}
      ${mine && mayWrite() && !series ? html`<button class="quiet pin" aria-pressed=${note.pinned}
        aria-label=${`${does} ${note.title}`} title=${does} @click=${() => this.pin()}>${icon("pin")}</button>`
        : nothing}`, this);
    if (note.picture) this.showPicture(note);
  }

  // A picture that is not there, or is none, leaves no gap.
  async showPicture(note) {
    const url = await pictureOf(note).catch(() => undefined), image = this.querySelector(".picture");
    if (!url || this.shown !== note || !image) return;
    image.onload = () => { image.hidden = false; };
    image.src = url;
  }

  async pin() {
    const { shown: note } = this, pinned = !note.pinned;
    await put(`/notes/${part(note.ref)}`, { fields: { [PINNED]: pinned || null } });
    note.pinned = pinned;
    this.draw();
    this.dispatchEvent(new CustomEvent("pinned", { bubbles: true, detail: note }));
  }
}
customElements.define("note-card", NoteCard);

export const noteCard = (note) => html`<note-card .note=${note}></note-card>`;
export const pinnedNotes = { where: `${PINNED}=true`, counts: false };

// What a prompt is given, or would be: each note with its title, mark, reason and tokens, and a button that stops it
// or, if it was stopped, takes that back; none without `stop`.
export const givenNotes = (notes, stop) => html`<ul class="given-notes">${notes.map((one) => {
  const { ref, title, mark, why, tokens, stopped, stays } = one, label = stopped ? "Give again" : "Stop giving";
  return html`<li><span class="grow">${noteLink(ref, title)} ${mark ? badge(...mark) : nothing}
      <span class="small soft">${withCode(why)}</span></span>
    <span class="small soft">${tokens === null ? "" : count(tokens, "token")}</span>
    ${stays || !mayWrite() ? nothing : html`<button class="quiet" aria-label="${label}: ${title}"
      @click=${() => stop(bare(ref), stopped)}>${label}</button>`}</li>`;
})}</ul>`;

// One click keeps a note out of prompts, and another one takes that back; agents still find it when they ask.
export const stopGiving = (ref, stopped, toast, load) => once(ref, async () => {
  const { metadata, title } = await get(`/notes/${part(ref)}`);
  const before = metadata.loading ?? null, mark = (loading) => put(`/notes/${part(ref)}`, { fields: { loading } });
  await mark(stopped ? null : "never");
  toast(stopped ? `May be given again: ${title}` : `No longer given: ${title}`, () => mark(before).then(load));
  await load();
});
