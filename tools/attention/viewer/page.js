import { header, heads, headsOfLayer, headOf, visible, forgetOld } from "./data.js";
import { isolated } from "./units.js";
import { state, looksFrom, isDiff } from "./state.js";
import { items, vectorOf } from "./weights.js";
import { colours, rgbOf, rgbAt, scaled, shown } from "./colour.js";

// What is picked at present, the weights that belong to it, and the words for it.

export let picked = new Set();   // items
export let second = new Set();   // items of the second word
export let masked = new Set();   // items that the picked ones cannot see in the chosen head
export let selection = null;     // tokens [first, last], or null
export let vectors = new Map();  // head or summary -> weights of the items, null while on their way
export let largest = 0;          // of all of them

let lookedAt = "";

export function readPicked() {
  const now = [state.word, state.head, state.pins, state.direction].join();
  if (now !== lookedAt) forgetOld();
  lookedAt = now;
  const within = (range) => new Set(range ? [...items.keys()].filter((i) => items[i].first <= range[1] && items[i].last >= range[0]) : []);
  picked = within(state.word);
  second = within(state.word && state.second);
  selection = picked.size > 0 ? state.word : null;
  vectors = new Map();
  masked = new Set();
  largest = 0;
  if (!selection) return;
  const summaries = header.layers.map((layer) => `${layer}:${state.summary}`);
  for (const key of new Set([...heads.map((head) => head.key), ...summaries, state.head, ...state.pins])) {
    const vector = vectorOf(key, selection, state.direction);
    vectors.set(key, vector);
    if (vector) for (const value of vector) if (Math.abs(value) > largest) largest = Math.abs(value);
  }
  const rule = ruleOf(state.head);
  if (!rule) return;
  const sees = (own, other) => (looksFrom() ? visible(rule, own, other) : visible(rule, other, own));
  items.forEach((item, i) => {
    if (!selection.some((own) => sees(own, item.first) || sees(own, item.last))) masked.add(i);
  });
}

// A head whose mask holds for this head or summary; null if nothing is masked.
export function ruleOf(key) {
  if (key.endsWith(":rollout")) return null;
  const head = headOf(key) || headsOfLayer(parseInt(key, 10))[0];
  return head && (head.causal || typeof head.window === "number") ? head : null;
}

// The weight that gets full colour: of a head alone, or as one of `all`.
export function fullOf(key, all) {
  if (state.most === "one") return 1;
  if (all && state.most === "all") return largest;
  return (vectors.get(key) || []).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

export function fullOfMatrix(matrix) {
  if (state.most === "one") return 1;
  matrix.largest ??= matrix.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return matrix.largest;
}

// A matrix as a shape of a figure. Its image stays with the matrix while it would look the same.
export function heatMap(matrix, x, y, width, height, hides) {
  const full = fullOfMatrix(matrix), { data, high: rows, wide: cols } = matrix, grey = rgbOf(colours.masked);
  const look = [colours.theme, state.scale, state.threshold, full].join();
  if (matrix.look !== look) Object.assign(matrix, { look, image: null });
  return { type: "cells", x, y, width, height, rows, cols, keep: matrix,
    rgb: (row, col) => (hides && hides(row, col) ? grey : rgbAt(scaled(data[row * cols + col], full))) };
}

// The few items of the largest weights, by falling weight.
export function strongest(vector, most) {
  const weight = (i) => Math.abs(vector[i]), order = [];
  for (let i = 0; i < vector.length; ++i) {
    if (vector[i] === 0 || (order.length === most && weight(i) <= weight(order[most - 1]))) continue;
    let place = order.length;
    while (place > 0 && weight(order[place - 1]) < weight(i)) --place;
    order.splice(place, 0, i);
    if (order.length > most) order.pop();
  }
  return order;
}

// Between the picked and the second word: summed over keys, mean over queries.
export function pairWeight(vector) {
  const sum = [...second].reduce((total, item) => total + vector[item], 0);
  return looksFrom() ? sum : sum / Math.max(1, second.size);
}

export const namesOf = (places) => isolated([...places].map((i) => items[i].label).join(" "));

export function nameOf(key) {
  const [layer, head] = key.split(":");
  const summaries = { mean: "mean of its heads", max: "largest of its heads", rollout: "rollout up to here" };
  return `Layer ${layer}, ` + (summaries[head] || "head " + head);
}

export function listStrongest(vector, most) {
  return strongest(vector, most).map((i) => `${isolated(items[i].label)} ${shown(vector[i])}`).join(", ");
}

// " looks most at river 0.42, of 0.11": what a picked word does in a head.
export function sentenceOf(key) {
  const vector = vectors.get(key);
  if (!vector) return ": reading …";
  const verb = isDiff() ? " changes most with " : looksFrom() ? " looks most at " : " is looked at most by ";
  const list = listStrongest(vector, 3);
  return list ? verb + list + "." : ": nothing to show here.";
}
