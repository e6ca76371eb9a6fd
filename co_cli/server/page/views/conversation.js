// A conversation or a checkpoint as a chat, with the memories that follow from it beside the turn that says it.

import { del, get, mayWrite, part, post } from "../parts/api.js";
import {
  badge, bare, byDay, count, dayText, html, inTurn, noteLink, notePath, nothing, once, render, showBody, timeOf,
} from "../parts/pieces.js";

const MANY = 300;

export async function open(main, { rest, signal, toast, setKeys, onChange }) {
  const lines = /#L(\d+)(?:-(\d+))?/.exec(location.hash || rest), ref = bare(rest);
  let talk, limit = MANY, editing, at = -1;

  const load = inTurn(async () => {
    talk = await get(`/conversations/${part(ref)}`, { limit }, signal);
    draw();
  });

  const decide = (one, action) => once(one.key, async () => {
    const text = editing === one.key ? main.querySelector(".proposal textarea").value : undefined;
    const done = await post("/review/decisions", { key: one.key, action, text });
    if (editing === one.key) editing = undefined;
    const undo = () => del(`/review/decisions/${done.key}`).then(load);
    toast(`${action === "accept" ? "Saved" : "Dismissed"}: ${text ?? one.text}`, undo);
    await load();
  });
  const edit = (one) => {
    editing = one?.key;
    draw();
    main.querySelector(".proposal textarea")?.focus();
  };

  // -- drawing

  function proposal(one) {
    const { key, text, ref: known, state } = one, link = known && noteLink(known, talk.titles[known]);
    if (state !== "proposed") return html`<div class="card proposal">
      <p class="small soft">${state === "saved" ? "Saved" : "Known already"}: ${one.kind}</p>
      <p>${link || text}</p></div>`;
    const buttons = key === editing ? html`<button @click=${() => edit()}>Cancel</button>`
      : html`<button @click=${() => edit(one)}>Edit</button>
        <button class="quiet" @click=${() => decide(one, "keep")}>Dismiss</button>`;
    return html`<div class="card proposal waits"><p class="small soft">Proposed memory: ${one.kind}</p>
      ${key !== editing ? html`<p>${text}</p>`
        : html`<textarea rows="3" aria-label="The memory" .value=${text}></textarea>`}
      ${known ? html`<p class="small soft">It replaces ${link}.</p>` : nothing}
      ${mayWrite() ? html`<div class="row"><button class="primary" @click=${() => decide(one, "accept")}>Save</button>
        ${buttons}</div>` : nothing}</div>`;
  }

  const speaker = (name) => ({ User: "You", Assistant: talk.agent || name })[name] ?? name;

  function turn(one) {
    const beside = talk.proposals.filter(({ first, last }) => first <= one.last && last >= one.first);
    const lit = lines && one.first <= +(lines[2] ?? lines[1]) && one.last >= +lines[1];
    return html`<li class="turn ${one.role} ${lit ? "lit" : ""}" tabindex="-1"><div class="said">
      <p class="small soft who">${speaker(one.speaker)}${one.at ? html` · ${timeOf(one.at * 1000)}` : nothing}</p>
      <div class="bubble prose" data-place=${talk.turns.indexOf(one)}></div>
      ${one.given.length ? html`<ul class="chips small soft"><li>Given:</li>${one.given.map((note) => html`
        <li>${noteLink(note, talk.titles[bare(note)])}</li>`)}</ul>` : nothing}</div>
      ${beside.length ? html`<div class="beside">${beside.map(proposal)}</div>` : nothing}</li>`;
  }

  function draw() {
    const { turns, total } = talk, first = turns.find((one) => one.at !== null)?.at ?? 0;
    const about = [talk.agent, talk.project, count(total, "turn")].filter(Boolean).join(" · ");
    const more = () => { limit += MANY; load(); };
    render(html`<div class="row head"><h1 class="grow" dir="auto">${talk.title}</h1>
        ${talk.ref.startsWith("checkpoint:") ? badge("checkpoint") : nothing}
        <a class="button" href=${notePath(talk.ref)}>Open as a note</a></div>
      <p class="soft">${about} · <a href="/activity?view=conversations">All conversations</a></p>
      ${byDay(turns, (one) => (one.at ?? first) * 1000).map(([, group]) => html`
        ${first ? html`<h2 class="day">${dayText((group[0].at ?? first) * 1000)}</h2>` : nothing}
        <ol class="turns">${group.map(turn)}</ol>`)}
      ${total > turns.length ? html`<button @click=${more}>Show more (${total - turns.length})</button>` : nothing}`,
    main);
    for (const one of main.querySelectorAll("[data-place]")) {
      const said = turns[one.dataset.place];
      if (one.shown !== said.html) showBody(one, { ...said, ref: talk.ref, title: "" }, null, signal);
      one.shown = said.html;
    }
  }

  const step = (by) => () => {
    const all = [...main.querySelectorAll(".turn")];
    at = Math.max(0, Math.min(at + by, all.length - 1));
    all[at]?.focus();
    all[at]?.scrollIntoView({ block: "nearest" });
  };
  const keys = { j: ["Next turn", step(1)], k: ["Previous turn", step(-1)] };
  setKeys({ ...keys, ArrowDown: keys.j, ArrowUp: keys.k });
  onChange(load);
  await load();
  document.title = `${talk.title} · co`;
  main.querySelector(".turn.lit")?.scrollIntoView({ block: "center" });
}
