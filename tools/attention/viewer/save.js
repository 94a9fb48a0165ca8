import { element, byId } from "./dom.js";
import { exact, heads } from "./data.js";
import { state, looksFrom } from "./state.js";
import { items, rowItem, colItem, tokensOf, vectorOf } from "./weights.js";
import { colours } from "./colour.js";
import { svgOf } from "./figure.js";
import { picked, selection, vectors, namesOf } from "./page.js";
import { gridFigure } from "./grid.js";
import { panelFigure } from "./panel.js";

// Saving what is shown: figures as SVG or PNG, weights as CSV.

function download(name, blob) {
  const href = URL.createObjectURL(blob);
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

async function pngOf(svg, { width, height }) {
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await image.decode();
  const canvas = element("canvas", { width: width * 2, height: height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve); });
}

// One field by RFC 4180; a field that a spreadsheet would run as a formula gets a quote before it.
function field(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}

// Of the picked word all heads; without one the matrix of the chosen head.
function csv() {
  const lines = ["layer,head,from,from_text,to,to_text,weight"];
  const add = (key, from, to, weight) => lines.push([...key.split(":"), from.first, field(from.label), to.first, field(to.label),
    weight.toPrecision(exact ? 6 : 3)].join());
  items.forEach((from, i) => {
    const row = selection || rowItem[from.first] < 0 ? null : vectorOf(state.head, tokensOf(i), "from");
    if (row) row.forEach((weight, to) => { if (colItem[items[to].first] >= 0) add(state.head, from, items[to], weight); });
  });
  const own = selection && { first: selection[0], label: namesOf(picked) };
  for (const { key } of selection ? heads : []) {
    (vectors.get(key) || []).forEach((weight, i) => (looksFrom() ? add(key, own, items[i], weight) : add(key, items[i], own, weight)));
  }
  return lines.join("\r\n") + "\r\n";
}

// `what`: "panel-svg", "panel-png", "grid-svg", "grid-png" or "csv".
export async function save(what) {
  const isCsv = what === "csv";
  if (isCsv && !selection && items.length > 2000) {
    byId("sentence").textContent = "Too long to save whole: pick a word.";
    return;
  }
  if (isCsv) { download("attention.csv", new Blob([csv()], { type: "text/csv" })); return; }
  const [part, format] = what.split("-"), figure = part === "grid" ? gridFigure() : panelFigure(), svg = svgOf(figure, colours.paper);
  download("attention." + format, format === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await pngOf(svg, figure));
}
