"use strict";
// The seven charts of a table, as SVG. Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart.

const COLOURS = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#F0E442"];
const ROOM = Math.min(document.documentElement.clientWidth, 1200) - 32; // what a page has beside its margins
const WIDTH = Math.max(300, Math.min(720, ROOM)), HEIGHT = 280, LEFT = 72, BELOW = 44, ABOVE = 10, RIGHT = 12;
const CELL = 14, LANE = 18, NAME = 130;
const LABELS = 14; // beside an axis of names, at most

// What a shape says under the pointer is written when the pointer comes: a map has ten thousand cells.
const tips = new WeakMap();

const shape = (tag, attributes, tip) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (tip) tips.set(made, tip);
  return made;
};
const text = (x, y, words, anchor = "start") =>
  Object.assign(shape("text", { x, y, "text-anchor": anchor }), { textContent: words });
const cut = (words, length) => (words.length > length ? `${words.slice(0, length - 1)}…` : words);
const distinct = (values) => [...new Set(values)];

function canvas(width, height, label) {
  const made = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  made.addEventListener("pointerover", ({ target }) => {
    if (tips.has(target)) target.append(Object.assign(shape("title", {}), { textContent: tips.get(target)() }));
    tips.delete(target);
  });
  return made;
}

// Colour by label: the first ones have colours of their own, and names in the key. What stands in brackets is no job.
const isJob = (label) => !String(label).startsWith("(");

function colours(table, name) {
  const labels = name ? distinct(table.rows.map((row) => row[at(table, name)])).filter((label) => label != null) : [];
  const numbers = new Map(labels.filter(isJob).map((label, number) => [label, number]));
  const of = (label) => (isJob(label) ? COLOURS[(numbers.get(label) ?? 0) % COLOURS.length] : "var(--soft)");
  return { labels, of };
}

function colourKey(entries) {
  const list = element("ul", null, { class: "key" });
  for (const [name, colour] of entries.slice(0, 20)) {
    const item = list.appendChild(element("li"));
    const mark = item.appendChild(shape("svg", { width: 12, height: 12, "aria-hidden": "true" }));
    mark.append(shape("rect", { width: 12, height: 12, fill: colour }));
    item.append(words(name));
  }
  if (entries.length > 20) list.append(element("li", `and ${digits(entries.length - 20)} more`));
  return list;
}

const tip = (table, row) => () =>
  table.columns.map((column, index) => `${column.name}: ${words(row[index], column.unit)}`).join("\n");

function drawnChart(chart, table) {
  const figure = element("figure");
  const drawn = { map: drawnMap, gantt: drawnGantt }[chart.kind] ?? drawnOverX;
  const { picture, key } = drawn(chart, table);
  const scroll = element("div", null, { class: "scroll", tabindex: 0, role: "region", "aria-label": `chart of ${table.name}` });
  scroll.append(picture);
  figure.append(scroll);
  if (key.length) figure.append(colourKey(key));
  if (table.note) figure.append(element("figcaption", table.note));
  return figure;
}

// A cell for each row, in the lane of its node; lanes of one group stand beside each other as far as there is room.
function drawnMap(chart, table) {
  const [lane, group, x, label, fill] = [chart.lane, chart.group, chart.x, chart.label, chart.y?.[0]].map((name) => at(table, name ?? ""));
  const paint = colours(table, chart.label);
  const groups = new Map();
  for (const row of table.rows) {
    const lanes = groups.get(row[group] ?? "") ?? groups.set(row[group] ?? "", new Map()).get(row[group] ?? "");
    (lanes.get(row[lane]) ?? lanes.set(row[lane], []).get(row[lane])).push(row);
  }
  const most = [...groups.values()].flatMap((lanes) => [...lanes.values()]).reduce((width, cells) => Math.max(width, cells.length), 1);
  const step = NAME + most * CELL + 16;
  const across = Math.max(1, Math.floor(ROOM / step));
  const picture = canvas(across * step, 10, `${table.name}, a cell for each row of the table`);
  let y = 0;
  for (const [name, lanes] of groups) {
    if (name !== "") picture.append(text(0, (y += LANE) - 4, cut(String(name), 60)));
    [...lanes].forEach(([node, cells], number) => {
      const left = (number % across) * step;
      const top = y + Math.floor(number / across) * LANE;
      picture.append(text(left, top + 12, cut(String(node), 18)));
      cells.forEach((row, index) => {
        const place = { x: left + NAME + index * CELL, y: top + 1, width: CELL - 2, height: CELL };
        const part = fill < 0 || !row[fill] ? 1 : Math.min(1, row[fill] / 1000); // nothing is held of what is out
        if (row[label] == null || part < 1) picture.append(shape("rect", { ...place, class: "free" }, tip(table, row)));
        if (row[label] == null) return;
        const full = { ...place, y: place.y + CELL * (1 - part), height: CELL * part };
        picture.append(shape("rect", { ...full, fill: paint.of(row[label]) }, tip(table, row)));
      });
    });
    y += Math.ceil(lanes.size / across) * LANE + 6;
  }
  picture.setAttribute("height", y);
  picture.setAttribute("viewBox", `0 0 ${picture.getAttribute("width")} ${y}`);
  return { picture, key: paint.labels.map((one) => [one, paint.of(one)]) };
}

function drawnGantt(chart, table) {
  const [lane, x, until, label] = [chart.lane, chart.x, chart.until, chart.label].map((name) => at(table, name ?? ""));
  const paint = colours(table, chart.label);
  const lanes = distinct(table.rows.map((row) => row[lane]));
  const height = lanes.length * LANE + BELOW;
  const picture = canvas(WIDTH, height, `${table.name}: bars over ${chart.x}`);
  const end = table.rows.reduce((latest, row) => Math.max(latest, row[until] ?? 0), 0);
  const scale = linear(Math.min(0, ...table.rows.slice(0, 1).map((row) => row[x])), end, NAME, WIDTH - RIGHT);
  xAxis(picture, scale, height - BELOW, 0, table.columns[x]);
  lanes.forEach((name, number) => picture.append(text(0, number * LANE + 13, cut(String(name), 18))));
  const top = new Map(lanes.map((name, number) => [name, number * LANE]));
  for (const row of table.rows) {
    const stop = scale(row[until] ?? end);
    const place = { x: scale(row[x]), y: top.get(row[lane]) + 2, width: Math.max(1, stop - scale(row[x])), height: LANE - 4 };
    picture.append(shape("rect", { ...place, fill: paint.of(row[label]), "fill-opacity": 0.85 }, tip(table, row)));
  }
  return { picture, key: paint.labels.map((one) => [one, paint.of(one)]) };
}

const linear = (from, to, low, high) => {
  const span = to > from ? to - from : 1;
  const scale = (value) => low + ((value - from) / span) * (high - low);
  return Object.assign(scale, { from, to: from + span });
};

// Round steps of 1, 2 or 5 times a power of ten, at most six.
function ticks(from, to) {
  const raw = (to - from) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const found = [];
  for (let tick = Math.ceil(from / step); tick * step <= to * 1.0001; tick += 1) found.push(tick * step);
  return found;
}

function xAxis(picture, scale, bottom, top, column) {
  for (const tick of ticks(scale.from, scale.to)) {
    picture.append(shape("line", { x1: scale(tick), x2: scale(tick), y1: top, y2: bottom, class: "axis" }));
    picture.append(text(scale(tick), bottom + 16, words(tick, column.unit), "middle"));
  }
  picture.append(text((scale(scale.from) + scale(scale.to)) / 2, bottom + 36, column.name, "middle"));
}

function yAxis(picture, scale, column, name) {
  for (const tick of ticks(scale.from, scale.to)) {
    picture.append(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: scale(tick), y2: scale(tick), class: "axis" }));
    picture.append(text(LEFT - 6, scale(tick) + 4, words(tick, column.unit), "end"));
  }
  picture.append(text(2, ABOVE + 2, name));
}

// Bars, lines, steps, intervals and points over x, apart by label, or by the column where there is no label.
function drawnOverX(chart, table) {
  const x = at(table, chart.x);
  const label = at(table, chart.label ?? "");
  const columns = chart.y.map((name) => at(table, name));
  const isInterval = chart.kind === "intervals";
  const numeric = chart.kind !== "bars" && isNumeric(table, x);
  const names = numeric ? [] : distinct(table.rows.map((row) => row[x]));
  const where = (row) => (numeric ? row[x] : names.indexOf(row[x]));
  const rows = table.rows.filter((row) => row[x] != null && columns.some((column) => row[column] != null));
  const values = rows.flatMap((row) => columns.map((column) => row[column])).filter((value) => value != null);
  const spots = rows.map(where);
  const least = (list, start) => list.reduce((low, value) => Math.min(low, value), start);
  const largest = (list, start) => list.reduce((high, value) => Math.max(high, value), start);
  const pad = numeric ? 0 : 0.5;
  const across = linear(least(spots, Infinity) - pad, largest(spots, -Infinity) + pad, LEFT, WIDTH - RIGHT);
  const up = linear(least(values, 0), largest(values, 0), HEIGHT - BELOW, ABOVE + 16);
  const picture = canvas(WIDTH, HEIGHT, `${table.name}: ${chart.y.join(", ")} over ${chart.x}`);
  yAxis(picture, up, table.columns[columns[0]], chart.y.join(", "));
  if (numeric) xAxis(picture, across, HEIGHT - BELOW, ABOVE, table.columns[x]);
  else nameAxis(picture, across, names, table.columns[x]);

  const parts = label < 0 ? (isInterval ? [null] : columns) : distinct(rows.map((row) => row[label]));
  const series = parts.map((part, number) => ({
    name: label < 0 ? (part === null ? "" : table.columns[part].name) : part,
    colour: COLOURS[number % COLOURS.length],
    rows: label < 0 ? rows : rows.filter((row) => row[label] === part),
    column: label < 0 && !isInterval ? part : columns[0],
    number,
  }));
  for (const one of series) drawSeries(picture, chart.kind, one, { where, across, up, upper: columns[1], of: series.length, table });
  return { picture, key: series.length > 1 ? series.map((one) => [one.name, one.colour]) : [] };
}

function nameAxis(picture, scale, names, column) {
  const every = Math.ceil(names.length / LABELS);
  const room = Math.floor((WIDTH - LEFT) / Math.min(names.length, LABELS) / 7);
  names.forEach((name, number) => {
    if (number % every === 0) picture.append(text(scale(number), HEIGHT - BELOW + 16, cut(words(name, column.unit), room), "middle"));
  });
  picture.append(text((LEFT + WIDTH) / 2, HEIGHT - 8, column.name, "middle"));
}

function drawSeries(picture, kind, one, { where, across, up, upper, of, table }) {
  const there = one.rows.filter((row) => row[one.column] != null);
  const points = there.map((row) => [across(where(row)), up(row[one.column])]);
  if (kind === "lines" || kind === "steps") {
    const path = points.map(([x, y], i) => (i === 0 ? `M${x},${y}` : kind === "steps" ? `H${x}V${y}` : `L${x},${y}`)).join("");
    picture.append(shape("path", { d: path, fill: "none", stroke: one.colour, "stroke-width": 2 }));
  }
  const width = Math.min(40, (0.8 * (across(1) - across(0))) / of);
  there.forEach((row, index) => {
    const [x, y] = points[index];
    const left = x + (one.number - of / 2) * width;
    const mark = {
      bars: () => shape("rect", { x: left, y: Math.min(y, up(0)), width, height: Math.abs(up(0) - y), fill: one.colour }, tip(table, row)),
      intervals: () => shape("line", { x1: x, x2: x, y1: y, y2: up(row[upper] ?? up.to), stroke: one.colour, "stroke-width": 6, "stroke-linecap": "round" }, tip(table, row)),
      steps: () => null,
    }[kind] ?? (() => shape("circle", { cx: x, cy: y, r: 4, fill: one.colour }, tip(table, row)));
    const made = mark();
    if (made) picture.append(made);
  });
}
