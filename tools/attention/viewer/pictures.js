import { state } from "./state.js";
import { scaled } from "./colour.js";
import { fitLabel } from "./figure.js";

// The two large pictures of one head: its matrix, and arcs from word to word. Each is a figure with
// `at(x, y)`: the items {from, to} under a point, or null.

const kMostLabels = 64;  // items up to which a matrix has labels
const kMostArcs = 60;    // items up to which arcs show the whole text
const kStrongest = 40;   // items of a longer text that the far side of arcs shows

export function matrixFigure(app, key, width) {
  const { weights, picture, colours, store } = app, matrix = weights.matrix(key);
  if (!matrix) return null;
  const { rows, cols } = matrix, labelled = Math.max(rows.length, cols.length) <= kMostLabels;
  const longest = Math.max(0, ...[...rows, ...cols].map((i) => weights.items[i].label.length));
  const room = labelled ? Math.min(96, 14 + longest * 7) : 4;
  const cell = Math.max(labelled ? 11 : 0.25, Math.min(30, (width - room - (labelled ? room * 0.55 : 4)) / Math.max(cols.length, 1)));
  const high = cell * rows.length, wide = cell * cols.length, x0 = room, y0 = labelled ? room * 0.9 : 4;
  const rule = app.ruleOf(key), sees = (from, to) => store.visible(rule, from, to);
  const masked = rule && ((r, c) => {
    const from = weights.items[rows[r]], to = weights.items[cols[c]];
    return !sees(from.last, to.first) && !sees(from.first, to.last);
  });
  const full = app.fullOfMatrix(matrix);
  const shapes = [app.heatMap(matrix, x0, y0, wide, high, masked)];
  if (labelled) {
    const size = Math.min(13, cell * 0.8);
    const style = (i) => ({ type: "text", size, fill: picture.second.has(i) ? colours.second : colours.ink,
      bold: picture.picked.has(i) || picture.second.has(i), text: fitLabel(weights.items[i].label, room - 8, size) });
    rows.forEach((i, r) => shapes.push({ ...style(i), x: x0 - 5, y: y0 + (r + 0.5) * cell, anchor: "end" }));
    cols.forEach((i, c) => shapes.push({ ...style(i), x: x0 + (c + 0.5) * cell, y: y0 - 6, turn: -60 }));
  }
  const frame = (places, across) => {
    const among = (across ? cols : rows).map((item, place) => (places.has(item) ? place : -1)).filter((p) => p >= 0);
    if (among.length === 0) return null;
    const low = Math.min(...among) * cell, size = (Math.max(...among) + 1) * cell - low;
    return across ? { x: x0 + low, y: y0, width: size, height: high } : { x: x0, y: y0 + low, width: wide, height: size };
  };
  const across = state.direction === "to", one = frame(picture.picked, across), two = frame(picture.second, !across);
  if (one) shapes.push({ type: "rect", ...one, stroke: colours.ink });
  if (two) shapes.push({ type: "rect", ...two, stroke: colours.second });
  return {
    width: Math.ceil(x0 + wide + (labelled ? room * 0.55 : 4)), height: Math.ceil(y0 + high + 4), shapes, full, masked,
    at(x, y) {
      const r = Math.floor((y - y0) / cell), c = Math.floor((x - x0) / cell);
      if (!(r >= 0 && r < rows.length && c >= 0 && c < cols.length)) return null;
      return { from: rows[r], to: cols[c], weight: matrix.data[r * cols.length + c], masked: masked && masked(r, c) };
    },
  };
}

// Which items stand left and right: in long texts the picked ones and the strongest others.
function arcSides(app, key) {
  const { weights, picture } = app, matrix = weights.items.map((_, i) => i);
  const rows = matrix.filter((i) => weights.rowItem[weights.items[i].first] >= 0);
  const cols = matrix.filter((i) => weights.colItem[weights.items[i].first] >= 0);
  if (weights.items.length <= kMostArcs) return { rows, cols };
  const vector = picture.vectors.get(key);
  if (!vector) return null;
  const near = [...picture.picked].slice(0, kStrongest);
  const far = [...new Set([...picture.strongest(vector, kStrongest), ...picture.second])].sort((a, b) => a - b);
  return state.direction === "from" ? { rows: near, cols: far, cut: true } : { rows: far, cols: near, cut: true };
}

export function arcsFigure(app, key, width) {
  const { weights, picture, colours, numbers } = app, sides = arcSides(app, key);
  if (!sides) return null;
  const { rows, cols } = sides, signed = weights.run === "diff", shapes = [];
  const matrix = picture.selection ? null : weights.matrix(key), vector = picture.vectors.get(key);
  if (!matrix && !vector) return null;
  const count = Math.max(rows.length, cols.length), line = count > 30 ? 17 : 22, top = 26, size = line * 0.62;
  const side = Math.min(130, width * 0.27), numbersWide = 40;
  const left = side, right = width - side - numbersWide, y = (place) => top + (place + 0.5) * line;
  const picked = state.direction === "from" ? rows : cols;
  const full = matrix ? app.fullOfMatrix(matrix) : picture.fullOf(key);
  const arc = (r, c, weight) => {
    const t = scaled(weight, full, state), a = Math.abs(t);
    if (a < 0.02) return;
    const toSecond = picture.second.has(state.direction === "from" ? cols[c] : rows[r]);
    shapes.push({ type: "curve", x1: left + 4, y1: y(r), x2: right - 4, y2: y(c), lineWidth: 0.5 + 4 * a, opacity: 0.15 + 0.8 * a,
      stroke: toSecond ? colours.second : signed ? (t < 0 ? colours.less : colours.more) : colours.css(0.45 + 0.55 * a) });
  };
  if (matrix) {
    for (let r = 0; r < rows.length; ++r) for (let c = 0; c < cols.length; ++c) arc(r, c, matrix.data[r * cols.length + c]);
  } else {
    const far = state.direction === "from" ? cols : rows;
    picked.forEach((item, p) => {
      if (picture.picked.has(item)) {
        far.forEach((to, f) => (state.direction === "from" ? arc(p, f, vector[to]) : arc(f, p, vector[to])));
      }
    });
  }
  shapes.push({ type: "text", x: left - 6, y: 10, text: "from", size: 11, fill: colours.faint, anchor: "end" },
    { type: "text", x: right + 6, y: 10, text: "to", size: 11, fill: colours.faint });
  const weighsRight = state.direction === "from";
  const label = (item, place, isLeft, weighed) => {
    const t = weighed && vector ? scaled(vector[item], full, state) : 0;
    const box = { y: y(place) - line / 2 + 1, width: side - 4, height: line - 2, x: isLeft ? 0 : right + 2 };
    const here = !weighed && picture.picked.has(item);
    if (t) shapes.push({ type: "rect", ...box, fill: colours.css(t, signed) });
    const second = picture.second.has(item) && isLeft !== weighsRight;
    if (here || second) shapes.push({ type: "rect", ...box, stroke: here ? colours.ink : colours.second });
    shapes.push({ type: "text", x: isLeft ? left - 10 : right + 8, y: y(place), text: fitLabel(weights.items[item].label, side - 16, size),
      size, fill: t ? colours.inkOn(t, signed) : colours.ink, anchor: isLeft ? "end" : "start", bold: here });
  };
  rows.forEach((item, place) => label(item, place, true, !weighsRight));
  cols.forEach((item, place) => label(item, place, false, weighsRight));
  if (vector) {
    (weighsRight ? cols : rows).forEach((item, place) => {
      if (scaled(vector[item], full, state)) {
        shapes.push({ type: "text", x: width - 2, y: y(place), text: numbers.bare(vector[item]), size: 10.5, fill: colours.faint, anchor: "end" });
      }
    });
  }
  return {
    width, height: top + count * line + 6, shapes, full, cut: sides.cut,
    at(x, py) {
      const place = Math.floor((py - top) / line), isLeft = x < left, isRight = x > right;
      const item = isLeft ? rows[place] : isRight ? cols[place] : undefined;
      if (item === undefined) return null;
      return isLeft ? { from: item } : { to: item };
    },
  };
}
