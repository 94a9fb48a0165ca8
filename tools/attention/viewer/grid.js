import { element, byId, tipOver, on, isChord } from "./dom.js";
import { header, heads, headOf } from "./data.js";
import { state, update, togglePin, isDiff } from "./state.js";
import { items, places, thumbnailOf } from "./weights.js";
import { statistics, statisticsOf } from "./statistics.js";
import { colours, cssAt, scaled, bare, shownStatistic } from "./colour.js";
import { paint, moved, fitLabel } from "./figure.js";
import { picked, second, selection, vectors, fullOf, heatMap, strongest, pairWeight, nameOf, listStrongest } from "./page.js";

// Every head of every layer at once. With a word picked, a cell's bars are the weights between that
// word and each word of the text, in the order of its line; without one, a cell is a small matrix.

const kBarsHeight = 30, kThumbnail = 44, kGap = 4, kNames = 24;
const grid = byId("grid"), cells = new Map();  // key -> {button, canvas, name, top}
let columns = 1, arrangedAs = "";

function statisticLines(key) {
  const values = statisticsOf(headOf(key));
  return values ? Object.entries(statistics).map(([name, about]) => `${about.name}: ${shownStatistic(values[name], about)}` +
    (about.unit === "%" ? "" : " " + about.unit)) : [];
}

on(grid, "click", (event) => {
  const cell = event.target.closest(".cell");
  if (!cell) return;
  if (event.shiftKey) togglePin(cell.dataset.key); else update({ head: cell.dataset.key });
});
on(grid, "keydown", (event) => {
  const all = [...grid.querySelectorAll(".cell")], at = all.indexOf(document.activeElement);
  if (at < 0 || isChord(event)) return;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key], cell = all[at + step];
  if (!step) return;
  event.preventDefault();
  if (cell) { cell.focus(); update({ head: cell.dataset.key }); }
});
tipOver(grid, (event) => {
  const cell = event.target.closest(".cell"), key = cell && cell.dataset.key, vector = vectors.get(key);
  return cell && [nameOf(key), ...(vector ? [listStrongest(vector, 4)] : []), ...statisticLines(key)];
});

// Heads in the chosen order, largest first: [{key, value}].
export function sortedHeads() {
  if (state.sort === "layer") return heads.map(({ key }) => ({ key }));
  const valueOf = (head) => {
    const vector = vectors.get(head.key);
    if (state.sort === "pair") return vector ? pairWeight(vector) : undefined;
    return (statisticsOf(head) || {})[state.sort];
  };
  const size = ({ value }) => (value === undefined ? -1 : Math.abs(value));
  return heads.map((head) => ({ key: head.key, value: valueOf(head) })).sort((a, b) => size(b) - size(a));
}

function cellOf(key) {
  if (!cells.has(key)) {
    const canvas = element("canvas"), name = element("span", { class: "name" }), top = element("span", { class: "top-word" });
    const button = element("button", { class: "cell", "data-key": key }, canvas, element("span", { class: "caption" }, name, top));
    cells.set(key, { button, canvas, name, top });
  }
  return cells.get(key).button;
}

function arrange(sorted) {
  const byLayer = state.sort === "layer", numbers = [...new Set(header.heads.flat())].sort((a, b) => a - b);
  columns = byLayer ? numbers.length + 1 : Math.min(numbers.length, Math.floor(grid.parentElement.clientWidth / 78));
  const order = [byLayer, state.summary, ...sorted.map(({ key }) => key)].join();
  if (order === arrangedAs) return;
  arrangedAs = order;
  grid.className = byLayer ? "by-layer" : "";
  if (!byLayer) { grid.replaceChildren(...sorted.map(({ key }) => cellOf(key))); return; }
  const axis = (name) => element("span", { class: "axis" }, String(name)), children = ["", ...numbers, state.summary].map(axis);
  header.layers.forEach((layer, i) => {
    const summary = cellOf(layer + ":" + state.summary);
    summary.classList.add("summary");
    children.push(axis(layer), ...numbers.map((n) => (header.heads[i].includes(n) ? cellOf(layer + ":" + n) : axis(""))), summary);
  });
  grid.replaceChildren(...children);
}

// The picture of one head, {width, height, shapes}.
function cellFigure(key, width) {
  if (selection) return barsFigure(vectors.get(key), fullOf(key, true), width);
  const small = items.length > 0 && thumbnailOf(key, kThumbnail), side = Math.min(width, kThumbnail + 12);
  return { width, height: side, shapes: small ? [heatMap(small, (width - side) / 2, 0, side, side)] : [] };
}

function barsFigure(vector, full, width) {
  const shapes = [], figure = { width, height: kBarsHeight, shapes };
  if (!vector) return figure;
  const signed = isDiff(), base = signed ? kBarsHeight / 2 : kBarsHeight - 3, room = signed ? base - 1 : base;
  const bins = Math.min(vector.length, Math.floor(width / 1.5)), step = width / bins, wide = Math.max(step - (step > 4 ? 1 : 0), 1);
  const best = new Float32Array(bins), binOf = (i) => Math.floor(places[i] * bins / vector.length);
  vector.forEach((value, i) => { if (Math.abs(value) > Math.abs(best[binOf(i)])) best[binOf(i)] = value; });
  const bar = (bin, y, height, fill) => shapes.push({ type: "rect", x: bin * step, y, width: wide, height, fill });
  const marked = new Set([...second].map(binOf));
  for (const bin of marked) bar(bin, 0, kBarsHeight, colours.pale);
  shapes.push({ type: "rect", x: 0, y: base, width, height: 1, fill: colours.line });
  best.forEach((value, bin) => {
    const t = scaled(value, full), height = Math.max(Math.abs(t) * room, 1);
    // Pale bars would vanish on the paper, so the colour of a bar starts at a third.
    if (t) bar(bin, t < 0 ? base : base - height, height, marked.has(bin) ? colours.second : cssAt(signed ? t : 0.35 + 0.65 * t));
  });
  for (const bin of new Set([...picked].map(binOf))) bar(bin, kBarsHeight - 2, 2, colours.ink);
  return figure;
}

function captionOf(key, value) {
  const vector = vectors.get(key);
  if (value !== undefined) return state.sort === "pair" ? bare(value) : shownStatistic(value, statistics[state.sort]);
  if (!vector) return "";
  if (second.size > 0) return bare(pairWeight(vector));
  // Special tokens often get most of it, and say least.
  const [top] = strongest(vector.map((weight, i) => (items[i].special ? 0 : weight)), 1);
  return top === undefined ? "" : items[top].label;
}

export function renderGrid() {
  const sorted = sortedHeads(), values = new Map(sorted.map((head) => [head.key, head.value])), byLayer = state.sort === "layer";
  arrange(sorted);
  const room = grid.parentElement.clientWidth - 32 - (byLayer ? kNames : 0) - kGap * columns;
  const width = Math.max(38, Math.min(110, Math.floor(room / Math.max(1, columns))));
  grid.style.setProperty("--columns", columns);
  grid.style.setProperty("--cell", width + "px");
  let tabStop = grid.querySelector(".cell");
  for (const [key, { button, canvas, name, top }] of cells) {
    if (!button.isConnected) continue;
    paint(canvas, cellFigure(key, width));
    const caption = captionOf(key, values.get(key));
    name.textContent = byLayer ? "" : key;
    top.textContent = caption;
    if (key === state.head) tabStop = button;
    button.classList.toggle("pinned", state.pins.includes(key));
    button.setAttribute("aria-pressed", key === state.head);
    button.setAttribute("aria-label", nameOf(key) + (caption ? ": " + caption : ""));
    button.tabIndex = -1;
  }
  if (tabStop) tabStop.tabIndex = 0;
}

// All cells as one figure, for saving.
export function gridFigure() {
  const width = 90, shapes = [];
  let y = 12, high = 0;
  [...grid.querySelectorAll(".cell")].forEach((button, i) => {
    const { key } = button.dataset, cell = cellFigure(key, width), x = 12 + (i % columns) * (width + 10);
    high = cell.height + 30;
    if (i > 0 && i % columns === 0) y += high;
    const text = fitLabel(`${key} ${cells.get(key).top.textContent}`, width, 10);
    shapes.push(...moved(cell, x, y), { type: "text", x, y: y + cell.height + 9, text, size: 10, fill: colours.ink });
  });
  return { width: 14 + columns * (width + 10), height: y + high + 4, shapes };
}
