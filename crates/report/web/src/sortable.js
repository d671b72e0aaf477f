// SPDX-License-Identifier: Apache-2.0
// A table whose heads are buttons that sort it: numbers with the most first, words from A on, and the other way round at the
// next press. What is unknown stays at the end.
import { element } from "./dom.js";

const isNumber = (text) => text !== "" && Number.isFinite(Number(text));

function compare(a, b, direction) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const numbers = isNumber(a) && isNumber(b);
  return direction * (numbers ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
}

export function sortable(place) {
  const table = place.querySelector("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  const sort = (column, direction) => {
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => compare(value(a), value(b), direction));
    body.append(...rows);
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
  };

  heads.forEach((head, column) => {
    const button = element("button", { type: "button", className: "sort", textContent: head.textContent });
    const first = head.classList.contains("number") ? -1 : 1;
    button.addEventListener("click", () => {
      const sorted = head.getAttribute("aria-sort");
      const now = sorted === "ascending" ? 1 : sorted === "descending" ? -1 : 0;
      sort(column, now === first ? -first : first);
    });
    head.replaceChildren(button);
  });
}
