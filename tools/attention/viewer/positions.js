import { element, byId, tipOver, on } from "./dom.js";
import { header, bytesOfBase64 } from "./data.js";
import { colours } from "./colour.js";
import { paint } from "./figure.js";

// How the model knows the order of words: its table of positions and how alike positions are.

const kKinds = {
  learned: "Each position has a vector of its own, learned in training and added to the word's.",
  sinusoidal: "Each position has a fixed vector of sines and cosines of falling frequency, added to the word's.",
  rotary: "Queries and keys are turned by an angle that grows with the position, so that weights depend on distance.",
  relative: "A learned number for each distance is added to the scores before they become weights.",
  alibi: "A penalty that grows with the distance is subtracted from the scores, another one in each head.",
  none: "The order of words is known only from what the attention mask shows.",
};
const details = byId("positions");

on(details, "toggle", renderPositions);

function picture(name, cols, base64, tip) {
  const values = new Int8Array(bytesOfBase64(base64).buffer), rows = values.length / cols, canvas = element("canvas", { role: "img", "aria-label": name });
  const most = values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
  const width = Math.min(420, cols * 12), height = Math.min(420, rows * 12);
  const rgb = (row, col) => colours.signedSteps[Math.round((values[row * cols + col] / most + 1) * 127.5)];
  paint(canvas, { width, height, shapes: [{ type: "cells", x: 0, y: 0, width, height, rows, cols, rgb }] });
  tipOver(canvas, (event) => {
    const box = canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / height * rows);
    const col = Math.floor((event.clientX - box.left) / width * cols), value = values[row * cols + col];
    return col >= 0 && col < cols && value !== undefined ? [tip(row, col, value)] : null;
  });
  return element("figure", {}, canvas, element("figcaption", {}, name));
}

export function renderPositions() {
  const { positions } = header;
  details.hidden = !positions;
  if (!details.open || !positions) return;
  const { kind, count, size, table, similarity, sampled_positions: places, sampled_columns: columns, table_scale: step } = positions;
  const body = kind.split(" + ").map((part) => element("p", {}, kKinds[part] || `Positions: ${part}.`));
  if (table) {
    body.push(picture(`The table: ${count} positions (rows) × ${size} numbers` + (places.length < count || columns.length < size ? ", a sample" : ""),
      columns.length, table, (row, col, value) => `position ${places[row]}, number ${columns[col]}: ≈ ${(value * step).toPrecision(2)}`));
  }
  if (similarity) {
    body.push(picture("How alike two positions are (cosine)", places.length, similarity,
      (row, col, value) => `positions ${places[row]} and ${places[col]}: ≈ ${(value / 127).toFixed(2)}`));
  }
  if (table) body.push(element("p", { class: "faint" }, "Orange: positive, blue: negative. A bright diagonal means that near positions are alike."));
  details.lastElementChild.replaceChildren(...body);
}
