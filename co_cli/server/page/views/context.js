// Context: exactly what an agent would get for a prompt, what it costs, and why.

import { post } from "../parts/api.js";
import { givenNotes, stopGiving } from "../parts/note-card.js";
import { count, html, inTurn, render, withCode } from "../parts/pieces.js";

const about = (tokens) => html`<span class="small soft">about ${count(tokens, "token")}</span>`;

const row = (stays) => ({ ref, title, reason, evidence, tokens }) => ({
  ref, title, tokens, stays, mark: stays && ["left out", "warn"],
  why: evidence === null ? reason : `${reason}, evidence ${evidence.toFixed(2)}`,
});

function result(given, stop) {
  const { injected, cut, budget, warnings, degraded } = given.report;
  const tools = Object.entries(given.tools), toolTokens = tools.reduce((sum, [, tokens]) => sum + tokens, 0);
  const total = given.instructions_tokens + toolTokens + given.knowledge_tokens;
  const parts = [["Notes", given.knowledge_tokens], ["Tools", toolTokens], ["Instructions", given.instructions_tokens]];
  return html`
    <p class="summary"><b>${injected.length ? count(injected.length, "note") : "No note"}</b> would be added to this
      prompt. Everything together costs about <b>${count(total, "token")}</b>.</p>
    <div class="share" role="img" aria-label=${parts.map(([name, tokens]) => `${name} ${tokens}`).join(", ")}>
      ${parts.map(([, tokens]) => html`<i .style=${`flex-grow:${tokens}`}></i>`)}</div>
    <p class="shades small soft">${parts.map(([name, tokens]) => html`<span><i></i>${name}
      ${tokens.toLocaleString("en")}</span>`)}</p>
    ${[...warnings, ...degraded].map((text) => html`<p class="card warning">${withCode(text)}</p>`)}
    <section class="card"><div class="row"><h2 class="grow">Notes in the user's turn</h2>
      <span class="small soft">about ${given.knowledge_tokens.toLocaleString("en")} of ${count(budget, "token")}</span>
      </div>
      ${givenNotes([...injected.map(row(false)), ...cut.map(row(true))], stop)}
      ${given.knowledge ? html`<h3>As the model reads them</h3><pre class="wrap">${given.knowledge}</pre>`
        : html`<p class="soft">No note is marked <code>loading: always</code>, and none is clearly about this prompt. An
          agent can still ask for notes with its tools.</p>`}</section>
    <details class="card"><summary><h2>Instructions</h2>${about(given.instructions_tokens)}</summary>
      <pre class="wrap">${given.instructions}</pre></details>
    <details class="card"><summary><h2>${count(tools.length, "tool")}</h2>${about(toolTokens)}</summary>
      <ul class="chips">${tools.map(([name, tokens]) => html`<li><code>${name}</code>
        <span class="small soft">${tokens}</span></li>`)}</ul></details>`;
}

export async function open(main, { query, signal, toast, onChange }) {
  let given, asked = { prompt: query.get("prompt") ?? "", tokens: null };
  const load = inTurn(async () => {
    given = await post("/given", asked, signal);
    draw();
  });
  const stop = (ref) => stopGiving(ref, false, toast, load);
  const submit = (event) => {
    event.preventDefault();
    const { prompt, tokens } = main.querySelector("form");
    asked = { prompt: prompt.value, tokens: tokens.value ? +tokens.value : null };
    const text = prompt.value.trim();
    history.replaceState(null, "", text ? `/context?prompt=${encodeURIComponent(text)}` : "/context");
    load();
  };
  const press = (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); };

  function draw() {
    render(html`<h1>Context</h1>
      <p class="soft">What an agent is given for a prompt before it asks for anything. No model is called, and nothing
        is recorded.</p>
      <form class="card" @submit=${submit}>
        <label for="prompt">The first prompt of a conversation</label>
        <textarea id="prompt" name="prompt" rows="3" @keydown=${press} .defaultValue=${query.get("prompt") ?? ""}
          placeholder="Plan the next deploy"></textarea>
        <div class="row end"><label for="tokens">Room for notes, in tokens</label>
          <input id="tokens" name="tokens" type="number" min="1" step="1" placeholder=${given?.report.budget ?? "1000"}>
          <button class="primary">Show</button></div>
      </form>
      <div aria-live="polite">${given ? result(given, stop)
        : html`<p class="empty">Collecting what an agent would be given…</p>`}</div>`, main);
  }

  draw();
  onChange(load);
  await load();
}
