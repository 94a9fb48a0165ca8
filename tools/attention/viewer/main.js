import { element, byId } from "./dom.js";
import { readHeader, Store } from "./data.js";
import { Units, isolated } from "./units.js";
import { kDefaults, state, update, decodeState, whenStateChanges } from "./state.js";
import { Weights, kWholeMatrices } from "./weights.js";
import { nameStatistics } from "./statistics.js";
import { Colours, Numbers, rgbOf, scaled } from "./colour.js";
import { moved } from "./figure.js";
import { TextStrip } from "./text.js";
import { Grid } from "./grid.js";
import { Panel } from "./panel.js";
import { Positions } from "./positions.js";
import { save } from "./save.js";

// The page as a whole: what the parts share, the controls, the keyboard, and drawing.

// What is picked at present and the weights that belong to it.
class Picture {
  constructor(app) {
    const { weights, store } = app, { items } = weights;
    this.items = items;
    const within = (range) => new Set(range ? items.flatMap((item, i) =>
      (item.first <= range[1] && item.last >= range[0] ? [i] : [])) : []);
    this.picked = within(state.word);
    this.second = within(state.word && state.second);
    this.selection = this.picked.size > 0 ? state.word : null;
    this.vectors = new Map();
    this.largest = 0;
    this.masked = new Set();
    if (!this.selection) return;
    const keys = [...store.heads.map((head) => head.key), ...store.header.layers.map((l) => `${l}:${state.summary}`),
      state.head, ...state.pins];
    for (const key of new Set(keys)) {
      const vector = weights.vector(key, this.selection, state.direction);
      this.vectors.set(key, vector);
      if (vector) for (const value of vector) this.largest = Math.max(this.largest, Math.abs(value));
    }
    const rule = app.ruleOf(state.head);
    if (rule) this.findMasked(store, rule);
  }

  findMasked(store, head) {
    const [first, last] = this.selection;
    this.items.forEach((item, i) => {
      const sees = (own, other) => (state.direction === "from" ? store.visible(head, own, other) : store.visible(head, other, own));
      if (![first, last].some((own) => sees(own, item.first) || sees(own, item.last))) this.masked.add(i);
    });
  }

  // The weight that gets full colour: of a head alone, or as one of `all`.
  fullOf(key, all) {
    if (state.most === "one") return 1;
    if (all && state.most === "all") return this.largest;
    return (this.vectors.get(key) || []).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  }

  // Items by falling weight; those without any only if `zeros`.
  strongest(vector, most, zeros) {
    const size = (i) => Math.abs(vector[i]), order = [];
    if (most > 50) {
      for (let i = 0; i < vector.length; ++i) if (zeros || vector[i] !== 0) order.push(i);
      return order.sort((a, b) => size(b) - size(a)).slice(0, most);
    }
    for (let i = 0; i < vector.length; ++i) {
      if (vector[i] === 0 || (order.length === most && size(i) <= size(order[most - 1]))) continue;
      let place = order.length;
      while (place > 0 && size(order[place - 1]) < size(i)) --place;
      order.splice(place, 0, i);
      if (order.length > most) order.pop();
    }
    return order;
  }

  // Between the picked and the second word: summed over keys, mean over queries.
  pairWeight(vector) {
    let sum = 0;
    for (const item of this.second) sum += vector[item];
    return state.direction === "from" || this.second.size === 0 ? sum : sum / this.second.size;
  }
}

class App {
  constructor(header) {
    this.header = header;
    this.statistics = nameStatistics(header);
    this.store = new Store(header, () => this.schedule());
    this.units = new Units(header);
    this.weights = new Weights(this.store, this.units);
    this.numbers = new Numbers(this.store.exact);
    this.moved = moved;
    this.numbers.show = (value) => (state.run === "diff" ? this.numbers.signed(value) : this.numbers.weight(value));
    this.numbers.bare = (value) => this.numbers.show(value).replace("\u2248\u2009", "");
    this.darkSystem = matchMedia("(prefers-color-scheme: dark)");
    this.limits = this.makeLimits();
    if (header.runs.length > 1) kDefaults.run = "diff";
    this.readAddress();
    if (!location.hash) state.word = this.firstWord();
    this.text = new TextStrip(this);
    this.grid = new Grid(this);
    this.panel = new Panel(this);
    this.positions = new Positions(this);
    this.bindControls();
    this.describe();
    whenStateChanges(() => this.schedule());
    addEventListener("hashchange", () => {
      this.readAddress();
      this.schedule();
    });
    addEventListener("resize", () => this.schedule());
    this.darkSystem.addEventListener("change", () => this.schedule());
  }

  makeLimits() {
    const { header } = this, choices = {};
    for (const control of document.querySelectorAll("[data-state]")) {
      const values = control.tagName === "SELECT" ? [...control.options].map((o) => o.value) : [control.dataset.value];
      choices[control.dataset.state] = [...(choices[control.dataset.state] || []), ...values];
    }
    choices.sort = ["layer", "pair", ...Object.keys(this.statistics)];
    if (header.runs.length < 2) choices.run = ["0"];
    if (header.texts.length < 2) choices.part = ["all"];
    if (this.store.served || this.store.size > kWholeMatrices) choices.summary = ["mean", "max"];
    if (this.store.served) choices.specials = ["show", "hide"];
    const isHead = (text) => this.weights.headOf(text) !== null || (/^\d+:(mean|max|rollout)$/.test(text) &&
      header.layers.includes(parseInt(text, 10)) && choices.summary.includes(text.split(":")[1]));
    return { tokens: this.store.size, choices, isHead };
  }

  readAddress() {
    const { layers } = this.header;
    Object.assign(state, decodeState(location.hash, this.limits));
    // For a first look: the mean over the heads of the last layer.
    state.head ||= layers.length > 0 ? layers[layers.length - 1] + ":mean" : "";
  }

  // For a first look: a word that means something.
  firstWord() {
    const words = this.units.words.filter((item) => !item.special);
    const word = words.find((item) => item.label.length > 4) || words[0];
    return word ? [word.first, word.last] : null;
  }

  bindControls() {
    const sort = byId("sort");
    sort.append(element("option", { value: "layer" }, "Layer and head"), element("option", { value: "pair" }, "Weight to second word"),
      ...Object.entries(this.statistics).map(([name, about]) => element("option", { value: name, title: about.what },
        about.name[0].toUpperCase() + about.name.slice(1))));
    for (const control of document.querySelectorAll("[data-state]")) {
      const name = control.dataset.state;
      for (const option of control.options || []) option.hidden = !this.limits.choices[name].includes(option.value);
      if (control.tagName === "SELECT") control.addEventListener("change", () => this.choose({ [name]: control.value }));
      else control.addEventListener("click", () => update({ [name]: control.dataset.value }));
    }
    byId("threshold").addEventListener("input", (event) => update({ threshold: Number(event.target.value) ** 2 }));
    byId("save").addEventListener("change", async (event) => {
      const what = event.target.value;
      event.target.value = "";
      if (what) await save(this, what);
    });
    byId("help-button").addEventListener("click", () => this.toggleHelp());
    addEventListener("keydown", (event) => this.key(event));
  }

  choose(change) {
    // The last column changes its meaning: a chosen or pinned cell of it goes along.
    if (change.summary) {
      const follow = (key) => key.replace(/:(mean|max|rollout)$/, ":" + change.summary);
      Object.assign(change, { head: follow(state.head), pins: [...new Set(state.pins.map(follow))] });
    }
    update(change);
  }

  toggleHelp() {
    const help = byId("help");
    help.hidden = !help.hidden;
    byId("help-button").setAttribute("aria-expanded", !help.hidden);
  }

  togglePin(key) {
    const pins = state.pins.filter((pin) => pin !== key);
    update({ pins: pins.length < state.pins.length ? pins : [...pins, key] });
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    const views = { 1: "matrix", 2: "arcs", 3: "table", 4: "heads" };
    const actions = {
      f: () => update({ direction: state.direction === "from" ? "to" : "from" }),
      p: () => this.togglePin(state.head),
      "[": () => this.moveSecond(-1),
      "]": () => this.moveSecond(1),
      Escape: () => update(state.second ? { second: null } : { word: null }),
      "?": () => this.toggleHelp(),
    };
    const action = views[event.key] ? () => update({ view: views[event.key] }) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  moveSecond(step) {
    const { items } = this.weights, { picture } = this;
    if (!picture.selection) return;
    const from = [...(picture.second.size ? picture.second : picture.picked)], at = (step < 0 ? from[0] : from[from.length - 1]) + step;
    if (items[at]) update({ second: [items[at].first, items[at].last] });
  }

  // What is said once: the model, the runs, what is missing.
  describe() {
    const { header } = this, [run] = header.runs, names = header.runs.map((r) => r.model.split("/").filter(Boolean).pop() || r.model);
    const title = [...new Set(names)].join(" and ");
    document.title = "Attention: " + title;
    byId("model").textContent = title;
    byId("runs").hidden = header.runs.length < 2;
    byId("parts").hidden = header.texts.length < 2;
    const heads = this.store.heads.length, all = header.layer_count * header.head_count, notes = [];
    if (heads < all) notes.push(`This page has ${heads} of the model's ${all} heads.`);
    if (header.truncated) notes.push(`The text was cut off at ${header.max_length || this.store.size} tokens.`);
    if (header.attention.some((a) => a.causal)) notes.push("Words see only what stands before them (causal model).");
    const windows = header.attention.filter((a) => typeof a.window === "number");
    if (windows.length) notes.push(`In ${windows.length} of ${header.layers.length} layers words see at most ${windows[0].window} tokens to each side.`);
    this.notes = notes;
    const facts = header.runs.map((r) => [r.label, r.architecture, r.precision, r.tier, r.weights_hash && "weights " + r.weights_hash.slice(0, 16),
      r.self_check && `rows sum to 1 within ${r.self_check.max_row_sum_error.toExponential(1)}`,
      r.self_check && typeof r.self_check.max_vector_difference === "number" &&
        `vector equals the fast run's within ${r.self_check.max_vector_difference.toExponential(1)}`].filter(Boolean).join(" · "));
    byId("facts").replaceChildren(...facts.map((line) => element("p", {}, line)),
      element("p", {}, `${this.store.size} tokens · ${header.layer_count} layers × ${header.head_count} heads · ` +
        (this.store.exact ? "weights as half-precision numbers" : "weights rounded to 8 bits of their square root (≈)") +
        ` · Pozor ${header.pozor || ""}`));
  }

  nameOf(key) {
    const [layer, head] = key.split(":");
    const names = { mean: "mean of its heads", max: "largest of its heads", rollout: "rollout up to here" };
    return `Layer ${layer}, ` + (names[head] || "head " + head);
  }

  // A head whose mask holds for this head or summary; null if nothing is masked.
  ruleOf(key) {
    if (key.endsWith(":rollout")) return null;
    const head = this.weights.headOf(key) || this.weights.headsOfLayer(parseInt(key, 10))[0];
    return head && (head.causal || typeof head.window === "number") ? head : null;
  }

  aboutSummary(key) {
    const about = {
      mean: "The mean over the heads of this layer.", max: "For every pair the largest weight of any head of this layer.",
      rollout: "Attention followed through the layers: mean of heads and the residual connection, multiplied up to here.",
    };
    return about[key.split(":")[1]] || "";
  }

  pickedName() { return isolated([...this.picture.picked].map((i) => this.weights.items[i].label).join(" ")); }

  vectorNow(key) { return this.picture.selection && this.weights.vector(key, this.picture.selection, state.direction); }

  fullOfMatrix(matrix) {
    if (state.most === "one") return 1;
    matrix.largest ??= matrix.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return matrix.largest;
  }

  // A shape for a figure. Its image stays with the matrix as long as it would look the same.
  heatMap(matrix, x, y, width, height, masked) {
    const { colours } = this, signed = this.weights.run === "diff", full = this.fullOfMatrix(matrix), { data } = matrix;
    const rows = matrix.rows.length, cols = matrix.cols.length, grey = rgbOf(colours.masked);
    const look = [colours.theme, state.scale, state.threshold, full].join();
    if (matrix.look !== look) Object.assign(matrix, { look, image: null });
    const rgb = (row, col) => (masked && masked(row, col) ? grey : colours.rgb(scaled(data[row * cols + col], full, state), signed));
    return { type: "cells", x, y, width, height, rows, cols, rgb, keep: matrix };
  }

  // "bank looks most at river 0.42, of 0.11."
  sentence(key) {
    const { picture, weights, numbers } = this, vector = picture.vectors.get(key);
    if (!vector) return "Reading …";
    const strongest = picture.strongest(vector, 3).map((i) => `${isolated(weights.items[i].label)} ${numbers.show(vector[i])}`).join(", ");
    const verb = state.run === "diff" ? " changes most with " : state.direction === "from" ? " looks most at " : " is looked at most by ";
    return this.pickedName() + (strongest ? verb + strongest : ": nothing to show here");
  }

  renderSentence() {
    const { picture, weights, numbers } = this, target = byId("sentence"), vector = picture.vectors.get(state.head);
    if (!picture.selection) { target.textContent = weights.items.length ? "Pick a word in the text above." : ""; return; }
    const name = (text, kind) => element("b", { class: kind }, element("bdi", {}, text));
    const parts = [this.nameOf(state.head) + ": "];
    if (picture.second.size && vector) {
      const two = [...picture.second].map((i) => weights.items[i].label).join(" ");
      const pair = [name(this.pickedName(), "one"), name(two, "two")];
      if (state.direction === "to") pair.reverse();
      parts.push(pair[0], state.run === "diff" ? " to " : " looks at ", pair[1], " with ",
        element("span", { id: "pair-weight", class: "value" }, numbers.show(picture.pairWeight(vector))), ". ");
    }
    const sentence = this.sentence(state.head), own = this.pickedName();
    if (vector) parts.push(name(own, "one"), element("bdi", {}, sentence.slice(own.length) + "."));
    else parts.push(sentence);
    target.replaceChildren(...parts);
  }

  renderControls() {
    for (const control of document.querySelectorAll("[data-state]")) {
      const value = String(state[control.dataset.state]);
      if (control.tagName === "SELECT") control.value = value;
      else control.setAttribute("aria-pressed", control.dataset.value === value);
    }
    byId("threshold").value = Math.sqrt(state.threshold);
    byId("threshold-value").textContent = state.threshold ? state.threshold.toFixed(state.threshold < 0.1 ? 4 : 2) : "0";
    const notes = [...this.notes, this.store.failure].filter(Boolean);
    byId("note").textContent = notes.join(" ");
    byId("note").hidden = notes.length === 0;
  }

  renderLegend() {
    const { picture, colours, numbers } = this, signed = state.run === "diff", bar = element("span", { class: "ramp" });
    const stops = Array.from({ length: 9 }, (_, i) => colours.css(signed ? i / 4 - 1 : i / 8, signed));
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
    const full = state.most === "one" ? 1 : picture.largest;
    const most = !picture.selection || state.most === "each" ? "largest" : numbers.bare(full);
    byId("legend").replaceChildren(signed ? "−" + most.replace("+", "") : "0", bar, most);
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.render(); });
  }

  render() {
    const theme = state.theme === "auto" ? (this.darkSystem.matches ? "dark" : "light") : state.theme;
    if (!this.colours || this.colours.theme !== theme) {
      this.colours = new Colours(theme);
      this.colours.secondPale = theme === "dark" ? "#3a2a1c" : "#fbe8da";
      document.documentElement.dataset.theme = theme;
      this.positions.render();
    }
    this.weights.choose(state);
    this.picture = new Picture(this);
    this.renderControls();
    this.text.render();
    this.renderSentence();
    this.renderLegend();
    this.grid.render();
    this.panel.render();
    document.documentElement.dataset.rendered = String(++this.renders);
  }

  async start() {
    this.renders = 0;
    this.render();
    await new Promise((painted) => { requestAnimationFrame(() => setTimeout(painted)); });
    await this.store.loadAll();
    document.documentElement.dataset.ready = "true";
  }
}

readHeader().then((header) => {
  if (header !== null) return new App(header).start();
  byId("note").hidden = false;
  byId("note").textContent = "This page has no data. `pozor attention view MODEL TEXT -o page.html` writes one that has.";
  return null;
});
