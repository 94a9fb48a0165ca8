import { element, byId, on, isChord } from "./dom.js";
import { readHeader, loadAll, header, heads, headOf, size, exact, served, failure } from "./data.js";
import { units, makeUnits } from "./units.js";
import { kDefaults, state, update, togglePin, decodeState, whenStateChanges, looksFrom, isDiff } from "./state.js";
import { items, chooseItems, wholeMatrices, tokensOf } from "./weights.js";
import { statistics, nameStatistics } from "./statistics.js";
import { colours, chooseTheme, cssAt, shown, bare } from "./colour.js";
import { readPicked, picked, second, selection, vectors, largest, pairWeight, namesOf, nameOf, sentenceOf } from "./page.js";
import { renderText } from "./text.js";
import { renderGrid } from "./grid.js";
import { renderPanel } from "./panel.js";
import { renderPositions } from "./positions.js";
import { save } from "./save.js";

// The controls, the keyboard, and drawing.

const darkSystem = matchMedia("(prefers-color-scheme: dark)"), page = document.documentElement.dataset;
const controls = [...document.querySelectorAll("[data-state]")];
let limits = null, waiting = false, notes = [];

function makeLimits() {
  const choices = { sort: ["layer", "pair", ...Object.keys(statistics)] };
  for (const { dataset, options } of controls) {
    if (dataset.state !== "sort") (choices[dataset.state] ||= []).push(...(options ? [...options].map((o) => o.value) : [dataset.value]));
  }
  if (header.runs.length < 2) choices.run = ["0"];
  if (header.texts.length < 2) choices.part = ["all"];
  if (!wholeMatrices()) choices.summary = ["mean", "max"];
  if (served) choices.specials = ["show", "hide"];
  const isHead = (text) => {
    const [layer, kind] = text.split(":");
    return headOf(text) !== null || (header.layers.map(String).includes(layer) && choices.summary.includes(kind));
  };
  return { tokens: size, choices, isHead };
}

function readAddress() {
  Object.assign(state, decodeState(location.hash, limits));
  // For a first look: the mean over the heads of the last layer, and a word that means something.
  state.head ||= header.layers.length > 0 ? header.layers.at(-1) + ":mean" : "";
  if (location.hash) return;
  const words = units.words.filter((item) => !item.special), word = words.find((item) => item.label.length > 4) || words[0];
  if (word) state.word = [word.first, word.last];
}

function bindControls() {
  byId("sort").append(...limits.choices.sort.map((name) => element("option", { value: name },
    { layer: "Layer and head", pair: "Weight to second word" }[name] || statistics[name].name)));
  for (const control of controls) {
    const name = control.dataset.state;
    for (const option of control.options || []) option.hidden = !limits.choices[name].includes(option.value);
    on(control, control.options ? "change" : "click", () => choose(name, control.options ? control.value : control.dataset.value));
  }
  on(byId("threshold"), "input", (event) => update({ threshold: Number(event.target.value) ** 2 }));
  on(byId("save"), "change", (event) => {
    if (event.target.value) save(event.target.value);
    event.target.value = "";
  });
  on(byId("help-button"), "click", toggleHelp);
  on(window, "keydown", pressKey);
}

function choose(name, value) {
  const change = { [name]: value };
  // The last column changes its meaning: a chosen or pinned cell of it goes along.
  if (name === "summary") {
    const follow = (key) => key.replace(/:\D.*$/, ":" + value);
    Object.assign(change, { head: follow(state.head), pins: [...new Set(state.pins.map(follow))] });
  }
  update(change);
}

function toggleHelp() {
  byId("help").hidden = !byId("help").hidden;
  byId("help-button").setAttribute("aria-expanded", !byId("help").hidden);
}

function pressKey(event) {
  if (isChord(event) || /^(SELECT|INPUT)$/.test(event.target.tagName)) return;
  const view = ["matrix", "arcs", "table", "heads"][event.key - 1];
  const action = view ? () => update({ view }) : {
    f: () => update({ direction: looksFrom() ? "to" : "from" }),
    p: () => togglePin(state.head),
    "[": () => moveSecond(-1),
    "]": () => moveSecond(1),
    Escape: () => update(state.second ? { second: null } : { word: null }),
    "?": toggleHelp,
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function moveSecond(step) {
  const places = [...(second.size > 0 ? second : picked)], next = (step < 0 ? places[0] : places.at(-1)) + step;
  if (selection && items[next]) update({ second: tokensOf(next) });
}

// What is said once: the model, the runs, what is missing.
function describePage() {
  const { runs, texts, attention, layers, layer_count: layerCount, head_count: headCount } = header;
  const title = [...new Set(runs.map(({ model }) => model.split("/").filter(Boolean).pop() || model))].join(" and ");
  document.title = "Attention: " + title;
  byId("model").textContent = title;
  byId("runs").hidden = runs.length < 2;
  byId("parts").hidden = texts.length < 2;
  const windows = attention.map((a) => a.window).filter(Number.isInteger), [near, far] = [Math.min, Math.max].map((of) => of(...windows));
  const all = layerCount * headCount;
  notes = [
    heads.length < all && `This page has ${heads.length} of the model's ${all} heads.`,
    header.truncated && `The text was cut off at ${header.max_length || size} tokens.`,
    attention.some((a) => a.causal) && "Words see only what stands before them (causal model).",
    windows.length > 0 && `In ${windows.length} of ${layers.length} layers words see at most ${near < far ? near + " to " : ""}${far} tokens to each side.`,
  ];
  const facts = runs.map(({ label, architecture, precision, tier, weights_hash: hash, self_check: { max_row_sum_error: sum, max_vector_difference: gap } = {} }) => [label, architecture, precision, tier,
    hash && "weights " + hash.slice(0, 16), sum >= 0 && `rows sum to 1 within ${sum.toExponential(1)}`,
    Number.isFinite(gap) && "vector as in the fast run" + (gap ? ` within ${gap.toExponential(1)}` : "")]);
  facts.push([`${size} tokens`, `${layerCount} layers × ${headCount} heads`,
    exact ? "weights as half-precision numbers" : "weights rounded to 8 bits (≈)", "Pozor " + header.pozor]);
  byId("facts").replaceChildren(...facts.map((line) => element("p", {}, line.filter(Boolean).join(" · "))));
}

function renderSentence() {
  const target = byId("sentence"), vector = vectors.get(state.head);
  if (!selection) { target.textContent = items.length > 0 ? "Pick a word in the text above." : ""; return; }
  const own = element("b", {}, element("bdi", {}, namesOf(picked))), parts = [nameOf(state.head) + ": "];
  if (second.size > 0 && vector) {
    const pair = [own.cloneNode(true), element("b", { class: "two" }, element("bdi", {}, namesOf(second)))];
    if (!looksFrom()) pair.reverse();
    parts.push(pair[0], isDiff() ? " to " : " looks at ", pair[1], " with ", element("span", { id: "pair-weight" }, shown(pairWeight(vector))), ". ");
  }
  target.replaceChildren(...parts, own, element("bdi", {}, sentenceOf(state.head)));
}

function renderControls() {
  for (const control of controls) {
    const value = state[control.dataset.state];
    if (control.options) control.value = value; else control.setAttribute("aria-pressed", control.dataset.value === value);
  }
  byId("threshold").value = Math.sqrt(state.threshold);
  byId("threshold-value").textContent = state.threshold ? state.threshold.toFixed(4) : "0";
  byId("note").textContent = [...notes, failure].filter(Boolean).join(" ");
  byId("note").hidden = byId("note").textContent === "";
  const signed = isDiff(), ramp = element("span", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${Array.from({ length: 9 }, (_, i) => cssAt(signed ? i / 4 - 1 : i / 8)).join()})`;
  const most = state.most === "one" ? bare(1) : selection && state.most === "all" ? bare(largest) : "largest";
  byId("legend").replaceChildren(signed ? "−" + most.replace("+", "") : "0", ramp, most);
}

function render() {
  const theme = state.theme === "auto" ? (darkSystem.matches ? "dark" : "light") : state.theme;
  if (page.theme !== theme || !colours) {
    chooseTheme(theme);
    renderPositions();
  }
  chooseItems();
  readPicked();
  renderControls();
  renderText();
  renderSentence();
  renderGrid();
  renderPanel();
}

function schedule() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; render(); });
}

async function start() {
  if (!readHeader(schedule)) {
    byId("note").hidden = false;
    byId("note").textContent = "No data: `pozor attention view` writes a page with some.";
    return;
  }
  makeUnits();
  nameStatistics();
  if (header.runs.length > 1) kDefaults.run = "diff";
  limits = makeLimits();
  readAddress();
  bindControls();
  describePage();
  whenStateChanges(schedule);
  on(window, "hashchange", () => { readAddress(); schedule(); });
  on(window, "resize", schedule);
  on(darkSystem, "change", schedule);
  render();
  await new Promise((painted) => { requestAnimationFrame(() => setTimeout(painted)); });
  await loadAll();
  page.ready = "true";
}

start();
