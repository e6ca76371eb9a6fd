// Tokens: who may use the vault, for admins of `co serve`. A new token is shown once.

import { del, get, part, post } from "../parts/api.js";
import { badge, dialog, html, nothing, problem, render, when } from "../parts/pieces.js";

const ROLES = { read: "search and read", write: "also save and change notes", admin: "also tokens and repairs",
  metrics: "/metrics alone" };

export async function open(main, { signal, toast }) {
  let tokens, changes, error;

  async function load() {
    [tokens, changes] = await Promise.all([get("/tokens", {}, signal), get("/token-changes", {}, signal)]);
    draw();
  }

  // What goes wrong is shown above the list, which stays.
  async function change(action) {
    error = undefined;
    try {
      await action();
    } catch (caught) {
      error = caught;
    }
    await load();
  }

  const showSecret = ({ secret, token }) => dialog(`The token of ${token.name}`, html`<p>It is shown only now. Keep it
      in a safe place.</p><p class="row"><code class="grow path">${secret}</code>
    <button @click=${async () => { await navigator.clipboard.writeText(secret); toast("Copied"); }}>Copy</button></p>`);

  const create = (event) => {
    event.preventDefault();
    const form = event.target, given = Object.fromEntries(new FormData(form));
    const numbers = { days: Number(given.days), per_second: Number(given.per_second) };
    change(async () => {
      showSecret(await post("/tokens", { ...given, name: given.name.trim() || null, ...numbers }));
      form.reset();
    });
  };

  const rotate = (token) => change(async () => showSecret(await post(`/tokens/${part(token.name)}/rotate`)));

  const revoke = (token) => change(async () => {
    await del(`/tokens/${part(token.name)}`);
    toast(`${token.name} cannot use this vault any more`);
  });

  const row = (token) => {
    const expired = token.expires && new Date(token.expires) < new Date();
    return html`<tr><td>${token.name}</td><td>${badge(token.role)}</td><td>${when(token.created)}</td>
      <td>${expired ? badge("expired", "bad") : token.expires ? when(token.expires) : "never"}</td>
      <td>${token.last_used ? when(token.last_used) : "never"}</td>
      <td class="row"><button class="quiet" aria-label="Rotate ${token.name}" @click=${() => rotate(token)}>
        Rotate</button><button class="quiet" aria-label="Revoke ${token.name}" @click=${() => revoke(token)}>
        Revoke</button></td></tr>`;
  };

  const form = () => html`<form class="card" @submit=${create}><h2>New token</h2>
    <div class="row"><label>Name<input name="name" placeholder="whose it is" maxlength="40"></label>
      <label>Role<select name="role">${Object.entries(ROLES).map(([name, about]) => html`
        <option value=${name}>${name}: ${about}</option>`)}</select></label>
      <label>Days until it expires<input name="days" type="number" min="0" max="3650" value="90"></label>
      <label>Requests a second<input name="per_second" type="number" min="0" value="0"></label>
      <button class="primary">Create</button></div>
    <p class="small soft">0 days: it never expires. 0 requests: as many as for others.</p></form>`;

  function draw() {
    render(html`<h1>Tokens</h1>${error ? problem(error) : nothing}${form()}
      <div class="scroll card" tabindex="0" role="region" aria-label="Tokens"><table>
        <thead><tr><th>Name</th><th>Role</th><th>Since</th><th>Expires</th><th>Used</th><th>Change</th></tr></thead>
        <tbody>${tokens.map(row)}</tbody></table>
        ${tokens.length ? nothing : html`<p class="empty">Nobody has a token yet.</p>`}</div>
      <details><summary class="soft">Who changed what</summary><ul>${changes.map((one) => html`
        <li>${one.who} ${one.action} ${when(one.moment)}</li>`)}</ul></details>`, main);
  }

  await load();
}
