import { visible } from "./data.js";
import { state, looksFrom, isDiff } from "./state.js";
import { items, rowItem, colItem, tokensOf, vectorOf, matrixOf } from "./weights.js";
import { colours, cssAt, inkAt, scaled, bare } from "./colour.js";
import { fitLabel } from "./figure.js";
import { picked, second, selection, vectors, ruleOf, fullOf, fullOfMatrix, heatMap, strongest } from "./page.js";

// The two large pictures of one head: its matrix, and arcs from word to word. Each is a figure with
// `at(x, y)`: what is under a point, {from, to, weight} as far as it is known, or null.

const kMostLabels = 64;  // items up to which a matrix has labels
const kMostArcs = 60;    // items up to which arcs show the whole text
const kStrongest = 40;   // items of a longer text that the far side of arcs shows

export function matrixFigure(key, width) {
  const matrix = matrixOf(key);
  if (!matrix) return null;
  const { rows, cols, data } = matrix, labelled = Math.max(rows.length, cols.length) <= (width > 300 ? kMostLabels : width / 15);
  const longest = labelled ? Math.max(0, ...[...rows, ...cols].map((i) => items[i].label.length)) : 0;
  const x0 = labelled ? Math.min(96, 14 + longest * 7) : 4, y0 = labelled ? x0 * 0.9 : 4, right = labelled ? x0 * 0.55 : 4;
  const cell = Math.max(labelled ? 11 : 0.01, Math.min(30, (width - x0 - right) / Math.max(cols.length, 1)));
  const high = cell * rows.length, wide = cell * cols.length;
  const rule = ruleOf(key), sees = (from, to) => visible(rule, from, to);
  const cut = matrix.high < rows.length || matrix.wide < cols.length;
  const hides = rule && ((r, c) => {
    const from = items[rows[Math.floor(r * rows.length / matrix.high)]], to = items[cols[Math.floor(c * cols.length / matrix.wide)]];
    return !sees(from.last, to.first) && !sees(from.first, to.last);
  });
  const shapes = [heatMap(matrix, x0, y0, wide, high, hides)];
  if (labelled) {
    const size = Math.min(13, cell * 0.8);
    const label = (i, more) => shapes.push({ type: "text", size, fill: second.has(i) ? colours.second : colours.ink,
      bold: picked.has(i) || second.has(i), text: fitLabel(items[i].label, x0 - 8, size), ...more });
    rows.forEach((i, r) => label(i, { x: x0 - 5, y: y0 + (r + 0.5) * cell, anchor: "end" }));
    cols.forEach((i, c) => label(i, { x: x0 + (c + 0.5) * cell, y: y0 - 6, turn: -60 }));
  }
  const frame = (chosen, across, stroke) => {
    const among = (across ? cols : rows).flatMap((item, place) => (chosen.has(item) ? [place] : []));
    if (among.length === 0) return;
    const low = among[0] * cell, size = (among.at(-1) + 1) * cell - low;
    shapes.push({ type: "rect", stroke, ...(across ? { x: x0 + low, y: y0, width: size, height: high }
      : { x: x0, y: y0 + low, width: wide, height: size }) });
  };
  frame(picked, !looksFrom(), colours.ink);
  frame(second, looksFrom(), colours.second);
  return {
    width: Math.ceil(x0 + wide + right), height: Math.ceil(y0 + high + 4), shapes, hides,
    at(x, y) {
      const r = Math.floor((y - y0) / cell), c = Math.floor((x - x0) / cell);
      if (!(r >= 0 && r < rows.length && c >= 0 && c < cols.length)) return null;
      const weight = cut ? vectorOf(key, tokensOf(rows[r]), "from")[cols[c]] : data[r * cols.length + c];
      return { from: rows[r], to: cols[c], weight, hidden: hides && weight === 0 };
    },
  };
}

// Which items stand left and right: in long texts the picked ones and the strongest others.
function arcSides(vector, from) {
  const within = (of) => [...items.keys()].filter((i) => of[items[i].first] >= 0);
  if (items.length <= kMostArcs) return { rows: within(rowItem), cols: within(colItem) };
  if (!vector) return null;
  const near = [...picked].slice(0, kStrongest);
  const far = [...new Set([...strongest(vector, kStrongest), ...second])].sort((a, b) => a - b);
  return { rows: from ? near : far, cols: from ? far : near, cut: true };
}

export function arcsFigure(key, width) {
  const vector = vectors.get(key), from = looksFrom(), sides = arcSides(vector, from);
  const matrix = selection ? null : matrixOf(key);
  if (!sides || !(matrix || vector)) return null;
  const { rows, cols, cut } = sides, shapes = [], full = matrix ? fullOfMatrix(matrix) : fullOf(key);
  const count = Math.max(rows.length, cols.length), line = count > 30 ? 17 : 22, top = 26, size = line * 0.62;
  const side = Math.min(130, width * 0.27), left = side + (from ? 0 : 42), right = left + width - 2 * side - 42, y = (place) => top + (place + 0.5) * line;
  const text = (x, at, label, more) => shapes.push({ type: "text", x, y: at, text: label, size: 11, fill: colours.faint, ...more });
  const arc = (r, c, weight) => {
    const t = scaled(weight, full), strength = Math.abs(t);
    if (strength < 0.02) return;
    const stroke = second.has(from ? cols[c] : rows[r]) ? colours.second
      : isDiff() ? (t < 0 ? colours.accent : colours.second) : cssAt(0.45 + 0.55 * strength);
    shapes.push({ type: "curve", x1: left + 4, y1: y(r), x2: right - 4, y2: y(c), stroke, lineWidth: 0.5 + 4 * strength, opacity: 0.15 + 0.8 * strength });
  };
  rows.forEach((row, r) => cols.forEach((col, c) => {
    if (matrix) arc(r, c, matrix.data[r * cols.length + c]);
    else if (picked.has(from ? row : col)) arc(r, c, vector[from ? col : row]);
  }));
  text(left - 6, 10, "from", { anchor: "end" });
  text(right + 6, 10, "to");
  const label = (item, place, isLeft) => {
    const far = isLeft !== from, t = far && vector ? scaled(vector[item], full) : 0, isNear = !far && picked.has(item);
    const box = { type: "rect", y: y(place) - line / 2 + 1, width: side - 4, height: line - 2, x: isLeft ? left - side : right + 2 };
    if (t) shapes.push({ ...box, fill: cssAt(t) });
    if (isNear || (far && second.has(item))) shapes.push({ ...box, stroke: isNear ? colours.ink : colours.second });
    text(isLeft ? left - 10 : right + 8, y(place), fitLabel(items[item].label, side - 16, size),
      { size, fill: t ? inkAt(t) : colours.ink, anchor: isLeft ? "end" : "start", bold: isNear });
    if (t) text(isLeft ? 0 : right + side, y(place), bare(vector[item]), { size: 10.5 });
  };
  rows.forEach((item, place) => label(item, place, true));
  cols.forEach((item, place) => label(item, place, false));
  return {
    width, height: top + count * line + 6, shapes, cut,
    at(x, py) {
      const place = Math.floor((py - top) / line), isLeft = x < left, item = isLeft ? rows[place] : x > right ? cols[place] : undefined;
      if (item === undefined) return null;
      return { [isLeft ? "from" : "to"]: item, weight: vector && isLeft !== from ? vector[item] : undefined };
    },
  };
}
