// Icons of views, kinds of notes and actions: paths on a grid of 24, drawn with a line of 2.

import { svg } from "../vendor/lit-html.js";

const PATHS = {
  // views
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 4.5 4.5",
  home: "m3 11 9-8 9 8M5 9.5V20h5v-6h4v6h5V9.5",
  notes: "M5 3h10l4 4v14H5zM9 9h3m-3 4h6m-6 4h6",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  review: "M4 5h16v14H4zm0 8h5l1.5 2h3L15 13h5",
  context: "M4 5h16v11H9l-5 4z",
  map: "M6 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4m12 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4M8 21a2 2 0 1 0 0-4 2 2 0 0 0 0 4" +
    "M7.9 6 16.2 10M6.4 7l1.2 10m2-.8 6.8-4.1",
  health: "M12 20S4 15 4 9a4 4 0 0 1 8-1 4 4 0 0 1 8 1c0 6-8 11-8 11",
  // kinds of notes
  memory: "M12 3a6 6 0 0 0-4 10.5c.8.8 1 1.5 1 2.5h6c0-1 .2-1.7 1-2.5A6 6 0 0 0 12 3M10 20h4",
  article: "M5 4h14v16H5zM8 8h8m-8 4h8m-8 4h5",
  entity: "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21c0-4 3.5-7 8-7s8 3 8 7",
  resource: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1m2 4a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  conversation: "M4 4h12v9H9l-5 4zm14 4h2v12l-4-3h-6v-2",
  checkpoint: "M6 21V4h11l-2 4 2 4H6",
  skill: "m13 3-8 11h6l-1 7 8-11h-6z",
  folder: "M3 6h6l2 2h10v11H3z",
  web: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18m0-18c-3 3-3 15 0 18",
  // actions
  new: "M12 5v14M5 12h14",
  more: "M4 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0m7 0a1 1 0 1 0 2 0 1 1 0 1 0-2 0m7 0a1 1 0 1 0 2 0 1 1 0 1 0-2 0",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  keys: "M3 6h18v12H3zm4 4h.01M11 10h.01M15 10h.01M8 14h8",
  pin: "M9 3h6l-1 6 4 4H6l4-4zm3 10v8",
  tag: "M3 12V4h8l10 10-7 7zM7.5 8h.01",
  copy: "M8 8h12v12H8zM16 8V4H4v12h4",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1m2 4a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  edit: "m4 20 1-5L16 4l4 4L9 19z",
  trash: "M4 7h16M9 7V4h6v3m-9 0 1 13h10l1-13",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18m0 4v5l3 2",
  command: "m5 8 4 4-4 4m6 0h8",
  filter: "M4 6h16M7 12h10m-7 6h4",
};

// An icon by its name; a kind that has none looks like an article.
export const icon = (name) => svg`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
  <path d=${PATHS[name] ?? PATHS.article}/></svg>`;
