// Signals: values that tell whoever depends on them. What several views share is here.

let running;

export function signal(value) {
  const readers = new Set();
  return {
    get value() {
      if (running) readers.add(running);
      return value;
    },
    set value(next) {
      if (next === value) return;
      value = next;
      for (const one of [...readers]) if (one.over) readers.delete(one); else one();
    },
  };
}

// Runs now, and again whenever a signal that it read changes; until a view is left, if its signal is given.
export function effect(fn, left) {
  const run = () => {
    const before = running;
    running = run;
    try { fn(); } finally { running = before; }
  };
  left?.addEventListener("abort", () => { run.over = true; });
  run();
}

export const session = signal(); // what /session answered: { vault, notes, version, sample, questions, role, caller }
export const online = signal("on"); // "off" while the server does not answer
export const reviewCount = signal(0); // proposals and conflicts that wait for a person

export const THEMES = ["auto", "light", "dark"];
export const theme = signal(localStorage.getItem("co-theme") ?? "auto");

// The notes opened last, newest first: [{ ref, title, kind }]. Each vault has its own.
const MOST_RECENT = 12;
const recentKey = () => `co-recent:${session.value?.vault ?? ""}`;
export const recentNotes = () => JSON.parse(localStorage.getItem(recentKey()) ?? "[]");

export function rememberNote({ ref, title, kind }) {
  const others = recentNotes().filter((one) => one.ref !== ref);
  localStorage.setItem(recentKey(), JSON.stringify([{ ref, title, kind }, ...others].slice(0, MOST_RECENT)));
}

export function forgetNote(ref) {
  localStorage.setItem(recentKey(), JSON.stringify(recentNotes().filter((one) => one.ref !== ref)));
}

// Texts that were typed and not saved yet, kept in this browser: of each vault one for each note, and those of new
// notes, whose id has no colon. A tab locks that of its new note, so that no other tab writes it.
const draftKey = (id) => `co-draft:${session.value?.vault ?? ""}:${id}`;
export const draftOf = (id) => JSON.parse(localStorage.getItem(draftKey(id)) ?? "null");
export const keepDraft = (id, draft) => localStorage.setItem(draftKey(id), JSON.stringify(draft));
export const dropDraft = (id) => localStorage.removeItem(draftKey(id));
export const newDraft = () => Math.random().toString(36).slice(2);

// All that no tab has open as a new note: [{ id, isNew, title, text }].
export async function freeDrafts() {
  const start = draftKey(""), { held } = await navigator.locks?.query() ?? { held: [] };
  return Object.keys(localStorage).filter((key) => key.startsWith(start) && !held.some(({ name }) => name === key))
    .map((key) => key.slice(start.length))
    .map((id) => ({ id, isNew: !id.includes(":"), ...draftOf(id) }));
}

// The first of these ids that no tab has is this tab's until `left`. Over plain HTTP, pages cannot lock.
let released;
export async function takeDraft(ids, left) {
  await released; // the note that was new before, in this tab
  for (const id of ids) {
    const taken = !navigator.locks || await new Promise((answer) => {
      released = navigator.locks.request(draftKey(id), { ifAvailable: true }, (lock) => {
        answer(Boolean(lock));
        return lock && left;
      });
    });
    if (taken) return id;
  }
}
