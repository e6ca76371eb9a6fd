// What is dropped or pasted outside of the editor: a file can be added to the vault, an address saved as an article.

import { mayWrite, part, post } from "./api.js";
import { dialog, closeDialog, html, notePath } from "./pieces.js";

function ask(title, about, name, act, { go, toast }) {
  const run = async () => {
    closeDialog();
    toast(`${title}…`);
    try {
      const { ref, detail, outcome } = await act();
      if (!ref) throw new Error(detail || `nothing was saved: ${outcome}`);
      toast(outcome === "created" ? "Added" : "It was in the vault already");
      go(notePath(ref));
    } catch (error) {
      toast(error.message);
    }
  };
  dialog(title, html`<p>${about}</p><p><button class="primary" @click=${run}>${name}</button></p>`);
}

const addFile = (file) => async () => post("/documents", { name: file.name, data: await encoded(file) });

// Files that are dropped anywhere but in the editor; the frame calls it once, with the first file that is dragged.
export function offerDrop(target, context) {
  target.addEventListener("dragover", (event) => {
    if (mayWrite() && event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  target.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file || event.defaultPrevented || !mayWrite()) return;
    event.preventDefault();
    const about = html`The text of <strong>${file.name}</strong> becomes an article.`;
    ask("Add to the vault", about, "Add", addFile(file), context);
  });
}

// An address that was pasted outside of a field.
export function offerPage(url, context) {
  const about = html`The main text of <strong>${url}</strong> becomes an article.`;
  ask("Save this page", about, "Save", () => post("/pages", { url }), context);
}

// -- files next to a note

const LARGEST = 20_000_000; // bytes

function encoded(file) {
  if (file.size > LARGEST) throw new Error(`${file.name} is too large: at most 20 MB can be added here`);
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

// Stores a file next to a note, and answers the Markdown that shows it.
export async function upload(ref, file) {
  const { markdown } = await post(`/files/${part(ref)}`, { name: file.name, data: await encoded(file) });
  return markdown;
}
