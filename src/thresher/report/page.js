// A click (or Enter) on a heading sorts the table. A search hides the lines without all its words.
// Long tables show their first lines, and a button for the rest: the layout of all lines is slow.
// Do not use less-than signs or ampersands here: pages must be valid XML, too.
"use strict";
const MANY = 300;
const order = new Intl.Collator(undefined, { numeric: true });

const key = (cell) => {
  if (cell.dataset.t !== undefined) return cell.dataset.t;
  const value = cell.dataset.v;
  return value === undefined ? cell.textContent : value === "" ? null : Number(value);
};

const compare = (a, b) => {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return typeof a === "number" ? a - b : order.compare(a, b);
};

const sorted = (rows, at, down) => {
  const keyed = rows.map((row) => [key(row.cells[at]), row]);
  const known = keyed.filter((pair) => pair[0] !== null);
  const missing = keyed.filter((pair) => pair[0] === null);
  known.sort((a, b) => down ? compare(b[0], a[0]) : compare(a[0], b[0]));
  return known.concat(missing).map((pair) => pair[1]);
};

const made = (tag, properties) => Object.assign(document.createElement(tag), properties);

const lines = (count) => count.toLocaleString("en") + (count === 1 ? " line" : " lines");

const activate = (around) => {
  const table = around.querySelector("table"), body = table.tBodies[0];
  let rows = Array.from(body.rows), words = [], limit = MANY;
  const texts = new Map(rows.map((row) =>
    [row, Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase()]));
  const count = made("output", {});
  const more = made("button", { type: "button", className: "more" });

  const show = () => {
    let found = 0;
    for (const row of rows) {
      const kept = words.every((word) => texts.get(row).includes(word));
      if (kept) found += 1;
      row.hidden = !kept || found > limit;
    }
    count.textContent = found === rows.length ? lines(found)
      : found.toLocaleString("en") + " of " + lines(rows.length);
    more.hidden = limit >= found;
    more.textContent = "The first " + MANY + " are shown: show all " + found.toLocaleString("en");
  };

  more.addEventListener("click", () => {
    limit = Infinity;
    show();
  });
  around.append(more);

  if (around.classList.contains("search")) {
    const input = made("input", { type: "search", placeholder: "Search the table" });
    input.setAttribute("aria-label", "Search the table");
    input.addEventListener("input", () => {
      words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
      show();
    });
    const tools = made("div", { className: "tools" });
    tools.append(input, count);
    around.prepend(tools);
  }

  const heads = Array.from(table.tHead.rows[0].cells).filter((head) => head.textContent.trim());
  for (const head of heads) {
    const button = made("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      for (const each of heads) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", was === first ? other : first);
      rows = sorted(rows, head.cellIndex, head.getAttribute("aria-sort") === "descending");
      body.remove();
      show();
      body.replaceChildren(...rows);
      table.append(body);
    });
  }
  show();
};

for (const around of document.querySelectorAll(".thresher .table")) activate(around);
