// Texts that were typed and not saved yet, kept in this browser: one for each note, and one for a new note.

const PREFIX = "co-draft:";

export const draftOf = (ref) => JSON.parse(localStorage.getItem(PREFIX + ref) ?? "null");
export const keepDraft = (ref, draft) => localStorage.setItem(PREFIX + ref, JSON.stringify(draft));
export const dropDraft = (ref) => localStorage.removeItem(PREFIX + ref);

// All of them: [{ ref, title, text }]; the ref of a new note is empty.
export const drafts = () => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).map((key) => {
  const ref = key.slice(PREFIX.length), { title, text } = draftOf(ref);
  return { ref, title, text };
});
