// Files that are stored in the vault next to a note.

import { part, post } from "./api.js";

export const LARGEST = 20_000_000; // bytes

export function encoded(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

// Stores a file next to a note, and answers the Markdown that shows it.
export async function upload(ref, file) {
  if (file.size > LARGEST) throw new Error(`${file.name} is too large: at most 20 MB can be added here`);
  const { markdown } = await post(`/files/${part(ref)}`, { name: file.name, data: await encoded(file) });
  return markdown;
}
