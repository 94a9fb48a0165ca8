import { element } from "./dom.js";
import { state } from "./state.js";
import { svgOf } from "./figure.js";

// Saving what is shown: figures as SVG or PNG, weights as CSV.

function download(name, blob) {
  const url = URL.createObjectURL(blob), link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
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

// Of the picked word all heads; without one the matrix of the chosen head. Long form.
function csvOf(app) {
  const { weights, picture, store } = app, lines = ["layer,head,from,from_text,to,to_text,weight"];
  const digits = (weight) => (store.exact ? weight.toPrecision(6) : weight.toPrecision(3));
  const add = (key, from, to, weight) => lines.push([...key.split(":"), from.first, field(from.label),
    to.first, field(to.label), digits(weight)].join());
  if (picture.selection) {
    const [first, last] = picture.selection, label = app.pickedName();
    const own = { first, label, last };
    for (const { key } of store.heads) {
      const vector = picture.vectors.get(key);
      if (!vector) continue;
      weights.items.forEach((item, i) => (state.direction === "from" ? add(key, own, item, vector[i]) : add(key, item, own, vector[i])));
    }
  } else {
    const matrix = weights.matrix(state.head);
    if (matrix) {
      matrix.rows.forEach((from, r) => matrix.cols.forEach((to, c) =>
        add(state.head, weights.items[from], weights.items[to], matrix.data[r * matrix.cols.length + c])));
    }
  }
  return lines.join("\r\n") + "\r\n";
}

// `what`: "panel-svg", "panel-png", "grid-svg", "grid-png" or "csv".
export async function save(app, what) {
  if (what === "csv") {
    download("attention.csv", new Blob([csvOf(app)], { type: "text/csv" }));
    return;
  }
  const [part, format] = what.split("-");
  const figure = (part === "grid" ? app.grid : app.panel).wholeFigure();
  const svg = svgOf(figure, app.colours.paper);
  const blob = format === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await pngOf(svg, figure);
  download("attention." + format, blob);
}
