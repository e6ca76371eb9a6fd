import { html, render } from "./parts.js";

export const page = {
  path: "/given",
  title: "Given",
  async open(main) {
    render(html`<h1>Given</h1>`, main);
  },
};
