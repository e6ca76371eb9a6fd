// Today's note, and a thought that is captured from anywhere: as a line of that note, or as a memory.

import { post } from "./api.js";
import { closeDialog, dialog, html, notePath } from "./pieces.js";

// Today where this browser is, with a line to add. Somebody is asked before a file is created in an added folder.
async function daily(line, confirmed = false) {
  const found = await post("/daily", { day: new Date().toLocaleDateString("sv"), line, confirmed });
  if (!found.asks) return found;
  const yes = await new Promise((answer) => {
    const create = () => { answer(true); closeDialog(); };
    const asked = dialog("Create today's note?", html`<p>Obsidian keeps daily notes in the added folder
      <strong>${found.asks}</strong>. <code>${found.path}</code> is not there yet.</p>
      <p><button class="primary" @click=${create}>Create it</button></p>`);
    asked.addEventListener("close", () => answer(false));
  });
  return yes ? daily(line, true) : undefined;
}

export async function openToday({ go, toast }) {
  try {
    const found = await daily("");
    if (found) go(`${notePath(found.ref)}?edit=1`);
  } catch (error) {
    toast(error.message);
  }
}

const KEPT = "co-captured"; // what was typed, until it is saved

export function capture({ toast, typed }) {
  const text = () => asked.querySelector("textarea").value.trim();
  const keep = (save) => async (event) => {
    event.preventDefault();
    const said = text();
    if (!said) return;
    closeDialog();
    try {
      const found = await save(said);
      if (!found) return;
      sessionStorage.removeItem(KEPT);
      toast(found.path ? "Added to today's note" : "Saved as a memory");
    } catch (error) {
      toast(`${error.message}. Your text comes back when you capture again.`);
    }
  };
  const asLine = keep((said) => daily(said));
  const asMemory = keep((content) => post("/notes", { content, source: "memory" }).then(({ ref }) => ({ ref })));
  const press = (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
    if (event.ctrlKey || event.metaKey) asMemory(event); else asLine(event);
  };
  const asked = dialog("Capture a thought", html`<textarea rows="3" aria-label="The thought" autofocus
      .value=${(sessionStorage.getItem(KEPT) ?? "") + typed} @keydown=${press}
      @input=${() => sessionStorage.setItem(KEPT, text())}></textarea>
    <p class="row"><button class="primary" @click=${asLine}>Add to today <kbd>Enter</kbd></button>
      <button @click=${asMemory}>Save as a memory <kbd>Ctrl+Enter</kbd></button></p>`);
  asked.querySelector("textarea").focus();
}
