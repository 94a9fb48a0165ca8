import { element, byId, tipOver, on } from "./dom.js";
import { exact, headOf } from "./data.js";
import { state, update, togglePin, looksFrom } from "./state.js";
import { items, rowItem, colItem, vectorOf, wholeMatrices, tokensOf } from "./weights.js";
import { statistics, statisticsOf, describeHead } from "./statistics.js";
import { colours, cssAt, inkAt, scaled, shown, shownStatistic } from "./colour.js";
import { paint, moved } from "./figure.js";
import { picked, second, selection, vectors, fullOf, strongest, pairWeight, namesOf, nameOf, sentenceOf } from "./page.js";
import { sortedHeads } from "./grid.js";
import { matrixFigure, arcsFigure } from "./pictures.js";

// The chosen head in full, with the pinned ones beside it: matrix, arcs or numbers.

const kMostRows = 500;  // of a table
const kSummaries = {
  mean: "The mean over the heads of this layer.", max: "The largest weight of any head of this layer.",
  rollout: "Mean of heads and residual connection, multiplied through the layers up to here.",
};
const panel = byId("panel"), blocks = new Map();  // key -> what makeBlock gives
let blockOrder = "";

function shownKeys() { return [state.head, ...state.pins.filter((key) => key !== state.head)].filter(Boolean); }

function makeBlock(key) {
  const pin = element("button", { onclick: () => togglePin(key) });
  const about = element("p", { class: "faint about" }), canvas = element("canvas", { role: "img" });
  const root = element("div", {}, element("div", { class: "title" }, element("h3", {}, nameOf(key)), pin), about,
    element("div", { class: "scroll" }, canvas));
  const block = { root, pin, about, canvas, figure: null };
  const under = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return block.figure && block.figure.at(event.clientX - left, event.clientY - top);
  };
  tipOver(canvas, (event) => tipOf(under(event)));
  on(canvas, "click", (event) => pick(under(event)));
  return block;
}

function tipOf(at) {
  if (!at) return null;
  const names = [at.from, at.to].filter((i) => i !== undefined).map((i) => items[i].label).join(" → ");
  return [names + "  " + (at.hidden ? "not visible" : at.weight === undefined ? "" : shown(at.weight))];
}

// A click on a cell picks its pair, one on a word that word.
function pick(at) {
  if (!at) return;
  const [near, far] = (looksFrom() ? [at.from, at.to] : [at.to, at.from]).map((i) => (i === undefined ? null : tokensOf(i)));
  if (near) update({ word: near, second: far }); else update(state.word ? { second: far } : { word: far });
}

export function renderPanel() {
  if (state.view === "table" || state.view === "heads") {
    // The button that was pressed keeps the focus.
    const focused = panel.contains(document.activeElement) ? document.activeElement.dataset.sort : null;
    blockOrder = "";
    blocks.clear();
    panel.className = "";
    panel.replaceChildren(...(state.view === "heads" ? headTable() : wordTable()));
    if (focused) panel.querySelector(`[data-sort="${focused}"]`)?.focus();
    return;
  }
  const keys = shownKeys(), many = keys.length > 1, order = keys.join();
  for (const key of blocks.keys()) if (!keys.includes(key)) blocks.delete(key);
  for (const key of keys) if (!blocks.has(key)) blocks.set(key, makeBlock(key));
  if (blockOrder !== order) panel.replaceChildren(...keys.map((key) => blocks.get(key).root));
  blockOrder = order;
  panel.className = many ? "many" : "";
  const wide = panel.clientWidth, width = Math.max(220, many ? Math.floor((wide - 16) / 2) : wide);
  blocks.forEach((block, key) => renderBlock(key, block, width));
}

function renderBlock(key, block, width) {
  const pinned = state.pins.includes(key), values = statisticsOf(headOf(key));
  block.pin.textContent = pinned ? "Unpin" : "Pin";
  block.pin.setAttribute("aria-pressed", pinned);
  block.figure = items.length > 0 ? (state.view === "arcs" ? arcsFigure : matrixFigure)(key, width) : null;
  block.about.textContent = [values ? describeHead(values) : kSummaries[key.split(":")[1]] || "", remarkOn(key, block.figure)].join(" ");
  block.canvas.hidden = !block.figure;
  if (!block.figure) return;
  paint(block.canvas, block.figure);
  block.canvas.setAttribute("aria-label", `${state.view} of ${nameOf(key)}` +
    (selection ? ": " + namesOf(picked) + sentenceOf(key) : ".") + " The table has the numbers.");
}

function remarkOn(key, figure) {
  if (items.length === 0) return "No tokens to show.";
  if (figure) return figure.cut ? "The strongest words only; the table has them all." : figure.hides ? "Grey: not visible, by the model's rule." : "";
  if (state.view === "arcs" && !selection) return "This text is long: pick a word to see its arcs.";
  if (!headOf(key) && !wholeMatrices()) return "Shown for single words only.";
  return "Reading …";
}

const numberCell = (text, more) => element("td", { class: "number", ...more }, text);
const heading = (text) => element("th", { class: "number" }, text);
const plainButton = (text, act, more) => element("button", { class: "plain", onclick: act, ...more }, element("bdi", {}, text));

function tableOf(caption, head, rows) {
  return [element("div", { class: "scroll table" }, element("table", {}, element("caption", {}, caption + (exact ? "" : " Numbers are rounded (≈).")),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))];
}

function wordTable() {
  if (!selection) return [element("p", { class: "faint" }, "Pick a word to see its weights.")];
  const keys = shownKeys(), shownVectors = keys.map((key) => vectors.get(key) || vectorOf(key, selection, state.direction));
  if (!shownVectors[0]) return [element("p", { class: "faint" }, "Reading …")];
  const far = looksFrom() ? colItem : rowItem, weight = (item) => Math.abs(shownVectors[0][item]);
  const order = [...items.keys()].filter((item) => far[items[item].first] >= 0).sort((a, b) => weight(b) - weight(a));
  const rows = order.slice(0, kMostRows).map((item) => element("tr", { class: second.has(item) ? "second" : null },
    numberCell(String(items[item].first)),
    element("th", {}, plainButton(items[item].label, () => update({ second: tokensOf(item) }))),
    ...shownVectors.map((vector, k) => {
      if (!vector) return numberCell("…");
      const t = scaled(vector[item], fullOf(keys[k])), cell = numberCell(shown(vector[item]), { class: "number weight" });
      Object.assign(cell.style, { background: cssAt(t), color: inkAt(t) });
      return cell;
    })));
  const caption = `${namesOf(picked)}, ${looksFrom() ? "looking at" : "looked at by"} …` +
    (items.length > kMostRows ? ` The ${kMostRows} strongest; the CSV has all.` : "");
  return tableOf(caption, [heading("token"), element("th", {}, "word"), ...keys.map(heading)], rows);
}

function headTable() {
  const names = Object.entries(statistics), withPair = selection && second.size > 0;
  const sorter = (name, label, title) => element("th", { class: "number", title, "aria-sort": state.sort === name ? "descending" : null },
    plainButton(label + (state.sort === name ? " ↓" : ""), () => update({ sort: name }), { "data-sort": name }));
  const rows = sortedHeads().map(({ key }) => {
    const vector = vectors.get(key), values = statisticsOf(headOf(key)) || {}, [top] = vector ? strongest(vector, 1) : [];
    return element("tr", { class: key === state.head ? "current" : null },
      element("th", {}, plainButton(key, () => update({ head: key }))),
      ...(selection ? [element("td", {}, element("bdi", {}, items[top]?.label || "")), numberCell(items[top] ? shown(vector[top]) : "")] : []),
      ...(withPair ? [numberCell(vector ? shown(pairWeight(vector)) : "")] : []),
      ...names.map(([name, about]) => numberCell(shownStatistic(values[name], about))));
  });
  return tableOf("All heads" + (selection ? ` for ${namesOf(picked)}` : "") + "; statistics are means over all tokens.",
    [sorter("layer", "head"), ...(selection ? [element("th", {}, "strongest"), heading("weight")] : []), ...(withPair ? [sorter("pair", "second word")] : []),
      ...names.map(([name, { name: label, what, unit }]) => sorter(name, label, `${what} (${unit})`))], rows);
}

// The matrix or the arcs of all shown heads side by side, for saving.
export function panelFigure() {
  const shapes = [];
  let x = 16, high = 0;
  for (const key of shownKeys()) {
    const figure = (state.view === "arcs" ? arcsFigure : matrixFigure)(key, 460);
    if (!figure) continue;
    shapes.push({ type: "text", x, y: 18, text: nameOf(key), size: 14, fill: colours.ink, bold: true }, ...moved(figure, x, 34));
    x += figure.width + 24;
    high = Math.max(high, figure.height);
  }
  return { width: Math.ceil(x), height: Math.ceil(high + 50), shapes };
}
