import { html, render } from "./parts.js";

export const page = {
  path: "/note/*",
  title: "Note",
  async open(main) {
    render(html`<h1>Note</h1>`, main);
  },
};
