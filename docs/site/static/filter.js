// Filters above the tables of all operators: words, family, contract, what an operator has.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("article table")].filter(
    (table) => table.rows[0]?.cells[0].textContent.trim() === "operator");
  if (!location.pathname.endsWith("/tables.html") || !tables.length) return;
  const rows = tables.flatMap((table) => {
    const family = table.closest("section").querySelector("h3").firstChild.textContent.trim();
    return [...table.tBodies[0].rows].map((row) => ({
      row, family, text: row.textContent.toLowerCase(), contract: row.cells[3].textContent.trim(),
      has: row.cells[4].textContent.split(",").map((word) => word.trim()),
    }));
  });
  const all = (of) => [...new Set(rows.flatMap(of))].filter(Boolean).sort();
  const select = (name, values) => {
    const made = document.createElement("select");
    made.setAttribute("aria-label", name);
    made.append(new Option(`${name}: all`, ""), ...values.map((value) => new Option(value, value)));
    return made;
  };
  const words = Object.assign(document.createElement("input"), {type: "search", placeholder: "words"});
  words.setAttribute("aria-label", "words");
  const family = select("family", [...new Set(rows.map((one) => one.family))]);
  const contract = select("contract", all((one) => one.contract));
  const has = select("has", all((one) => one.has));
  const count = document.createElement("output");
  const bar = document.createElement("form");
  bar.className = "filters";
  bar.append(words, family, contract, has, count);
  const shown = (one) =>
    words.value.toLowerCase().split(/\s+/).every((word) => one.text.includes(word)) &&
    (!family.value || one.family === family.value) &&
    (!contract.value || one.contract === contract.value) &&
    (!has.value || one.has.includes(has.value));
  const update = () => {
    rows.forEach((one) => { one.row.hidden = !shown(one); });
    tables.forEach((table) => {
      table.closest("section").hidden = [...table.tBodies[0].rows].every((row) => row.hidden);
    });
    count.value = `${rows.filter((one) => !one.row.hidden).length} of ${rows.length} operators`;
  };
  bar.addEventListener("input", update);
  bar.addEventListener("submit", (event) => event.preventDefault());
  tables[0].closest("section").before(bar);
  update();
});
