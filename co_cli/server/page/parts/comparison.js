// One question ranked in two ways, side by side: a part of the settings for those who tune the search.

import { post } from "./api.js";
import { badge, bare, html, noteLink, nothing, problem } from "./pieces.js";

const CHOICES = { backend: ["hybrid", "fts5", "grep"], profile: [], reader: ["on", "off"] };
const SIDES = ["left", "right"];
const weighed = (weights) =>
  Object.entries(weights ?? {}).map(([name, value]) => `${name} ${+value.toFixed(2)}`).join(", ");

// `words=0.5 recency=0.2` into an object; nothing for an empty text.
function weightsOf(text) {
  const pairs = text.split(/[\s,]+/).filter(Boolean).map((one) => one.split("="));
  return pairs.length ? Object.fromEntries(pairs.map(([name, value]) => [name, Number(value)])) : undefined;
}

// How a hit moved from one answer to the other, perhaps with another passage.
function moved(hit, place, others) {
  const before = others.findIndex((one) => bare(one.ref) === bare(hit.ref));
  if (before < 0) return badge("only here", "warn");
  if (before === place) return nothing;
  return badge(before > place ? `▲ ${before - place}` : `▼ ${place - before}`, before > place ? "good" : "bad");
}

// Returns a function that draws it. `health` says what is set; `redraw` is called when there is something to draw.
export function comparing(health, redraw, signal) {
  let both, error, asking = false;
  const asked = { q: "", left: {}, right: { backend: "fts5" } };
  CHOICES.profile = Object.keys(health.profiles);

  async function compare(event) {
    event.preventDefault();
    if (!asked.q.trim()) return;
    [asking, error] = [true, undefined];
    redraw();
    try {
      const sides = SIDES.map((side) => [side, { ...asked[side], weights: weightsOf(asked[side].weights ?? "") }]);
      both = await post("/compare", { q: asked.q, ...Object.fromEntries(sides) }, signal);
    } catch (caught) {
      if (signal.aborted) return;
      [error, both] = [caught, undefined];
    }
    asking = false;
    redraw();
  }

  const asSet = (name) => health.settings[name === "backend" ? "knowledge_search_backend" : `knowledge_${name}`].value;

  function chooser(side) {
    const ranking = asked[side], profile = ranking.profile || health.settings.knowledge_profile.value;
    const set = (name) => (event) => { ranking[name] = event.target.value || undefined; redraw(); };
    return html`<fieldset class="card"><legend>${side === "left" ? "One way" : "Another way"}</legend>
      ${Object.entries(CHOICES).map(([name, values]) => html`<label>${name}<select @change=${set(name)}>
        <option value="" ?selected=${!ranking[name]}>as set (${asSet(name)})</option>
        ${values.map((one) => html`<option ?selected=${ranking[name] === one}>${one}</option>`)}</select></label>`)}
      <label>weights<input .value=${ranking.weights ?? ""} placeholder=${Object.entries(health.profiles[profile]).map(
        ([name, value]) => `${name}=${+value.toFixed(2)}`).join(" ")} @change=${set("weights")}></label></fieldset>`;
  }

  function answer(side) {
    const found = both[side], others = both[side === "left" ? "right" : "left"].hits;
    return html`<div><p class="small soft">${badge(found.state, found.state === "found" ? "good" : "")}
        ${found.backend}, ${Math.round(found.took_ms)} ms${found.meta.read ? `, ${found.meta.read} read` : ""}<br>
        ${weighed(found.meta.weights)}</p>
      <ol class="ranked">${found.hits.map((hit, place) => html`<li><span class="row">${noteLink(hit.ref, hit.title)}
        ${moved(hit, place, others)}<span class="small soft">${hit.score.toFixed(2)}</span></span></li>`)}</ol></div>`;
  }

  return () => html`<h3>Compare two rankings</h3><form @submit=${compare}>
    <div class="row"><input class="grow" aria-label="Question" placeholder="A question to ask in both ways"
        .value=${asked.q} @input=${(event) => { asked.q = event.target.value; }}>
      <button class="primary" ?disabled=${asking}>Compare</button></div>
    <div class="pair">${SIDES.map(chooser)}</div></form>
    ${error ? problem(error) : nothing}
    <div class="pair" aria-live="polite">${both ? SIDES.map(answer) : nothing}</div>`;
}
