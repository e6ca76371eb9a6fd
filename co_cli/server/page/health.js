import { html, render } from "./parts.js";

export const page = {
  path: "/health",
  title: "Health",
  async open(main) {
    render(html`<h1>Health</h1>`, main);
  },
};
