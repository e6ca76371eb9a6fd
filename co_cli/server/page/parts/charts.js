// The plots of Activity: questions by day, and memories in a calendar.

import { count, dateText, html, nothing, svg } from "./pieces.js";

const DAY = 86400000, WIDE = 600, HIGH = 90;
const narrow = matchMedia("(max-width: 760px)");
let year = 0; // 0: the latest weeks
const dayOf = (time) => new Date(time).toISOString().slice(0, 10);

function searchPlot(days, name) {
  const most = Math.max(1, ...days.map((day) => day.searches));
  const wide = WIDE / days.length;
  const about = ({ date, searches, unanswered }) =>
    `${dateText(date)}: ${count(searches, "question")}, ${unanswered} unanswered`;
  const bar = (day, at, from, to, kind) => to > from ? svg`<rect class=${kind} x=${at * wide} width=${wide * .72}
    y=${HIGH * (1 - to / most)} height=${HIGH * (to - from) / most}><title>${about(day)}</title></rect>` : nothing;
  return html`<svg class="plot" viewBox="0 0 ${WIDE} ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${name}>
      <line x1="0" x2=${WIDE} y1=${HIGH - .5} y2=${HIGH - .5}/>
      ${days.map((day, at) => svg`${bar(day, at, 0, day.searches - day.unanswered, "answered")}
        ${bar(day, at, day.searches - day.unanswered, day.searches, "unanswered")}`)}</svg>
    <div class="axis small soft"><span>${dateText(days[0].date, { day: "numeric", month: "short" })}</span>
      <span class="shades"><i class="answered"></i>answered <i class="unanswered"></i>unanswered</span>
      <span>today</span></div>`;
}

function calendar(memories, chooser) {
  const weeks = narrow.matches ? 27 : 53, last = year ? Date.UTC(year, 11, 31) : Date.parse(dayOf(Date.now()));
  const first = Math.max(year ? Date.UTC(year, 0, 1) : 0, last - (7 * weeks - 7) * DAY);
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * DAY;
  const cells = [], months = [];
  let empty = "", total = 0, most = ["", 0];
  for (let time = first; time <= last; time += DAY) {
    const day = dayOf(time), number = memories[day] ?? 0, at = Math.round((time - monday) / DAY);
    const x = 13 * Math.floor(at / 7), y = 14 + 13 * (at % 7), level = Math.min(4, Math.ceil(Math.sqrt(number)));
    total += number;
    if (number > most[1]) most = [day, number];
    if (day.endsWith("-01")) months.push(svg`<text x=${x} y="9">${dateText(day, { month: "short" })}</text>`);
    if (!number) empty += `M${x} ${y}h11v11h-11z`;
    else cells.push(svg`<rect class="level${level}" x=${x} y=${y} width="11" height="11" rx="2.5"><title>${
      dateText(day)}: ${number} written</title></rect>`);
  }
  const span = `since ${dateText(dayOf(first), { month: "long", year: "numeric" })}`;
  const [day, number] = most;
  const summary = total ? `${total} written ${span}, most on ${dateText(day)} (${number})` : `None written ${span}`;
  return html`<svg class="calendar" viewBox="0 0 ${13 * (weeks + 1)} 106" role="img" aria-label=${summary}>
      ${months}<path d=${empty}/>${cells}</svg>
    <div class="axis small soft"><span>${summary}</span>${chooser}</div>`;
}

export function charts(stats, memories, draw) {
  const years = [...new Set(Object.keys(memories).map((day) => day.slice(0, 4)))].reverse();
  const { searches, unanswered, given: { notes, turns } } = stats;
  const answered = `${count(searches, "question")} in 30 days, ${unanswered} unanswered`;
  const given = turns ? ` · ${count(notes, "note")} given in ${count(turns, "prompt")}` : "";
  const choose = (event) => { year = +event.target.value; draw(); };
  const chooser = html`<select aria-label="Year" @change=${choose}><option value="0" ?selected=${!year}>Latest</option>
    ${years.map((one) => html`<option ?selected=${+one === year}>${one}</option>`)}</select>`;
  return html`<section class="card numbers"><h2>The last 30 days</h2><p class="small soft">${answered}${given}</p>
    <div class="plots"><div>${searchPlot(stats.days, answered)}</div>
      <div>${calendar(memories, chooser)}</div></div></section>`;
}
