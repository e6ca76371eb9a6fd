// What the search box is doing, as a table of states; and the requests that belong to each.
//
// idle: nothing is asked. typing: a text whose first hits are on their way. asked: its first hits are there, and the
// pause has not passed yet. reading: a model reads the hits. done: with the verdict. failed: the server refused, or is
// away.

import { changes, get } from "./api.js";
import { inTurn } from "./pieces.js";

const PAUSE = 300; // milliseconds
const ALWAYS = { clear: "idle", type: "typing", ask: "reading" };
const NEXT = {
  idle: ALWAYS,
  typing: { ...ALWAYS, hits: "asked", fail: "failed" },
  asked: ALWAYS,
  reading: { ...ALWAYS, answer: "done", fail: "failed" },
  done: { ...ALWAYS, answer: "done" },
  failed: { ...ALWAYS, answer: "done" },
};

export class Asking {
  // `asked` is { q, source, tag, since }; `show` is called whenever something is to be drawn.
  constructor(asked, show, signal) {
    Object.assign(this, { asked, show, signal, state: "idle", found: undefined, error: undefined, serial: 0 });
    this.type = inTurn(async () => { if (this.state === "typing") await this.first(); });
    signal.addEventListener("abort", () => clearTimeout(this.pause));
  }

  on(event) { this.state = NEXT[this.state][event] ?? this.state; }

  get empty() { return !this.asked.q.trim(); }
  get final() { return this.state === "done"; }

  // The text or a filter is another one: its first hits now, and the verdict after a pause.
  changed() {
    clearTimeout(this.pause);
    this.serial++;
    if (this.empty) return this.clear();
    this.on("type");
    this.pause = setTimeout(() => this.ask().catch((error) => this.fail(error)), PAUSE);
    return this.type();
  }

  clear() {
    this.on("clear");
    [this.found, this.error] = [undefined, undefined];
    this.show();
  }

  async first() {
    const mine = this.serial;
    try {
      const found = await get("/search", { ...this.asked, typing: true }, this.signal);
      if (mine !== this.serial || this.state !== "typing") return this.show();
      this.on("hits");
      [this.found, this.error] = [found, undefined];
      this.show("hits");
    } catch (error) {
      if (mine === this.serial && this.state === "typing") this.fail(error);
    }
  }

  // One search that a model reads and the log keeps; before it the first hits, unless they are there.
  ask() { return this.asking = this.read(); }

  // The answer to what is in the box now: the one that is there or on its way, or another.
  answered() { return this.state === "reading" ? this.asking : this.final ? undefined : this.ask(); }

  async read() {
    clearTimeout(this.pause);
    const mine = ++this.serial, seen = changes.count, shown = this.state === "asked";
    this.on("ask");
    if (!shown) this.preview(mine);
    this.show();
    try {
      const found = await get("/search", this.asked, this.signal);
      if (mine !== this.serial) return;
      this.on("answer");
      [this.found, this.error] = [found, undefined];
      this.show("answer");
      if (seen !== changes.count) await this.update();
    } catch (error) {
      if (mine === this.serial) this.fail(error);
    }
  }

  // The first hits of a search whose answer is on its way. If they fail, so does the answer.
  async preview(mine) {
    const found = await get("/search", { ...this.asked, typing: true }, this.signal).catch(() => undefined);
    if (!found || mine !== this.serial || this.state !== "reading") return;
    [this.found, this.error] = [found, undefined];
    this.show("hits");
  }

  // The same answer after notes changed; it is not logged again, and stays if the server does not answer.
  update = inTurn(async () => {
    if (this.state !== "done" && this.state !== "failed") return;
    const mine = this.serial;
    const found = await get("/search", { ...this.asked, track: false }, this.signal);
    if (mine !== this.serial) return;
    this.on("answer");
    [this.found, this.error] = [found, undefined];
    this.show("update");
  });

  fail(error) {
    if (this.signal.aborted) return;
    this.on("fail");
    [this.error, this.found] = [error, undefined];
    this.show();
  }
}
