import { element, byId, showTip } from "./dom.js";
import { bytesOfBase64 } from "./data.js";
import { paint } from "./figure.js";

// How the model knows the order of words: its table of positions and how alike positions are.

const kKinds = {
  learned: "Each position has a vector of its own, learned in training and added to the word's vector.",
  sinusoidal: "Each position has a fixed vector of sines and cosines of falling frequency, added to the word's vector.",
  rotary: "There is no table: queries and keys are turned by an angle that grows with the position, so that a weight depends on the distance.",
  relative: "There is no table: a learned number for each distance is added to the scores before they become weights.",
  alibi: "There is no table: a penalty that grows with the distance is subtracted from the scores, with another slope in each head.",
  none: "This model does not know the order of words, apart from what its attention mask shows.",
};

function signedBytes(base64) { return new Int8Array(bytesOfBase64(base64).buffer); }

export class Positions {
  constructor(app) {
    this.app = app;
    this.root = byId("positions");
    this.root.addEventListener("toggle", () => this.render());
    this.root.hidden = !app.header.positions;
  }

  canvas(name, rows, cols, values, size, tip) {
    const { colours } = this.app, canvas = element("canvas", { role: "img", "aria-label": name });
    let most = 0;
    for (const value of values) most = Math.max(most, Math.abs(value));
    const wide = Math.max(120, Math.min(size, cols * 12)), high = Math.max(60, Math.min(size, rows * 12));
    paint(canvas, { width: wide, height: high, shapes: [{ type: "cells", x: 0, y: 0, width: wide, height: high, rows, cols,
      rgb: (row, col) => colours.rgb(most ? values[row * cols + col] / most : 0, true) }] });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const row = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
      const col = Math.min(cols - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * cols)));
      showTip(event, tip(row, col));
    });
    canvas.addEventListener("pointerleave", (event) => showTip(event));
    return element("figure", {}, canvas, element("figcaption", {}, name));
  }

  render() {
    const { positions } = this.app.header;
    if (!this.root.open || !positions) return;
    const body = [element("p", {}, kKinds[positions.kind] || `Positions: ${positions.kind}.`)];
    if (positions.table) {
      const { sampled_positions: places, sampled_columns: columns } = positions;
      const table = signedBytes(positions.table);
      body.push(this.canvas(`The table: ${positions.count} positions (rows) × ${positions.size} numbers` +
        (places.length < positions.count || columns.length < positions.size ? ", a sample of them" : ""),
      places.length, columns.length, table, 420, (row, col) => `position ${places[row]}, number ${columns[col]}: ` +
        `≈ ${(table[row * columns.length + col] * positions.table_scale).toPrecision(2)}`));
      if (positions.similarity) {
        const alike = signedBytes(positions.similarity);
        body.push(this.canvas("How alike two positions are (cosine)", places.length, places.length, alike, 420,
          (row, col) => `positions ${places[row]} and ${places[col]}: ≈ ${(alike[row * places.length + col] / 127).toFixed(2)}`));
      }
      body.push(element("p", { class: "faint" }, "Orange: positive, blue: negative. A bright diagonal means that near positions look alike."));
    }
    this.root.lastElementChild.replaceChildren(...body);
  }
}
