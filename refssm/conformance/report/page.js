"use strict";
// The table can be read without this: it hides rows and sorts them.
(() => {
  const table = document.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const hidden = new Set();
  const counts = new Map();
  for (const row of rows) {
    counts.set(row.dataset.verdict, (counts.get(row.dataset.verdict) || 0) + 1);
  }

  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "operator, check, type …";
  search.setAttribute("aria-label", "Show only rows with these words");
  const shown = document.createElement("output");

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = hidden.has(row.dataset.verdict) || !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length} shown`;
  }

  for (const [verdict, count] of counts) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${verdict} ${count}`;
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", now);
      hidden[now ? "delete" : "add"](verdict);
      show();
    });
    filter.append(button);
  }
  search.addEventListener("input", show);
  filter.append(search, shown);
  filter.hidden = false;
  show();

  function key(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.order ?? cell.textContent.trim();
    const number = parseFloat(text);
    return Number.isNaN(number) ? [1, text] : [0, number];
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [key(row, column), row]);
      keyed.sort(([[p, a]], [[q, b]]) => (p - q || (a < b ? -1 : a > b ? 1 : 0)) * (down ? -1 : 1));
      body.append(...keyed.map(([, row]) => row));
    });
  });
})();
