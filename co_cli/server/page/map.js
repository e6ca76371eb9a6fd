import { html, render } from "./parts.js";

export const page = {
  path: "/map",
  title: "Map",
  async open(main) {
    render(html`<h1>Map</h1>`, main);
  },
};
