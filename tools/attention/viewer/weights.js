import { header, heads, size, table, served, headsOfLayer, headOf, rawMatrix, rawLine } from "./data.js";
import { units, texts, directionOf } from "./units.js";
import { state, isDiff } from "./state.js";

// Weights between items: rows, columns and matrices of heads and of their summaries, under the
// choices of the reader. "null" always means: not here yet, ask again when more has arrived.

const kWholeMatrices = 1024;   // tokens up to which whole matrices are kept and summed
export let items = [];         // what the page shows: words or pieces
export let itemsKey = "";      // changes with them
export let places = [];        // where the line of its text has an item: from the right in a right-to-left one
export let rowItem, colItem;   // of each token: its item as one that looks, as one looked at, or -1
const ofItems = new Map();     // remembered numbers of the present items
const ofTokens = new Map();    // and those that no choice changes

export const tokensOf = (i) => [items[i].first, items[i].last];

function remember(cache, name, make) {
  if (cache.has(name)) return cache.get(name);
  const made = make();
  if (made !== null) cache.set(name, made);
  return made;
}

export function rememberOfTokens(name, make) { return remember(ofTokens, name, make); }

// Whether rollouts and whole summaries can be had.
export function wholeMatrices() { return !served && size <= kWholeMatrices; }

// Takes over the choices; items are made anew only when they changed.
export function chooseItems() {
  const { unit, specials, merge, part, run } = state, key = [unit, specials, merge, part, run].join();
  if (key === itemsKey) return;
  itemsKey = key;
  ofItems.clear();
  items = units[unit].filter((item) => specials === "show" || !item.special);
  const within = (side) => {
    const of = new Int32Array(size).fill(-1);
    items.forEach((item, i) => {
      if (part === "all" || item.segment === Number(part[side])) for (const token of item.tokens) of[token] = i;
    });
    return of;
  };
  [rowItem, colItem] = [within(0), within(1)];
  // First and last item of each text.
  const ends = texts.map((_, segment) => [...items.keys()].filter((i) => items[i].segment === segment)).map((own) => [own[0], own.at(-1)]);
  const mirrored = texts.map((text) => directionOf(text.join("")) === "rtl");
  places = items.map(({ segment }, i) => (mirrored[segment] ? ends[segment][0] + ends[segment][1] - i : i));
}

// How the tokens [first, last] look at each item ("from"), or how each item looks at them ("to").
// `key` names a head or a summary. Items the choices leave out get 0.
export function vectorOf(key, [first, last], direction) {
  const renormalise = state.specials === "renormalise";
  const of = (run) => (direction === "to" ? columnOf : rowOf)(run, key, first, last, renormalise);
  if (!isDiff()) return of(Number(state.run));
  const a = of(0), b = of(1);
  return a && b && a.map((value, i) => b[i] - value);
}

const sumOf = (values) => values.reduce((a, b) => a + b, 0);

// Sums over the key tokens of each item, then merges the rows of the query tokens.
function rowOf(run, key, first, last, renormalise) {
  const out = new Float32Array(items.length), { merge } = state;
  let queries = [];
  for (let token = first; token <= last; ++token) if (rowItem[token] >= 0) queries.push(token);
  if (merge === "first") queries = queries.slice(0, 1);
  for (const query of queries) {
    const tokens = tokenVector(run, key, query, "from");
    if (tokens === null) return null;
    const row = merge === "max" ? new Float32Array(out.length) : out, factor = merge === "max" ? 1 : 1 / queries.length;
    for (let token = 0; token < size; ++token) {
      const item = colItem[token];
      if (item >= 0) row[item] += factor * tokens[token];
    }
    if (row !== out) row.forEach((value, i) => { if (value > out[i]) out[i] = value; });
  }
  const sum = renormalise ? sumOf(out) : 0;
  return sum > 0 ? out.map((value) => value / sum) : out;
}

// The same numbers seen from the other side: how each item looks at the key tokens.
function columnOf(run, key, first, last, renormalise) {
  const sums = new Float32Array(size);
  for (let token = first; token <= last; ++token) {
    if (colItem[token] < 0) continue;
    const tokens = tokenVector(run, key, token, "to");
    if (tokens === null) return null;
    for (let query = 0; query < size; ++query) sums[query] += tokens[query];
  }
  // Of each item as a query: the sum of its weights that are shown.
  const all = renormalise ? remember(ofItems, `sums ${run} ${key}`, () =>
    items.map((item) => sumOf(rowOf(run, key, item.first, item.last, false) || []))) : null;
  return Float32Array.from(items, ({ first: start, tokens }, i) => {
    if (rowItem[start] < 0) return 0;
    const own = (state.merge === "first" ? [start] : tokens).map((token) => sums[token]);
    const merged = state.merge === "max" ? Math.max(...own) : sumOf(own) / own.length;
    return all && all[i] > 0 ? merged / all[i] : merged;
  });
}

// The row ("from") or column ("to") of one token over all tokens, before anything is merged.
function tokenVector(run, key, token, direction) {
  const [layer, kind] = key.split(":");
  if (kind === "rollout") return rolloutVector(run, Number(layer), token, direction);
  const among = kind === "mean" || kind === "max" ? headsOfLayer(Number(layer)) : [headOf(key)];
  const out = new Float32Array(size);
  for (const head of among) {
    const line = rawLine(run, head, token, direction);
    if (line === null) return null;
    const { raw, start, step } = line;
    for (let i = 0, at = start; i < size; ++i, at += step) {
      const weight = table[raw[at]];
      if (kind !== "max") out[i] += weight / among.length; else if (weight > out[i]) out[i] = weight;
    }
  }
  return out;
}

// Mean over the heads of a layer: Float32Array [tokens, tokens].
function meanMatrix(run, layer) {
  return rememberOfTokens(`mean ${run} ${layer}`, () => {
    const among = headsOfLayer(layer), out = new Float32Array(size * size);
    for (const head of among) {
      const raw = rawMatrix(run, head);
      if (raw === null) return null;
      for (let i = 0; i < out.length; ++i) out[i] += table[raw[i]] / among.length;
    }
    return out;
  });
}

// Attention rollout (Abnar and Zuidema 2020): product over the layers up to this one of
// (mean over heads + identity) / 2. One row or column needs no product of matrices.
function rolloutVector(run, layer, token, direction) {
  const upTo = header.layers.filter((l) => l <= layer);
  if (direction === "from") upTo.reverse();
  let now = new Float32Array(size);
  now[token] = 1;
  for (const l of upTo) {
    const mean = meanMatrix(run, l);
    if (mean === null) return null;
    const next = now.map((value) => value / 2);
    for (let from = 0, at = 0; from < size; ++from) {
      if (direction === "from" && now[from] === 0) { at += size; continue; }
      for (let to = 0; to < size; ++to, ++at) {
        if (direction === "from") next[to] += now[from] * mean[at] / 2; else next[from] += mean[at] * now[to] / 2;
      }
    }
    now = next;
  }
  return now;
}

// All weights of a head or summary under the present part, or the largest of each of `bins` x `bins`
// fields: {rows, cols: items, high, wide, data [high, wide]}.
function makeMatrix(key, bins) {
  const head = headOf(key), within = (of) => [...items.keys()].filter((i) => of[items[i].first] >= 0);
  if (!head && !wholeMatrices()) return null;
  for (const run of head ? (isDiff() ? [0, 1] : [Number(state.run)]) : []) if (rawMatrix(run, head) === null) return null;
  const rows = within(rowItem), cols = within(colItem), high = Math.min(bins, rows.length), wide = Math.min(bins, cols.length);
  const data = new Float32Array(high * wide);
  for (let r = 0; r < rows.length; ++r) {
    const row = vectorOf(key, tokensOf(rows[r]), "from"), into = Math.floor(r * high / rows.length) * wide;
    if (row === null) return null;
    for (let c = 0; c < cols.length; ++c) {
      const at = into + Math.floor(c * wide / cols.length), value = row[cols[c]];
      if (Math.abs(value) > Math.abs(data[at])) data[at] = value;
    }
  }
  return { rows, cols, high, wide, data };
}

export function matrixOf(key) { return remember(ofItems, "matrix " + key, () => makeMatrix(key, kWholeMatrices)); }
export function thumbnailOf(key, bins) { return remember(ofItems, "thumbnail " + key, () => makeMatrix(key, bins)); }
