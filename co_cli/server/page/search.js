import { html, render } from "./parts.js";

export const page = {
  path: "/",
  title: "Search",
  async open(main) {
    render(html`<h1>Search</h1>`, main);
  },
};
