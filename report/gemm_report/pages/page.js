"use strict";

// The page is whole without this: it adds sorting, filtering and unfolding by a click.
document.documentElement.classList.add("js");

const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// What a cell is sorted by: a number, a text, or null for what is always last.
function keyOf(body, column, isNumber) {
  const cell = body.rows[0].cells[column];
  if (isNumber) return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  return cell.textContent.trim() || null;
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  for (const head of heads) {
    const isNumber = head.classList.contains("n");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      // Of numbers the largest first.
      const first = isNumber ? "descending" : "ascending";
      const second = isNumber ? "ascending" : "descending";
      const direction = head.getAttribute("aria-sort") === first ? second : first;
      const sign = direction === "descending" ? -1 : 1;
      const keyed = [...table.tBodies].map((body) => [keyOf(body, head.cellIndex, isNumber), body]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (isNumber ? a - b : natural.compare(a, b));
      });
      table.append(...keyed.map(([, body]) => body));
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? direction : "none"));
    });
  }
}

function startFiltering(tools, table) {
  const fields = [...tools.querySelectorAll("input, select")];
  const [search, ...lists] = fields;
  const output = tools.querySelector("output");
  const rows = [...table.tBodies].map((body) => {
    const cells = [...body.rows[0].cells];
    const choices = cells.map((c) => (c.dataset.choices ? JSON.parse(c.dataset.choices) : [c.textContent]));
    return { body, choices, text: `${body.rows[0].textContent} ${choices.flat().join(" ")}`.toLowerCase() };
  });
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const { body, choices, text } of rows) {
      const fits = words.every((word) => text.includes(word)) &&
        lists.every((list) => !list.value || choices[list.dataset.column].includes(list.value));
      body.hidden = !fits;
      shown += fits;
    }
    const of = shown === rows.length ? "" : ` of ${rows.length}`;
    output.textContent = `${shown}${of} ${output.dataset.name}`;
  }
  const choose = (chosen) => {
    fields.forEach((field) => { field.value = chosen[field.name] ?? ""; });
    filter();
  };
  fields.forEach((field) => field.addEventListener("input", filter));
  tools.querySelector(".clear").addEventListener("click", () => choose({}));
  return choose;
}

// Rows unfold by their names.
function startUnfolding(table) {
  table.addEventListener("click", (event) => {
    const link = event.target.closest("tbody th a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const body = link.closest("tbody");
    const isOpen = body.classList.toggle("open");
    link.setAttribute("aria-expanded", String(isOpen));
    history.replaceState(null, "", isOpen ? link.hash : location.pathname + location.search);
  });
}

addEventListener("DOMContentLoaded", () => {
  const filters = [];
  const choose = (chosen) => filters.forEach((filter) => filter(chosen));
  for (const sortable of document.querySelectorAll(".sortable")) {
    const [table, tools] = [sortable.querySelector("table"), sortable.querySelector(".tools")];
    startSorting(table);
    startUnfolding(table);
    if (!tools) continue;
    const filter = startFiltering(tools, table);
    if (tools.querySelector("[name=state], [name=verdict]")) filters.push(filter);
  }
  // #state=failed filters the table, #anchor unfolds a row.
  function follow() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = document.getElementById(name);
    const table = document.querySelector(":is([name=state], [name=verdict])")?.closest(".tools");
    (name.includes("=") ? table : target)?.closest("details")?.setAttribute("open", "");
    if (name.includes("=") && !target) {
      choose(Object.fromEntries([name.split("=")]));
      table?.scrollIntoView();
    } else if (target?.matches("tbody")) {
      choose({});
      target.classList.add("open");
      target.scrollIntoView();
    }
  }
  follow();
  addEventListener("hashchange", follow);
});
