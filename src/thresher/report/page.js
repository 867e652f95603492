// Tables sort by a click on a head, or Enter on it; a search hides the lines that lack a word of it.
// No less-than sign or ampersand here: pages are XML, too.
"use strict";
const order = new Intl.Collator(undefined, { numeric: true });
const key = (row, at) => {
  const cell = row.cells[at], value = cell.dataset.v;
  if (cell.dataset.t !== undefined) return cell.dataset.t;
  return value === undefined ? cell.textContent : value === "" ? null : Number(value);
};
const compare = (a, b) => {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return typeof a === "number" ? a - b : order.compare(a, b);
};
const sort = (table, at, down) => {
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => [key(row, at), row]);
  const known = keyed.filter((pair) => pair[0] !== null);
  const missing = keyed.filter((pair) => pair[0] === null);
  known.sort((a, b) => down ? compare(b[0], a[0]) : compare(a[0], b[0]));
  body.append(...known.concat(missing).map((pair) => pair[1]));
};
const sortable = (table) => {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, at) => {
    if (head.textContent.trim() === "") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      for (const each of table.tHead.querySelectorAll("[aria-sort]")) {
        each.setAttribute("aria-sort", "none");
      }
      head.setAttribute("aria-sort", was === first ? other : first);
      sort(table, at, head.getAttribute("aria-sort") === "descending");
    });
  });
};
const searchable = (table, around) => {
  const rows = Array.from(table.tBodies[0].rows);
  const texts = rows.map((row) =>
    Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase());
  const tools = document.createElement("div"), input = document.createElement("input");
  const count = document.createElement("output");
  tools.className = "tools";
  input.type = "search";
  input.placeholder = "Search the table";
  input.setAttribute("aria-label", "Search the table");
  tools.append(input, count);
  around.prepend(tools);
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    let found = 0;
    rows.forEach((row, at) => {
      const kept = words.every((word) => texts[at].includes(word));
      if (row.hidden === kept) row.hidden = !kept;
      if (kept) found += 1;
    });
    const all = rows.length.toLocaleString("en");
    count.textContent = found === rows.length ? all + (rows.length === 1 ? " line" : " lines")
      : found.toLocaleString("en") + " of " + all + " lines";
  };
  input.addEventListener("input", show);
  show();
};
for (const around of document.querySelectorAll(".thresher .table")) {
  const table = around.querySelector("table");
  if (around.classList.contains("search")) searchable(table, around);
  sortable(table);
}
