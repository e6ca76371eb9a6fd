// Requests to /api/v1, with the token of this run. A token is never part of an address.

import { online, signal } from "./store.js";

const API = "/api/v1";
export const TOKEN = "co-token";
let signedOut = () => {};
let token = () => localStorage.getItem(TOKEN) ?? "";
export const useToken = (other) => { token = () => other; };

export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, kind: error.kind, data: error });
  }
}

const onSample = signal(sessionStorage.getItem("co-sample") === "yes");
export const sample = {
  get on() { return onSample.value; },
  set on(yes) {
    sessionStorage.setItem("co-sample", yes ? "yes" : "no");
    onSample.value = yes;
  },
};

// What the token may do; the server decides, the page only hides what it would refuse.
export const rights = { role: "admin" };
export const mayWrite = () => !sample.on && rights.role !== "read";

export function onSignedOut(fn) { signedOut = fn; }

// Who has this token; undefined if nobody has.
export async function whose(token) {
  if (!token) return undefined;
  const answer = await fetch(`${API}/session`, { headers: { Authorization: `Bearer ${token}` } });
  return answer.ok ? (await answer.json()).caller || "the admin" : undefined;
}

// Exchanges the one-time code in the address, if there is one, and removes it from the address. Whoever else is signed
// in stays it, unless mayReplace(them, the new one) says so: anybody can send a link.
export async function signIn(mayReplace) {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname + location.search);
  const { token } = await post("/session", { code });
  const [before, after] = [await whose(localStorage.getItem(TOKEN)), await whose(token)];
  if (!before || before === after || await mayReplace(before, after)) localStorage.setItem(TOKEN, token);
}

// How often notes may have changed: something was sent, or the server said so.
export const changes = { count: 0 };

async function ask(method, path, { body, signal } = {}) {
  if (method !== "GET") changes.count++;
  const sent = token(), headers = { Authorization: `Bearer ${sent}` };
  if (sample.on) headers["X-Co-Vault"] = "sample";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(API + path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    online.value = "off";
    throw new ApiError(0, { kind: "offline", message: "co web does not answer: is it still running?" });
  }
  online.value = "on";
  const renewed = response.headers.get("X-Co-Session"); // of a person who signed in elsewhere, every few minutes
  if (renewed && sent === token()) localStorage.setItem(TOKEN, renewed);
  if (response.ok) return response;
  const { error, sign_in: elsewhere } = await response.json().catch(() => ({}));
  if (response.status === 401) signedOut(elsewhere);
  const message = `the server answered ${response.status}`;
  throw new ApiError(response.status, typeof error === "object" ? error : { kind: "http", message });
}

const withQuery = (path, params) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") query.append(name, one);
  }
  return query.size ? `${path}?${query}` : path;
};

export const get = async (path, params, signal) => (await ask("GET", withQuery(path, params), { signal })).json();
export const del = async (path) => (await ask("DELETE", path)).json();
export const post = async (path, body = {}, signal) => (await ask("POST", path, { body, signal })).json();
export const put = async (path, body) => (await ask("PUT", path, { body })).json();

// A part of a path: `/` and `:` of refs stay readable.
export const part = (text) => encodeURIComponent(text).replaceAll("%2F", "/").replaceAll("%3A", ":");

// An image or attachment as an address that <img> and <a download> can use; a player needs it until the view is left.
export async function blobUrl(path, signal, plays) {
  const url = URL.createObjectURL(await (await ask("GET", path, { signal })).blob());
  if (plays) signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  else setTimeout(URL.revokeObjectURL, 60000, url);
  return url;
}

// Calls fn(event, data) for each event of the server. While it is not connected, anything may change; at first, only
// something after the revision of the session.
export async function events(fn, revision) {
  for (let connected = `: connected ${revision}`; ; connected = "") {
    try {
      const response = await ask("GET", "/events");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        online.value = "on"; // whatever failed meanwhile; a quiet server sends something now and then, too
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        for (const one of parts) {
          const found = /^event: (.*)\ndata: (.*)$/s.exec(one);
          if (found) fn(found[1], JSON.parse(found[2]));
          if (one.startsWith(": connected") && one !== connected) fn("changed", { refs: [], many: true });
        }
      }
    } catch (error) {
      if (error.status === 401) return;
    }
    await new Promise((go) => setTimeout(go, 1000));
  }
}
