// Keys: one table, which the list of keys and the palette show. A chord is two keys with a space, as `g n`.
// `Mod` is Ctrl, or ⌘ on a Mac. In a field only keys with `Mod` count, and Escape leaves it.

const CHORD = 1200; // milliseconds between its two keys
const FIELDS = "input:not([type=checkbox]), textarea, select, [contenteditable]";
const onMac = /Mac|iPhone|iPad/.test(navigator.platform);
let always = {}, ofView = {}, first = "", waiting;

// { "g n": ["Notes", fn] }: what a key does, in words, and the function.
export const setAlways = (keys) => { always = keys; };
export const setKeys = (keys) => { ofView = keys; };
export const allKeys = () => ({ ...always, ...ofView });

const ARROWS = { ArrowDown: "↓", ArrowUp: "↑" };
export const keyText = (key) => ARROWS[key] ?? (key.startsWith("Mod+")
  ? key.replace("Mod+", onMac ? "⌘" : "Ctrl+").replace("Shift+", onMac ? "⇧" : "Shift+")
    .replace(/[a-z]$/, (letter) => letter.toUpperCase()) : key);

function nameOf(event) {
  const key = event.key.length === 1 && event.ctrlKey | event.metaKey ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && key.length === 1 ? "Shift+" : "";
  return (onMac ? event.metaKey : event.ctrlKey) ? `Mod+${shift}${key}` : key;
}

function forget() {
  first = "";
  clearTimeout(waiting);
}

function press(event) {
  const target = event.composedPath()[0];
  if (event.defaultPrevented || event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
  const name = nameOf(event), keys = allKeys();
  if (target.closest?.(FIELDS) && !name.startsWith("Mod+")) {
    if (name === "Escape") {
      event.preventDefault(); // it would empty the search box
      target.blur();
    }
    return;
  }
  if (name === "Enter" && target.closest?.("a, button, summary")) return;
  const chord = first ? `${first} ${name}` : name, found = keys[chord] ?? keys[name];
  forget();
  if (found) {
    event.preventDefault();
    found[1](event);
  } else if (Object.keys(keys).some((key) => key.startsWith(`${name} `))) {
    first = name;
    waiting = setTimeout(forget, CHORD);
  }
}

addEventListener("keydown", press);
