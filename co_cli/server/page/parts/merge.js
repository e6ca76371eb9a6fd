// Two texts that were changed from one: what differs, by lines and by words, and how both fit together.

// Where each item of `left` is in `right`, by a longest common subsequence; -1 if it is not.
function matches(left, right) {
  const found = Array(left.length).fill(-1);
  let start = 0, end = 0;
  const most = Math.min(left.length, right.length);
  while (start < most && left[start] === right[start]) { found[start] = start; start++; }
  while (end < most - start && left.at(-1 - end) === right.at(-1 - end)) {
    end++;
    found[left.length - end] = right.length - end;
  }
  const rows = left.length - start - end, columns = right.length - start - end;
  if (rows * columns > 4e6) return found; // too much was rewritten to show what is the same
  const longest = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      longest[row][column] = left[start + row] === right[start + column] ? longest[row + 1][column + 1] + 1
        : Math.max(longest[row + 1][column], longest[row][column + 1]);
    }
  }
  for (let row = 0, column = 0; row < rows && column < columns;) {
    if (left[start + row] === right[start + column]) found[start + row++] = start + column++;
    else if (longest[row + 1][column] >= longest[row][column + 1]) row++;
    else column++;
  }
  return found;
}

// The parts of a merge, in order: { same } is in both texts, { mine, theirs, choice } differs. The choice is "mine" or
// "theirs" where only one side changed the part, else "both".
export function mergeParts(base, mine, theirs) {
  const [old, my, their] = [base, mine, theirs].map((text) => text.split(/(?<=\n)/));
  const inMine = matches(old, my), inTheirs = matches(old, their), parts = [];
  const add = (text) => {
    if (parts.at(-1)?.same !== undefined) parts.at(-1).same += text;
    else parts.push({ same: text });
  };
  for (let at = 0, m = 0, t = 0; at < old.length || m < my.length || t < their.length;) {
    if (at < old.length && inMine[at] === m && inTheirs[at] === t) { add(old[at++]); m++; t++; continue; }
    let next = at;
    while (next < old.length && (inMine[next] < m || inTheirs[next] < t)) next++;
    const [toMine, toTheirs] = next === old.length ? [my.length, their.length] : [inMine[next], inTheirs[next]];
    const was = old.slice(at, next).join("");
    const part = { mine: my.slice(m, toMine).join(""), theirs: their.slice(t, toTheirs).join("") };
    if (part.mine === part.theirs) add(part.mine);
    else parts.push({ ...part, choice: part.mine === was ? "theirs" : part.theirs === was ? "mine" : "both" });
    [at, m, t] = [next, toMine, toTheirs];
  }
  return parts;
}

const ended = (text) => !text || text.endsWith("\n") ? text : `${text}\n`;
const chosen = (one) => one.choice === "both" ? ended(one.theirs) + one.mine : one[one.choice];
export const merged = (parts) => parts.map((one) => one.same ?? chosen(one)).join("");

// Word by word: [[kind, text]], where a kind is "same", "removed" or "added".
export function wordChanges(before, after) {
  const [left, right] = [before, after].map((text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  const at = matches(left, right), found = [];
  const add = (kind, text) => {
    if (text && found.at(-1)?.[0] === kind) found.at(-1)[1] += text;
    else if (text) found.push([kind, text]);
  };
  let next = 0;
  left.forEach((word, place) => {
    if (at[place] < 0) return add("removed", word);
    add("added", right.slice(next, at[place]).join(""));
    add("same", word);
    next = at[place] + 1;
  });
  add("added", right.slice(next).join(""));
  return found;
}
