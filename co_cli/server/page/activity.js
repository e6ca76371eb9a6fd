import { html, render } from "./parts.js";

export const page = {
  path: "/activity",
  title: "Activity",
  async open(main) {
    render(html`<h1>Activity</h1>`, main);
  },
};
