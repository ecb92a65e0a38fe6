// SPDX-License-Identifier: Apache-2.0
// Sorts and filters the tables, and shows the row of a point. The page says everything without it.
"use strict";

// Returns what a cell is sorted by: its number, or its text in lower case.
function keyOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.key ?? cell.textContent.trim();
  const number = parseFloat(text);
  return text !== "" && !Number.isNaN(number) && /^[-+.\d]/.test(text) ? number : text.toLowerCase();
}

function compare(a, b) {
  if (typeof a === typeof b)
    return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

function sortBy(table, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  const column = header.cellIndex;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [keyOf(row, column), row]);
  rows.sort((a, b) => (descending ? compare(b[0], a[0]) : compare(a[0], b[0])));
  for (const other of table.tHead.rows[0].cells)
    other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  body.append(...rows.map((row) => row[1]));
}

function addButtons(table) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sortBy(table, header));
    header.replaceChildren(button);
  }
}

function addFilter(table) {
  const label = document.createElement("label");
  const field = document.createElement("input");
  label.className = "filter";
  label.textContent = "Filter";
  field.type = "search";
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows)
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  label.append(field);
  table.parentElement.before(label);
}

for (const table of document.querySelectorAll("table")) {
  addButtons(table);
  if ("filter" in table.dataset)
    addFilter(table);
}

// A point of a drawing leads to its row. In a frame a fragment would be that of the page around it.
for (const point of document.querySelectorAll(".plot a"))
  point.addEventListener("click", (event) => {
    const row = document.getElementById(point.getAttribute("href").slice(1));
    event.preventDefault();
    document.querySelector("tr.pointed")?.classList.remove("pointed");
    row.classList.add("pointed");
    row.hidden = false;
    row.scrollIntoView({block: "center"});
  });
