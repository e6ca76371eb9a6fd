import { html, render } from "./parts.js";

export const page = {
  path: "/review",
  title: "Review",
  async open(main) {
    render(html`<h1>Review</h1>`, main);
  },
};
