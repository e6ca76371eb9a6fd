// Sources: what is searched. Add a folder or an address, refresh or remove one, and see what is not read and why.

import { del, get, part, post } from "../parts/api.js";
import { badge, count, html, icon, inTurn, notePath, nothing, poll, problem, render, when } from "../parts/pieces.js";

const OWN = ["memory", "article", "entity", "resource", "conversation"];

export async function open(main, { signal, go, toast, onChange }) {
  let health, work, error, skipped = {}, timer, typed = "";

  const load = inTurn(async () => {
    const before = work?.job.state;
    work = await get("/sources", {}, signal);
    const running = work.job.state === "running";
    if (!running || !health) health = await get("/health", {}, signal);
    if (before === "running" && !running && work.result) {
      toast(work.result);
      if (work.ref) return go(notePath(work.ref));
    }
    clearTimeout(timer);
    if (running) timer = poll(load, signal);
    draw();
  });

  async function run(action) {
    error = undefined;
    try {
      await action();
    } catch (caught) {
      if (!caught.status) throw caught;
      error = caught;
      draw();
      return;
    }
    await load();
  }

  const add = (event) => {
    event.preventDefault();
    run(async () => {
      work = await post("/sources", { origin: typed }, signal);
      typed = "";
    });
  };
  const refresh = (label) => run(async () => { work = await post(`/sources/${part(label)}/refresh`, {}, signal); });
  const remove = (one) => run(async () => {
    const { text } = await del(`/sources/${part(one.source)}`);
    toast(text, () => run(async () => { work = await post("/sources", { origin: one.path }, signal); }));
  });

  async function showSkipped(label) {
    if (skipped[label]) delete skipped[label];
    else skipped[label] = await get(`/sources/${part(label)}/skipped`, {}, signal);
    draw();
  }

  // -- drawing

  function state(one) {
    const waiting = health.waiting[one.path];
    if (!one.there) return badge("not there", "bad");
    return waiting ? badge(`${count(waiting, "file")} changed`, "warn") : nothing;
  }

  function row(one) {
    const label = OWN.includes(one.source) ? "vault" : one.source, left = one.skipped + one.missing + one.binary;
    const linked = !OWN.includes(one.source) && work.may_change && one.vault;
    return html`<li class="source">${icon(OWN.includes(one.source) ? one.source : one.source.split(":")[0])}
      <div class="grow"><strong>${one.source}</strong> ${state(one)}
        <p class="small soft path">${one.path}</p>
        <p class="small soft">${count(one.notes, "note")} ·
          ${one.synced_at ? html`read ${when(one.synced_at)}` : "never read"}
          ${left ? html` · <button class="link" aria-expanded=${Boolean(skipped[label])}
            @click=${() => showSkipped(label)}>${count(left, "file")} not read</button>` : nothing}</p>
        ${skipped[label] ? html`<ul class="small skipped">${skipped[label].map(({ path, reason }) => html`
          <li><code>${path}</code> <span class="soft">${reason}</span></li>`)}</ul>` : nothing}</div>
      ${linked ? html`<button class="quiet" aria-label="Refresh ${one.source}" @click=${() => refresh(one.source)}
          ?disabled=${work.job.state === "running"}>Refresh</button>
        <button class="quiet" aria-label="Remove ${one.source}" 
          @click=${() => remove(one)}>Remove</button>` : nothing}</li>`;
  }

  function progress() {
    const { state, progress: now, problem: failed } = work.job;
    if (failed) return problem({ message: failed });
    return state !== "running" ? nothing : html`<p><label for="progress" class="small">${now
      ? `Reading: ${now.done.toLocaleString("en")} of ${count(now.total, "file")}` : "Reading…"}</label>
      <progress id="progress" max=${now?.total || nothing} .value=${now?.done ?? nothing}></progress></p>`;
  }

  function draw() {
    render(html`<h1>Sources</h1>
      ${work.may_change ? html`<form class="row" @submit=${add}><input class="grow" aria-label="Folder, file or address"
          placeholder="~/handbook, or https://example.org/guide" .value=${typed} required
          @input=${(event) => { typed = event.target.value; }}>
          <button class="primary" ?disabled=${work.job.state === "running"}>Add</button></form>
        <p class="small soft">A folder is read where it is, and nothing in it is changed. Of a web page, the main text
          becomes an article; the <a href="/clipper">clipper</a> saves the one that you read.</p>`
        : html`<p class="small soft">Sources are added where the server runs, with
        <code>co add</code>.</p>`}
      ${error ? problem(error) : nothing}<div aria-live="polite">${progress()}</div>
      <ul class="plain">${health.sources.map(row)}</ul>`, main);
  }

  onChange(load);
  await load();
}
