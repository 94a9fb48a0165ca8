import { element, byId, tipOver } from "./dom.js";
import { state, update } from "./state.js";
import { scaled } from "./colour.js";
import { paint, moved, fitLabel } from "./figure.js";
import { statisticsOf } from "./statistics.js";

// Every head of every layer at once. With a word picked, a cell's bars are the weights between that
// word and each word of the text; without one, a cell is a small matrix.

const kBarsHeight = 30, kThumbnail = 44, kGap = 4, kNames = 24;

export class Grid {
  constructor(app) {
    this.app = app;
    this.root = byId("grid");
    this.cells = new Map();  // key -> {button, canvas, name, top}
    this.order = "";
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("keydown", (event) => this.key(event));
    tipOver(this.root, (event) => {
      const cell = event.target.closest(".cell");
      return cell && this.tip(cell.dataset.key);
    });
  }

  click(event) {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    if (event.shiftKey) this.app.togglePin(cell.dataset.key);
    else update({ head: cell.dataset.key });
  }

  key(event) {
    const cells = [...this.root.querySelectorAll(".cell")], at = cells.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const wide = Math.max(1, this.columns);
    const target = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + wide, ArrowUp: at - wide,
      Home: at - at % wide, End: at - at % wide + wide - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    if (cells[target]) { cells[target].focus(); update({ head: cells[target].dataset.key }); }
  }

  tip(key) {
    const { app } = this, { picture, weights, numbers } = app;
    const lines = [app.nameOf(key)], vector = picture.vectors.get(key), head = weights.headOf(key);
    if (vector) {
      lines.push(picture.strongest(vector, 4).map((i) => `${weights.items[i].label} ${numbers.show(vector[i])}`).join(",  "));
    }
    const statistics = head && statisticsOf(weights, head);
    if (statistics) {
      for (const [name, about] of Object.entries(app.statistics)) {
        lines.push(`${about.name} ${numbers.statistic(statistics[name], about)}`);
      }
    }
    return lines;
  }

  // Heads in the chosen order, best first: [{key, value}].
  sorted() {
    const { app } = this, { weights, picture, store } = app;
    if (state.sort === "layer") return store.heads.map(({ key }) => ({ key }));
    const valued = store.heads.map((head) => {
      let value;
      if (state.sort === "pair") {
        const vector = picture.vectors.get(head.key);
        value = vector ? picture.pairWeight(vector) : undefined;
      } else {
        value = (statisticsOf(weights, head) || {})[state.sort];
      }
      return { key: head.key, value };
    });
    return valued.sort((a, b) => Math.abs(b.value ?? -1) - Math.abs(a.value ?? -1));
  }

  makeCell(key) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const name = element("span", { class: "name" }), top = element("span", { class: "top-word" });
    const button = element("button", { type: "button", class: "cell", "data-key": key, tabindex: -1 },
      canvas, element("span", { class: "caption" }, name, top));
    const cell = { button, canvas, name, top };
    this.cells.set(key, cell);
    return cell;
  }

  arrange(sorted) {
    const { header } = this.app.store, byLayer = state.sort === "layer";
    const numbers = [...new Set(header.heads.flat())].sort((a, b) => a - b);
    const summary = byLayer && header.layers.length > 0;
    const order = [state.sort === "layer" ? state.summary : "sorted", ...sorted.map(({ key }) => key)].join();
    this.columns = numbers.length + (summary ? 1 : 0);
    if (order === this.order) return;
    this.order = order;
    const cellOf = (key) => (this.cells.get(key) || this.makeCell(key)).button;
    const children = [];
    if (byLayer) {
      children.push(element("span", { class: "corner", title: "rows are layers, columns are heads" }));
      for (const number of numbers) children.push(element("span", { class: "axis" }, String(number)));
      children.push(element("span", { class: "axis" }, state.summary));
      header.layers.forEach((layer, i) => {
        children.push(element("span", { class: "axis layer" }, String(layer)));
        for (const number of numbers) {
          children.push(header.heads[i].includes(number) ? cellOf(layer + ":" + number) : element("span"));
        }
        const last = cellOf(layer + ":" + state.summary);
        last.classList.add("summary");
        children.push(last);
      });
    } else {
      children.push(...sorted.map(({ key }) => cellOf(key)));
    }
    this.root.className = byLayer ? "by-layer" : "sorted";
    this.root.replaceChildren(...children);
  }

  cellWidth() {
    const names = state.sort === "layer" ? kNames : 0;
    const room = this.root.parentElement.clientWidth - 32 - names - kGap * (this.columns + (names ? 1 : 0));
    return Math.max(38, Math.min(110, Math.floor(room / Math.max(1, this.columns))));
  }

  // The picture of one head, {width, height, shapes}.
  figure(key, width) {
    const { picture, weights } = this.app;
    if (picture.selection) return this.bars(picture.vectors.get(key), picture.fullOf(key, true), width);
    const bins = Math.min(kThumbnail, weights.items.length);
    const small = bins > 0 ? weights.thumbnail(key, bins) : null;
    const side = Math.min(width, kThumbnail + 12), shapes = [];
    if (small) shapes.push(this.app.heatMap(small, (width - side) / 2, 0, side, side));
    return { width, height: side, shapes };
  }

  bars(vector, full, width) {
    const { colours, weights, picture } = this.app, shapes = [];
    if (!vector) return { width, height: kBarsHeight, shapes };
    const signed = weights.run === "diff", base = signed ? kBarsHeight / 2 : kBarsHeight - 3;
    const most = Math.min(vector.length, Math.floor(width / 1.5)), step = width / most;
    const best = new Float32Array(most), second = new Uint8Array(most), picked = new Uint8Array(most);
    for (let i = 0; i < vector.length; ++i) {
      const bin = Math.floor(i * most / vector.length);
      if (Math.abs(vector[i]) > Math.abs(best[bin])) best[bin] = vector[i];
      second[bin] |= picture.second.has(i);
      picked[bin] |= picture.picked.has(i);
    }
    shapes.push({ type: "rect", x: 0, y: base, width, height: 1, fill: colours.line });
    for (let bin = 0; bin < most; ++bin) {
      const x = bin * step, wide = Math.max(step - (step > 4 ? 1 : 0), 1), t = scaled(best[bin], full, state);
      const high = Math.max(Math.abs(t) * (signed ? base - 1 : base), t ? 1 : 0);
      if (second[bin]) shapes.push({ type: "rect", x, y: 0, width: wide, height: kBarsHeight, fill: colours.secondPale });
      // Pale bars would vanish on the paper, so the colour of a bar starts at a third.
      const fill = second[bin] ? colours.second : signed ? colours.css(t, true) : colours.css(0.35 + 0.65 * t);
      if (high) shapes.push({ type: "rect", x, y: t < 0 ? base : base - high, width: wide, height: high, fill });
      if (picked[bin]) shapes.push({ type: "rect", x, y: kBarsHeight - 2, width: wide, height: 2, fill: colours.ink });
    }
    return { width, height: kBarsHeight, shapes };
  }

  caption(key, value) {
    const { app } = this, { picture, weights, numbers } = app, vector = picture.vectors.get(key);
    if (value !== undefined) {
      return state.sort === "pair" ? numbers.bare(value) : numbers.statistic(value, app.statistics[state.sort]);
    }
    if (!vector) return "";
    if (state.second) return numbers.bare(picture.pairWeight(vector));
    // Special tokens often get most of it, and say least.
    const [top] = picture.strongest(vector.map((value, i) => (weights.items[i].special ? 0 : value)), 1);
    return top === undefined ? "" : weights.items[top].label;
  }

  render() {
    const sorted = this.sorted(), { app } = this, values = new Map(sorted.map((s) => [s.key, s.value]));
    this.arrange(sorted);
    const width = this.cellWidth();
    this.root.style.setProperty("--columns", this.columns);
    this.root.style.setProperty("--cell", width + "px");
    for (const [key, cell] of this.cells) {
      if (!cell.button.isConnected) continue;
      paint(cell.canvas, this.figure(key, width));
      const caption = this.caption(key, values.get(key));
      cell.name.textContent = state.sort === "layer" ? "" : key;
      cell.top.textContent = caption;
      const current = key === state.head;
      cell.button.classList.toggle("current", current);
      cell.button.classList.toggle("pinned", state.pins.includes(key));
      cell.button.setAttribute("aria-pressed", current);
      cell.button.setAttribute("aria-label", app.nameOf(key) + (caption ? ": " + caption : ""));
      cell.button.tabIndex = current ? 0 : -1;
    }
    if (!this.root.querySelector('.cell[tabindex="0"]')) {
      const first = this.root.querySelector(".cell");
      if (first) first.tabIndex = 0;
    }
  }

  // All cells as one figure, for saving.
  wholeFigure() {
    const { colours } = this.app, width = 90, shapes = [];
    const buttons = [...this.root.querySelectorAll(".cell")], rows = Math.ceil(buttons.length / this.columns);
    let high = 0;
    buttons.forEach((button, i) => {
      const key = button.dataset.key, cell = this.figure(key, width);
      high = cell.height + 30;
      const x = 12 + (i % this.columns) * (width + 10), y = 12 + Math.floor(i / this.columns) * high;
      shapes.push(...moved(cell, x, y));
      shapes.push({ type: "text", x, y: y + cell.height + 9, text: fitLabel(`${key} ${this.cells.get(key).top.textContent}`, width, 10),
        size: 10, fill: colours.ink });
    });
    return { width: 14 + this.columns * (width + 10), height: 24 + rows * high, shapes };
  }
}
