"use strict";

// The page is whole without this: it adds sorting, filtering and tabs.
(() => {
  document.documentElement.classList.add("js");

  // What is seen is in the address: #anchor&tab=bf16&precision=bf16&sort=-time&search=wgmma
  function address() {
    const parts = location.hash.substring(1).split("&");
    const anchor = parts[0].includes("=") ? "" : parts.shift();
    let name = anchor;
    try { name = decodeURIComponent(anchor); } catch { /* as it is */ }
    return { anchor: name, view: new URLSearchParams(parts.join("&")) };
  }

  let seen = "";
  function remember(change, anchor = address().anchor) {
    const { view } = address();
    for (const [key, value] of Object.entries(change)) {
      if (value) view.set(key, value); else view.delete(key);
    }
    seen = view.toString();
    const hash = [anchor && encodeURI(anchor), seen].filter(Boolean).join("&");
    const url = hash ? `#${hash}` : location.pathname + location.search;
    try { history.replaceState(null, "", url); } catch { /* a page without an address */ }
  }

  const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

  // What a cell is sorted by: a number, a text, or null for what is always last.
  function keyOf(body, column, isNumber) {
    const cell = body.rows[0].cells[column];
    if (isNumber) return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    return cell.textContent.trim() || null;
  }

  // Gives what sorts as the address says.
  function startSorting(table, isMain) {
    const heads = [...table.tHead.rows[0].cells];
    const original = [...table.tBodies];
    // Of numbers the largest first.
    const orders = (head) => head.classList.contains("n")
      ? ["none", "descending", "ascending"] : ["none", "ascending", "descending"];

    function sort(head, direction) {
      if (head.getAttribute("aria-sort") === direction) return;
      const isNumber = head.classList.contains("n");
      const sign = direction === "descending" ? -1 : 1;
      const compare = isNumber ? (a, b) => a - b : natural.compare;
      const bodies = direction === "none" ? original : [...table.tBodies];
      const keyed = bodies.map((body) => [keyOf(body, head.cellIndex, isNumber), body]);
      if (direction !== "none") {
        keyed.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      table.append(...keyed.map(([, body]) => body));
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? direction : "none"));
    }

    heads.forEach((head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = orders(head);
        const next = order[(order.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
        sort(head, next);
        const name = slug(head.textContent);
        if (isMain) remember({ sort: { none: "", ascending: name, descending: `-${name}` }[next] });
      });
    });
    return (view) => {
      const asked = view.get("sort") ?? "";
      const head = heads.find((each) => slug(each.textContent) === slug(asked));
      if (head) sort(head, asked.startsWith("-") ? "descending" : "ascending");
      else if (isMain) sort(heads[0], "none");
    };
  }

  // A word is found where one begins: "f32" not in TF32, and "streamk" in WgmmaStreamK.
  const marked = (text) =>
    `|${text.replace(/[a-z\d](?=[A-Z])|[^A-Za-z\d.]/g, "$&|").toLowerCase()}`;
  const pattern = (word) => new RegExp(
    `\\|${[...word].map((c) => c.replace(/[^a-z\d]/, "\\$&")).join("\\|?")}`);

  function startFiltering(tools, table) {
    const search = tools.querySelector("input[type=search]");
    const lists = [...tools.querySelectorAll("select")];
    const fields = [search, ...lists];
    const [clear, count] = ["button", "output"].map((name) => tools.querySelector(name));
    const choicesOf = (cell) =>
      cell.dataset.choices ? JSON.parse(cell.dataset.choices) : [cell.textContent];
    const rows = [...table.tBodies].map((body) => {
      const cells = [...body.rows[0].cells];
      return {
        body,
        text: marked(cells.map((cell) => `${cell.textContent} ${choicesOf(cell).join(" ")}`).join(" ")),
        choices: lists.map((list) => choicesOf(cells[list.dataset.column])),
      };
    });

    function filter() {
      const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean).map(pattern);
      const chosen = lists.map((list) => list.value);
      let shown = 0;
      for (const { body, text, choices } of rows) {
        const fits = asked.every((word) => word.test(text)) &&
          chosen.every((choice, i) => !choice || choices[i].includes(choice));
        if (body.hidden === fits) body.hidden = !fits;
        shown += fits;
      }
      const of = shown === rows.length ? "" : ` of ${rows.length}`;
      count.textContent = `${shown}${of} ${count.dataset.name}`;
      clear.disabled = fields.every((field) => !field.value);
      table.dispatchEvent(new Event("filtered"));
    }

    const changed = () => {
      filter();
      remember(Object.fromEntries(fields.map((field) => [field.name, field.value])));
    };
    fields.forEach((field) => field.addEventListener("input", changed));
    const apply = (view) => {
      fields.forEach((field) => { field.value = view.get(field.name) ?? ""; });
      filter();
    };
    const showAll = () => { apply(new Map()); changed(); };
    clear.addEventListener("click", () => { showAll(); search.focus(); });
    return { apply, showAll };
  }

  // Rows unfold by their names. One of these is a stop of the tab key; arrows go on to the others.
  function startUnfolding(table) {
    const links = [...table.querySelectorAll("tbody th a")];
    const stop = (link) => {
      links.forEach((each) => { if (each.tabIndex === 0) each.tabIndex = -1; });
      if (link) link.tabIndex = 0;
    };
    const unfold = (body, open) => {
      body.classList.toggle("open", open);
      body.querySelector("th a").setAttribute("aria-expanded", String(open));
    };
    links.forEach((link) => link.setAttribute("aria-expanded", "false"));
    table.addEventListener("click", (event) => {
      const body = event.target.closest("tbody tr:first-child")?.parentElement;
      if (!body || !body.id || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const open = !body.classList.contains("open");
      unfold(body, open);
      remember({}, open ? body.id : "");
    });
    table.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !event.target.matches("tbody th a")) return;
      const there = [...table.tBodies].filter((body) => !body.hidden);
      const next = there[there.indexOf(event.target.closest("tbody")) + step]?.querySelector("th a");
      if (next) { event.preventDefault(); next.focus(); }
    });
    table.addEventListener("focusin", (event) => {
      if (event.target.matches("tbody th a")) stop(event.target);
    });
    const stopAtFirst = () => stop(table.querySelector("tbody:not([hidden]) th a"));
    table.addEventListener("filtered", stopAtFirst);
    stopAtFirst();
    return unfold;
  }

  function startTabs(bar) {
    const tabs = [...bar.querySelectorAll("[role=tab]")];
    const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
    function select(chosen) {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", String(tab === chosen));
        tab.tabIndex = tab === chosen ? 0 : -1;
        panel(tab).hidden = tab !== chosen;
      }
    }
    const choose = (tab) => { select(tab); remember({ tab: tab.dataset.tab }); };
    tabs.forEach((tab) => tab.addEventListener("click", () => choose(tab)));
    bar.addEventListener("keydown", (event) => {
      const at = tabs.indexOf(event.target);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      tabs.at(to % tabs.length).click();
      tabs.at(to % tabs.length).focus();
    });
    return (view, anchor) => {
      const holds = (tab) => anchor && panel(tab).contains(document.getElementById(anchor));
      select(tabs.find(holds) ?? tabs.find((tab) => tab.dataset.tab === view.get("tab")) ??
        tabs.find((tab) => tab.ariaSelected === "true") ??
        tabs.find((tab) => tab.dataset.tab === "bf16") ?? tabs[0]);
    };
  }

  // The value of the mark under the pointer, or under the finger.
  function startValues() {
    const box = document.createElement("div");
    box.className = "value";
    box.hidden = true;
    document.body.append(box);
    const show = (event) => {
      const said = event.target.closest?.(".picture circle");
      box.hidden = !said;
      if (!said) return;
      box.textContent = said.textContent;
      const left = Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8);
      box.style.left = `${Math.max(left, 8)}px`;
      box.style.top = `${event.clientY + 16}px`;
    };
    addEventListener("pointerover", show);
    addEventListener("pointerdown", show);
    addEventListener("scroll", () => { box.hidden = true; }, { passive: true });
  }

  // What fits needs no box to scroll in, and then a table's head can stay in sight.
  function watchWidth(box) {
    const content = box.firstElementChild;
    const look = () => {
      const fits = content.getBoundingClientRect().width <= box.clientWidth + 1;
      box.classList.toggle("fits", fits);
      // What scrolls must do so by keys, too.
      for (const [name, value] of [["tabindex", "0"], ["role", "region"],
        ["aria-label", box.dataset.name ?? "scrolls sideways"]]) {
        if (fits) box.removeAttribute(name); else box.setAttribute(name, value);
      }
    };
    new ResizeObserver(look).observe(box);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".wide").forEach(watchWidth);
    startValues();
    const tabs = [...document.querySelectorAll(".tabs")].map(startTabs);
    const parts = [...document.querySelectorAll(".sortable")].map((sortable) => {
      const table = sortable.querySelector("table");
      const tools = sortable.querySelector(".tools");
      const unfold = table.querySelector("tbody th a") && startUnfolding(table);
      return {
        table, unfold, sortBy: startSorting(table, Boolean(tools)),
        filters: tools && startFiltering(tools, table),
      };
    });

    function follow() {
      // A link within the page leaves what is seen as it is.
      remember(address().view.size ? {} : Object.fromEntries(new URLSearchParams(seen)));
      const { anchor, view } = address();
      tabs.forEach((show) => show(view, anchor));
      for (const { sortBy, filters } of parts) {
        if (filters) sortBy(view);
        filters?.apply(view);
      }
      const target = anchor && document.getElementById(anchor);
      if (!target) {
        // A link that filters leads to what it filters.
        if (follow.again && view.size) parts.find((each) => each.filters)
          ?.table.closest("section").scrollIntoView();
        return;
      }
      const part = parts.find(({ table }) => table.contains(target));
      if (part?.unfold && target.tagName === "TBODY") {
        if (target.hidden) part.filters?.showAll();
        part.unfold(target, true);
        document.querySelector(".arrived")?.classList.remove("arrived");
        target.classList.add("arrived");
      }
      target.scrollIntoView();
    }
    follow();
    follow.again = true;
    addEventListener("hashchange", follow);
  });
})();
