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

// Texts that were typed and not saved yet, kept in this browser: of each vault one for each note, and one for a new.
const draftKey = (ref) => `co-draft:${session.value?.vault ?? ""}:${ref}`;
export const draftOf = (ref) => JSON.parse(localStorage.getItem(draftKey(ref)) ?? "null");
export const keepDraft = (ref, draft) => localStorage.setItem(draftKey(ref), JSON.stringify(draft));
export const dropDraft = (ref) => localStorage.removeItem(draftKey(ref));

// All of them: [{ ref, title, text }]; the ref of a new note is empty.
export const drafts = () => Object.keys(localStorage).filter((key) => key.startsWith(draftKey(""))).map((key) => {
  const ref = key.slice(draftKey("").length), { title, text } = draftOf(ref);
  return { ref, title, text };
});
