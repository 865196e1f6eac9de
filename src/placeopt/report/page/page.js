"use strict";
// Draws views: what each answers, its figures, its chart, and its tables. The charts stand in charts.js.

const element = (tag, text, attributes) => {
  const made = document.createElement(tag);
  if (text != null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  return made;
};

const VERDICTS = { good: "✓ ", bad: "✗ ", open: "? " };
const EVERY_MS = 5000;
const MANY = 1000; // rows that a table draws before it offers the others

const [whole, broken, parts] = [21, 4, 3].map((most) => new Intl.NumberFormat("en", { maximumSignificantDigits: most }));
const digits = (value) => (Number.isInteger(value) ? whole : broken).format(value);

const duration = (seconds) => {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.1) return `${digits(1000 * seconds)} ms`;
  if (size < 3600) return `${digits(seconds)} s`;
  return size < 172800 ? `${digits(seconds / 3600)} h` : `${digits(seconds / 86400)} d`;
};

const UNITS = {
  gpu_milli: (value) => digits(value / 1000),
  cpu_millicores: (value) => digits(value / 1000),
  mib: (value) => `${digits(value / 1024)} GiB`,
  s: duration,
  ms: (value) => duration(value / 1000),
  fraction: (value) => `${parts.format(100 * value)} %`,
  change: (value) => (value > 0 ? "+" : "") + digits(value),
};

const words = (value, unit) => {
  if (value == null) return "-";
  return typeof value === "string" ? value : (UNITS[unit] ?? digits)(value);
};

const at = (table, name) => table.columns.findIndex((column) => column.name === name);
const isNumeric = (table, index) => table.rows.every((row) => typeof row[index] !== "string");

function drawnTable(table) {
  const scroll = element("div", null, { class: "scroll", tabindex: 0, role: "region", "aria-label": table.name });
  const made = scroll.appendChild(element("table"));
  const numeric = table.columns.map((_, index) => isNumeric(table, index));
  const head = made.createTHead().insertRow();
  const body = made.createTBody();
  let rows = table.rows;
  let shown = MANY;

  const fill = () => {
    body.replaceChildren(...rows.slice(0, shown).map((row) => {
      const line = element("tr");
      row.forEach((cell, index) => {
        line.append(element("td", words(cell, table.columns[index].unit), numeric[index] ? { class: "number" } : {}));
      });
      return line;
    }));
    if (rows.length > shown) {
      const more = element("button", `and ${digits(rows.length - shown)} more`);
      more.onclick = () => { shown = rows.length; fill(); };
      body.insertRow().insertCell().append(more);
    }
  };

  table.columns.forEach((column, index) => {
    const header = head.appendChild(element("th", null, { scope: "col", class: numeric[index] ? "number" : "" }));
    const button = header.appendChild(element("button", column.name || "–"));
    button.onclick = () => {
      const up = header.getAttribute("aria-sort") !== "ascending";
      for (const other of head.cells) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows = [...table.rows].sort((a, b) => order(a[index], b[index]) * (up ? 1 : -1));
      fill();
    };
  });
  fill();
  return scroll;
}

const order = (a, b) => {
  if (a == null || b == null) return (a == null) - (b == null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
};

function drawnFigures(figures) {
  const list = element("dl");
  for (const figure of figures) {
    const pair = list.appendChild(element("div"));
    pair.append(element("dt", figure.name), element("dd", words(figure.value, figure.unit)));
  }
  return list;
}

function drawnView(view, number) {
  const section = element("section", null, { id: `view-${number}` });
  const verdict = view.verdict ?? "";
  section.append(element("h2", (VERDICTS[verdict] ?? "") + view.title, verdict ? { class: verdict } : {}));
  if (view.proof) section.append(element("p", view.proof, { class: "soft" }));
  for (const note of view.notes ?? []) section.append(element("p", note, { class: "soft" }));
  if (view.figures?.length) section.append(drawnFigures(view.figures));
  const tables = view.tables ?? [];
  const charted = view.chart && tables.find((table) => table.name === view.chart.table);
  if (charted?.rows?.length) section.append(drawnChart(view.chart, charted));
  for (const table of tables) {
    if (!table.rows?.length) continue;
    const part = element("details", null, table.shown === 0 ? {} : { open: "" });
    part.append(element("summary", table.name));
    if (table.note) part.append(element("p", table.note, { class: "soft" }));
    if (part.open) part.append(drawnTable(table));
    else part.addEventListener("toggle", () => part.append(drawnTable(table)), { once: true });
    section.append(part);
  }
  section.append(...origin(view.provenance ?? {}).map((line) => element("p", line, { class: "origin" })));
  return section;
}

// Where an answer comes from: what was asked about, seed, version, time, and the command.
function origin({ instance, seed, versions, time, answer_digest: digest, command }) {
  const about = [
    instance && `${instance.name}, digest ${(instance.digest ?? "none").slice(0, 12)}`,
    seed != null && `seed ${seed}`,
    versions?.placeopt && `placeopt ${versions.placeopt}`,
    time,
    digest && `answer ${digest.slice(0, 12)}`,
  ];
  return [about.filter(Boolean).join("; "), command].filter(Boolean);
}

function show(views) {
  document.getElementById("views").replaceChildren(...views.map(drawnView));
  const contents = views.length > 1 ? views.map((view, number) => {
    const item = element("div");
    item.append(element("a", view.title, { href: `#view-${number}` }));
    return item;
  }) : [];
  document.getElementById("contents").replaceChildren(...contents);
}

// A page that a service sends names where its views are. They are fetched every few seconds while the page is visible, with
// the token that this tab keeps, and drawn anew where they are others; tables that were opened stay open.
function follow(path) {
  const state = element("p", "", { class: "soft", role: "status" });
  const login = element("form", null, { hidden: "" });
  const label = login.appendChild(element("label", "Token of role read "));
  const token = label.appendChild(element("input", null, { type: "password", autocomplete: "off" }));
  login.append(element("button", "Show"), element("p", "Kept in this tab only.", { class: "soft" }));
  document.querySelector("header").append(state, login);
  let last = "";
  let timer = 0;

  const draw = (text) => {
    const isOpen = new Map([...document.querySelectorAll("details")].map((part) => [part.firstChild.textContent, part.open]));
    show(JSON.parse(text));
    for (const part of document.querySelectorAll("details")) part.open = isOpen.get(part.firstChild.textContent) ?? part.open;
    last = text;
  };
  const renew = async () => {
    clearTimeout(timer);
    try {
      const kept = sessionStorage.getItem("token");
      const reply = await fetch(path, { headers: kept ? { Authorization: `Bearer ${kept}` } : {}, cache: "no-store" });
      login.hidden = reply.status !== 401 && reply.status !== 403;
      const text = await reply.text();
      if (!reply.ok) throw new Error(JSON.parse(text).detail ?? reply.statusText);
      if (text !== last) draw(text);
      state.textContent = `as of ${new Date().toLocaleTimeString()}`;
    } catch (error) {
      state.textContent = error.message || "no answer";
    }
    if (!document.hidden) timer = setTimeout(renew, EVERY_MS);
  };
  login.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", token.value.trim());
    renew();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });
  renew();
}

const given = JSON.parse(document.getElementById("data").textContent);
if (Array.isArray(given)) show(given);
else follow(given.views);
