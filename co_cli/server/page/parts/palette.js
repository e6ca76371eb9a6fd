// <co-palette>: Ctrl+K or ⌘K. Recent notes, titles as you type, "Ask: …", and what can be done here.

import { get } from "./api.js";
import { keyText } from "./keys.js";
import { html, icon, inTurn, notePath, nothing, render } from "./pieces.js";
import { recentNotes } from "./store.js";

const ICONS = [[/^Go to (\w+)/, (found) => found[1].toLowerCase()], ["Search", "search"], ["New note", "new"],
  ["Today", "today"], [/^Capture/, () => "capture"], [/^Edit/, "edit"], [/^(Forget|Dismiss)/, "trash"],
  [/^Theme/, "theme"],
  ["Copy link", "link"], [/keys/, "keys"], [/Undo/, "undo"], [/Select/, "task"], [/[Cc]olour/, "tag"]];

// The drawing of a command, by its name.
function iconOf(title) {
  for (const [wanted, icon] of ICONS) {
    const found = wanted === title ? [] : wanted instanceof RegExp && wanted.exec(title);
    if (found) return typeof icon === "string" ? icon : icon(found);
  }
  return "command";
}

const TITLES = 8, COMMANDS = 6;

class Palette extends HTMLElement {
  start({ go, toast, commands, typed }) {
    Object.assign(this, { go, toast, commands, typed: "", notes: [], found: "", selected: 0 });
    this.look = inTurn(() => this.search());
    this.draw();
    this.dialog = this.querySelector("dialog");
    this.dialog.addEventListener("close", () => this.remove());
    this.dialog.showModal();
    const target = this.querySelector("input");
    target.value = typed;
    target.focus();
    if (typed) this.type({ target });
  }

  // Titles for what is typed; the newest text wins.
  async search() {
    const { typed } = this;
    if (typed.trim()) this.notes = await get("/titles", { q: typed, limit: TITLES });
    this.found = typed;
    if (this.isConnected) this.draw();
  }

  type(event) {
    [this.typed, this.selected] = [event.target.value, 0];
    this.draw();
    this.look().catch((error) => this.toast(error.message));
  }

  // [{ title, about, icon, key, path or run }] in groups.
  groups() {
    const words = this.typed.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ([title]) => words.every((word) => title.toLowerCase().includes(word));
    const note = ({ ref, title, kind, path }) => ({ title, about: path ?? "", icon: kind, path: notePath(ref) });
    const commands = this.commands.filter(fits).map(([title, key, run]) => ({ title, key, run, icon: iconOf(title) }));
    const asked = this.typed.trim();
    if (!asked) return [["Recent notes", recentNotes().slice(0, TITLES).map(note)], ["Here", commands]];
    const ask = { title: `Ask: ${asked}`, icon: "search", path: `/?q=${encodeURIComponent(asked)}` };
    return [["Notes", this.notes.map(note)], ["Ask", [ask]], ["Here", commands.slice(0, COMMANDS)]];
  }

  items() { return this.groups().flatMap(([, items]) => items); }

  select(place) {
    if (this.selected === place) return;
    this.selected = place;
    this.draw();
  }

  choose(item, elsewhere) {
    if (!item || !this.dialog.open) return;
    this.dialog.close();
    if (item.run) return item.run();
    if (elsewhere) window.open(item.path, "_blank", "noopener");
    else this.go(item.path);
  }

  // Enter for a text whose titles are still being looked up waits for them.
  async enter(event) {
    if (this.typed.trim() && this.found !== this.typed) await this.look();
    this.choose(this.items()[this.selected], event.metaKey || event.ctrlKey);
  }

  press(event) {
    if (event.isComposing) return;
    const last = this.items().length - 1, step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.selected = this.selected + step > last ? 0 : this.selected + step < 0 ? last : this.selected + step;
    else if (event.key === "Enter") this.enter(event);
    else if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
    else this.dialog.close();
    event.preventDefault();
    this.draw();
    this.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  draw() {
    let at = -1;
    const option = (item) => {
      const mine = ++at, chosen = mine === this.selected;
      return html`<li role="option" id="option-${mine}" aria-selected=${chosen} @pointermove=${() => this.select(mine)}
          @click=${(event) => this.choose(item, event.metaKey || event.ctrlKey)}>
        ${icon(item.icon)}<span class="title">${item.title}</span>
        ${item.about ? html`<span class="soft small">${item.about}</span>` : nothing}
        ${item.key ? html`<kbd>${keyText(item.key)}</kbd>` : nothing}</li>`;
    };
    const beside = (event) => { if (event.target === this.dialog) this.dialog.close(); };
    const groups = this.groups().filter(([, items]) => items.length);
    render(html`<dialog class="palette" aria-label="Search or go to" @click=${beside}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="options" aria-autocomplete="list"
        autocomplete="off" spellcheck="false" aria-activedescendant="option-${this.selected}"
        aria-label="Search or go to" placeholder="A title, a question, or what to do"
        @input=${(event) => this.type(event)} @keydown=${(event) => this.press(event)}>
      <div id="options" role="listbox" aria-label="Choices" aria-busy=${this.found !== this.typed}>
        ${groups.map(([name, items]) => html`
        <ul role="group" aria-label=${name}><li role="presentation" class="name soft small">${name}</li>
          ${items.map(option)}</ul>`)}</div>
      <p class="small soft foot"><kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> open ·
        <kbd>${keyText("Mod+Enter")}</kbd> in a new tab · <kbd>Esc</kbd> close</p>
    </dialog>`, this);
  }
}
customElements.define("co-palette", Palette);

export function open(context) {
  const palette = document.createElement("co-palette");
  document.body.append(palette);
  palette.start(context);
}
