// Home, while nothing is asked: drafts to continue, pinned notes, those opened last, and the newest; or the welcome.

import { get, sample } from "../parts/api.js";
import { arrows, count, html, icon, notePath, nothing } from "../parts/pieces.js";
import { noteCard, pinnedNotes } from "../parts/note-card.js";
import { recentNotes } from "../parts/store.js";

const NEWEST = 12, RECENT = 6, PINNED = 12;

// { total, newest, pinned, recent }; a note is in one list only.
export async function loadHome(signal) {
  const refs = sample.on ? [] : recentNotes().map((one) => one.ref);
  const [newest, pinned, opened] = await Promise.all([
    get("/browse", { limit: NEWEST + RECENT + PINNED, counts: false, fold: true }, signal),
    get("/browse", { ...pinnedNotes, limit: PINNED }, signal),
    refs.length ? get("/browse", { ref: refs, counts: false, limit: refs.length }, signal) : { notes: [] },
  ]);
  const shown = new Set(pinned.notes.map((one) => one.ref));
  const others = (notes, most) => {
    const left = notes.filter((one) => !shown.has(one.ref)).slice(0, most);
    for (const one of left) shown.add(one.ref);
    return left;
  };
  const byRef = new Map(opened.notes.map((one) => [one.ref, one]));
  for (const one of newest.notes) if (one.series) one.href = `/notes?opened=${one.series.key}`;
  const recent = others(refs.map((ref) => byRef.get(ref)).filter(Boolean), RECENT);
  return { total: newest.total, pinned: pinned.notes, recent, newest: others(newest.notes, NEWEST) };
}

const group = (title, cards, kind = "", more = nothing) => cards.length ? html`<section class="group ${kind}">
  <div class="row"><h2 class="grow">${title}</h2>${more}</div>
  <div class="list ${kind ? "" : "compact"}">${cards}</div></section>` : nothing;

const draft = ({ id, isNew, title, text = "", excerpt = text.slice(0, 200) }) => html`<div class="draft">
  <a href=${isNew ? `/note/?draft=${id}` : `${notePath(id)}?edit=1`}>${icon("edit")}
    <span class="title">${title || (isNew ? "A new note" : id)}</span></a>
  <p dir="auto">${excerpt}</p><div class="meta small soft">Not saved yet</div></div>`;

export const welcome = (session, go) => html`<section class="card welcome">
  <h2>${sample.on ? "Three questions to try" : "There are no notes here yet"}</h2>
  ${sample.on ? nothing : html`<p>Try a sample first, the notes of a small team that makes tide clocks. Ask them:</p>`}
  <div class="row">${session.questions.map((one) => html`<button
    @click=${() => { sample.on = true; go(`/?q=${encodeURIComponent(one)}`); }}>
    ${icon("search")}${one}</button>`)}</div>
  ${sample.on ? nothing : html`<hr>
    <p>Or begin with your own: <code>co add FOLDER</code> makes notes that you have searchable.</p>
    <a class="button primary" href="/note/">${icon("new")}Write the first note</a>`}</section>`;

export function homeView(home, waiting, session, go, reload) {
  const all = html`<a class="all" href="/notes">All ${count(home?.total ?? 0, "note")} →</a>`;
  return html`${sample.on || home && !home.total ? welcome(session, go) : nothing}
    <div class="home" @keydown=${arrows(".group a:not(.all)")} @pinned=${reload}>
      ${group("Continue writing", waiting.map(draft))}
      ${home ? html`${group("Pinned", home.pinned.map(noteCard), "pins")}
        ${group("Recently opened", home.recent.map(noteCard))}
        ${group("Recently changed", home.newest.map(noteCard), "", all)}` : nothing}</div>`;
}
