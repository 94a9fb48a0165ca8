import { element, byId, showTip } from "./dom.js";
import { state, update } from "./state.js";
import { scaled } from "./colour.js";
import { paint } from "./figure.js";
import { kWholeMatrices } from "./weights.js";
import { statisticsOf, describeHead } from "./statistics.js";
import { matrixFigure, arcsFigure } from "./pictures.js";

// The chosen head in full, with the pinned ones beside it: matrix, arcs or numbers.

const kMostRows = 200;  // rows of a table before "show all"

export class Panel {
  constructor(app) {
    this.app = app;
    this.root = byId("panel");
    this.blocks = new Map();  // key -> {root, body, ...}
    this.all = false;
  }

  keys() { return [state.head, ...state.pins.filter((key) => key !== state.head)]; }

  makeBlock(key) {
    const { app } = this, isPinned = () => state.pins.includes(key);
    const pin = element("button", { type: "button", class: "pin", onclick: () => app.togglePin(key) });
    const about = element("p", { class: "faint about" }), canvas = element("canvas", { role: "img" });
    const message = element("p", { class: "faint about" });
    const root = element("div", { class: "head" },
      element("div", { class: "title" }, element("h3", {}, app.nameOf(key)), pin), about, message,
      element("div", { class: "scroll" }, canvas));
    const block = { key, root, pin, about, canvas, message, isPinned, figure: null };
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return block.figure && block.figure.at(event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener("pointermove", (event) => showTip(event, ...this.tip(key, place(event))));
    canvas.addEventListener("pointerleave", (event) => showTip(event));
    canvas.addEventListener("click", (event) => this.pick(place(event)));
    return block;
  }

  tip(key, at) {
    const { weights, picture, numbers } = this.app;
    if (!at) return [];
    const label = (item) => weights.items[item].label;
    if (at.weight !== undefined) {
      return [`${label(at.from)} → ${label(at.to)}  ${at.masked ? "not visible" : numbers.show(at.weight)}`];
    }
    const item = at.from ?? at.to, vector = picture.vectors.get(key);
    const isFar = (at.from === undefined) === (state.direction === "from");
    return [vector && isFar ? `${label(item)}  ${numbers.show(vector[item])}` : label(item)];
  }

  // A click on a cell picks its pair, one on a word that word.
  pick(at) {
    if (!at) return;
    const { items } = this.app.weights, range = (i) => (i === undefined ? null : [items[i].first, items[i].last]);
    const [near, far] = state.direction === "from" ? [at.from, at.to] : [at.to, at.from];
    if (near === undefined) update(state.word ? { second: range(far) } : { word: range(far) });
    else update({ word: range(near), second: range(far) });
  }

  render() {
    const isTable = state.view === "table" || state.view === "heads";
    if (isTable) { this.renderTable(); return; }
    const keys = this.keys(), wide = this.root.clientWidth, many = keys.length > 1;
    const width = Math.max(220, many ? Math.floor((wide - 16) / 2) : wide);
    for (const key of this.blocks.keys()) if (!keys.includes(key)) this.blocks.delete(key);
    for (const key of keys) if (!this.blocks.has(key)) this.blocks.set(key, this.makeBlock(key));
    const order = keys.join();
    if (this.order !== order || !this.root.querySelector(".head")) {
      this.order = order;
      this.root.className = many ? "many" : "";
      this.root.replaceChildren(...keys.map((key) => this.blocks.get(key).root));
    }
    for (const block of this.blocks.values()) this.renderBlock(block, width);
  }

  renderBlock(block, width) {
    const { app } = this, { weights, picture, numbers } = app, { key } = block;
    block.pin.textContent = block.isPinned() ? "Unpin" : "Pin";
    block.pin.setAttribute("aria-pressed", block.isPinned());
    const head = weights.headOf(key), statistics = head && statisticsOf(weights, head);
    block.about.textContent = statistics ? describeHead(statistics, weights.store.size) : app.aboutSummary(key);
    block.about.title = statistics ? Object.entries(app.statistics).map(([name, about]) =>
      `${about.name}: ${numbers.statistic(statistics[name], about)}`).join("\n") : "";
    block.figure = weights.items.length === 0 ? null
      : (state.view === "arcs" ? arcsFigure : matrixFigure)(app, key, width);
    block.canvas.hidden = block.figure === null;
    block.message.textContent = this.messageOf(block);
    if (!block.figure) return;
    paint(block.canvas, block.figure);
    const vector = picture.vectors.get(key);
    block.canvas.setAttribute("aria-label", `${state.view} of ${app.nameOf(key)}` +
      (vector ? ": " + app.sentence(key) : "") + ". The table view has the numbers.");
  }

  messageOf({ key, figure }) {
    const { weights } = this.app;
    if (weights.items.length === 0) return "No tokens to show.";
    if (!figure && state.view === "arcs" && !state.word) return "This text is long: pick a word to see its arcs.";
    if (!figure && !weights.headOf(key) && (weights.store.served || weights.store.size > kWholeMatrices)) {
      return "Only single words of this summary are shown for a text of this length.";
    }
    if (!figure) return "Reading …";
    if (figure.cut) return "The strongest words only; the table has them all.";
    return figure.masked ? "Grey: not visible to the word, by the model's own rule." : "";
  }

  renderTable() {
    const { app } = this;
    this.order = "";
    this.blocks.clear();
    this.root.className = "";
    const table = state.view === "heads" ? this.headTable() : this.wordTable();
    const old = this.root.querySelector("table");
    const sameTable = old && document.activeElement && old.contains(document.activeElement);
    const focused = sameTable ? document.activeElement.dataset.sort : null;
    this.root.replaceChildren(...table);
    if (focused) this.root.querySelector(`[data-sort="${focused}"]`)?.focus();
  }

  wordTable() {
    const { app } = this, { weights, picture, numbers, colours } = app, signed = weights.run === "diff";
    if (!picture.selection) return [element("p", { class: "faint" }, "Pick a word to see its weights as numbers.")];
    const keys = this.keys(), vectors = keys.map((key) => picture.vectors.get(key) || app.vectorNow(key));
    if (!vectors[0]) return [element("p", { class: "faint" }, "Reading …")];
    const order = picture.strongest(vectors[0], weights.items.length, true);
    const shown = this.all ? order : order.slice(0, kMostRows);
    const rows = shown.map((item) => element("tr", { class: picture.second.has(item) ? "second" : null },
      element("td", { class: "number" }, String(weights.items[item].first)),
      element("th", { scope: "row" }, element("button", { type: "button", class: "plain", title: "second word",
        onclick: () => update({ second: [weights.items[item].first, weights.items[item].last] }) },
      element("bdi", {}, weights.items[item].label))),
      ...vectors.map((vector, k) => {
        if (!vector) return element("td", {}, "…");
        const t = scaled(vector[item], picture.fullOf(keys[k]), state);
        const cell = element("td", { class: "number weight" }, numbers.show(vector[item]));
        cell.style.background = colours.css(t, signed);
        cell.style.color = colours.inkOn(t, signed);
        return cell;
      })));
    const table = element("table", {},
      element("caption", {}, `${app.pickedName()}, ${state.direction === "from" ? "looking at" : "looked at by"} …` +
        (weights.store.exact ? "" : " Weights are rounded (≈).")),
      element("thead", {}, element("tr", {}, element("th", { class: "number" }, "token"), element("th", {}, "word"),
        ...keys.map((key) => element("th", { class: "number" }, key)))),
      element("tbody", {}, ...rows));
    const more = shown.length < order.length
      ? [element("button", { type: "button", onclick: () => { this.all = true; this.render(); } }, `Show all ${order.length}`)] : [];
    return [element("div", { class: "scroll table" }, table), ...more];
  }

  headTable() {
    const { app } = this, { weights, picture, numbers, store } = app, names = Object.entries(app.statistics);
    const sortButton = (name, label, title) => element("th", { class: "number", scope: "col", title,
      "aria-sort": state.sort === name ? "descending" : null },
    element("button", { type: "button", class: "plain", "data-sort": name, onclick: () => update({ sort: name }) },
      label + (state.sort === name ? " ↓" : "")));
    const rows = app.grid.sorted().map(({ key }) => {
      const head = weights.headOf(key), vector = picture.vectors.get(key);
      const statistics = statisticsOf(weights, head) || {};
      const [top] = vector ? picture.strongest(vector, 1) : [];
      const name = element("button", { type: "button", class: "plain", onclick: () => update({ head: key }) }, key);
      return element("tr", { class: key === state.head ? "current" : null },
        element("th", { scope: "row" }, name),
        ...(picture.selection ? [
          element("td", {}, element("bdi", {}, top === undefined ? "" : weights.items[top].label)),
          element("td", { class: "number" }, top === undefined ? "" : numbers.show(vector[top])),
        ] : []),
        ...(state.second && vector ? [element("td", { class: "number" }, numbers.show(picture.pairWeight(vector)))] : []),
        ...names.map(([id, about]) => element("td", { class: "number" }, numbers.statistic(statistics[id], about))));
    });
    return [element("div", { class: "scroll table" }, element("table", {},
      element("caption", {}, "All heads" + (picture.selection ? ` for ${app.pickedName()}` : "") +
        "; statistics are means over all tokens." + (store.exact ? "" : " Numbers are rounded.")),
      element("thead", {}, element("tr", {}, sortButton("layer", "head"),
        ...(picture.selection ? [element("th", {}, "strongest"), element("th", { class: "number" }, "weight")] : []),
        ...(state.second && picture.selection ? [sortButton("pair", "second word")] : []),
        ...names.map(([id, about]) => sortButton(id, about.name, `${about.what} (${about.unit || "a weight"})`)))),
      element("tbody", {}, ...rows)))];
  }

  // The matrix or the arcs of all shown heads side by side, for saving.
  wholeFigure() {
    const make = state.view === "arcs" ? arcsFigure : matrixFigure, shapes = [], { app } = this;
    let x = 16, high = 0;
    for (const key of this.keys()) {
      const figure = make(app, key, 460);
      if (!figure) continue;
      shapes.push({ type: "text", x, y: 18, text: app.nameOf(key), size: 14, fill: app.colours.ink, bold: true });
      shapes.push(...app.moved(figure, x, 34));
      x += figure.width + 24;
      high = Math.max(high, figure.height);
    }
    return { width: Math.ceil(x), height: Math.ceil(high + 50), shapes };
  }
}
