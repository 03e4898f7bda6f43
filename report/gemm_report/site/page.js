"use strict";

// The page is whole without this: it adds the choice of light and dark, sorting and filtering.
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // A page opened from a file may not be allowed to remember anything.
  const memory = {
    get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* forgotten */ } },
  };
  const darkSystem = matchMedia("(prefers-color-scheme: dark)");
  const remembered = memory.get();
  if (remembered === "light" || remembered === "dark") root.dataset.theme = remembered;

  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches;

  function startTheme(button) {
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      memory.set(root.dataset.theme);
      show();
    });
    darkSystem.addEventListener("change", show);
    show();
  }

  const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // What a cell is sorted by: a number, a text, or null for what is always last.
  function keyOf(body, column, isNumber) {
    const cell = body.rows[0].cells[column];
    if (isNumber) return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    return cell.textContent.trim() || null;
  }

  function startSorting(table) {
    const heads = [...table.tHead.rows[0].cells];
    const original = [...table.tBodies];

    function sort(head, direction) {
      const column = head.cellIndex;
      const isNumber = head.classList.contains("n");
      const sign = direction === "descending" ? -1 : 1;
      const compare = isNumber ? (a, b) => a - b : natural.compare;
      const bodies = direction === "none" ? original : [...table.tBodies];
      const keyed = bodies.map((body) => [keyOf(body, column, isNumber), body]);
      if (direction !== "none") {
        keyed.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      table.append(...keyed.map(([, body]) => body));
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? direction : "none"));
    }

    const next = { none: "ascending", ascending: "descending", descending: "none" };
    heads.forEach((head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(head, next[head.getAttribute("aria-sort")]));
    });
  }

  function startFiltering(tools, table) {
    const search = tools.querySelector("input[type=search]");
    const lists = [...tools.querySelectorAll("select")];
    const clear = tools.querySelector(".clear");
    const count = tools.querySelector("output");
    const rows = [...table.tBodies].map((body) => ({
      body,
      text: body.rows[0].textContent.toLowerCase(),
      choices: lists.map((list) => {
        const cell = body.rows[0].cells[list.dataset.column];
        return cell.dataset.choices ? JSON.parse(cell.dataset.choices) : [cell.textContent];
      }),
    }));

    function filter() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { body, text, choices } of rows) {
        body.hidden = !(words.every((word) => text.includes(word)) &&
          lists.every((list, i) => !list.value || choices[i].includes(list.value)));
        shown += !body.hidden;
      }
      const of = shown === rows.length ? "" : ` of ${rows.length}`;
      count.textContent = `${shown}${of} ${count.dataset.name}`;
      clear.disabled = !search.value && lists.every((list) => !list.value);
    }

    function showAll() {
      search.value = "";
      lists.forEach((list) => { list.value = ""; });
      filter();
    }

    search.addEventListener("input", filter);
    lists.forEach((list) => list.addEventListener("change", filter));
    clear.addEventListener("click", () => { showAll(); search.focus(); });
    // A link to a row that is filtered out would lead nowhere.
    addEventListener("hashchange", () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target?.hidden && table.contains(target)) {
        showAll();
        target.scrollIntoView();
      }
    });
    // After a reload some browsers give the fields back what was in them.
    filter();
  }

  // A table that fits needs no box to scroll in, and then its head can stay in sight.
  function watchWidth(table) {
    const box = table.parentElement;
    const look = () => box.classList.toggle("fits", table.offsetWidth <= box.clientWidth);
    new ResizeObserver(look).observe(box);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("button.theme").forEach(startTheme);
    for (const sortable of document.querySelectorAll(".sortable")) {
      const table = sortable.querySelector("table");
      const tools = sortable.querySelector(".tools");
      startSorting(table);
      watchWidth(table);
      if (tools) startFiltering(tools, table);
    }
  });
})();
