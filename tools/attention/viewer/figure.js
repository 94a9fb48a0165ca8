// A figure is {width, height, shapes}: painted on a canvas or written as SVG from the same list.
//   rect  {x, y, width, height, fill, stroke}
//   curve {x1, y1, x2, y2, stroke, lineWidth, opacity}
//   text  {x, y, text, size, fill, anchor: start|middle|end, turn: degrees, bold}
//   cells {x, y, width, height, rows, cols, rgb(row, col), keep}: a heat map; `keep` holds its image

const kFont = getComputedStyle(document.documentElement).fontFamily;

function cellsImage({ rows, cols, rgb }) {
  const image = document.createElement("canvas");
  image.width = Math.max(cols, 1);
  image.height = Math.max(rows, 1);
  const context = image.getContext("2d"), pixels = context.createImageData(image.width, image.height);
  const words = new Uint32Array(pixels.data.buffer);
  for (let row = 0, at = 0; row < rows; ++row) {
    for (let col = 0; col < cols; ++col, ++at) {
      const [r, g, b] = rgb(row, col);
      words[at] = 0xff000000 | (b << 16) | (g << 8) | r;
    }
  }
  context.putImageData(pixels, 0, 0);
  return image;
}

const kPainters = {
  rect(context, shape) {
    if (shape.fill) {
      context.fillStyle = shape.fill;
      context.fillRect(shape.x, shape.y, shape.width, shape.height);
    }
    if (shape.stroke) {
      context.strokeStyle = shape.stroke;
      context.lineWidth = 1.5;
      context.strokeRect(shape.x, shape.y, shape.width, shape.height);
    }
  },
  curve(context, { x1, y1, x2, y2, stroke, lineWidth, opacity }) {
    context.strokeStyle = stroke;
    context.lineWidth = lineWidth;
    context.globalAlpha = opacity;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    context.stroke();
    context.globalAlpha = 1;
  },
  text(context, { x, y, text, size, fill, anchor, turn, bold }) {
    context.fillStyle = fill;
    context.font = `${bold ? "600 " : ""}${size}px ${kFont}`;
    // "left" and "right", not "start" and "end": those would follow the direction of the text.
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor || "start"];
    context.textBaseline = "middle";
    if (!turn) { context.fillText(text, x, y); return; }
    context.save();
    context.translate(x, y);
    context.rotate(turn * Math.PI / 180);
    context.fillText(text, 0, 0);
    context.restore();
  },
  cells(context, shape) {
    const keeper = shape.keep || shape;
    keeper.image ||= cellsImage(shape);
    context.imageSmoothingEnabled = shape.width < shape.cols;
    context.drawImage(keeper.image, shape.x, shape.y, shape.width, shape.height);
  },
};

export function paint(canvas, { width, height, shapes }) {
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  for (const shape of shapes) kPainters[shape.type](context, shape);
}

const kMostVectorCells = 40000;  // a larger heat map goes into an SVG as an image

function escapeXml(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const kSvgWriters = {
  rect: (s) => `<rect x="${s.x}" y="${s.y}" width="${s.width}" height="${s.height}" ` +
    `fill="${s.fill || "none"}"${s.stroke ? ` stroke="${s.stroke}" stroke-width="1.5"` : ""}/>`,
  curve({ x1, y1, x2, y2, stroke, lineWidth, opacity }) {
    const middle = (x1 + x2) / 2;
    return `<path d="M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}" fill="none" stroke="${stroke}" ` +
      `stroke-width="${lineWidth.toFixed(2)}" opacity="${opacity.toFixed(3)}"/>`;
  },
  text: (s) => `<text x="${s.x}" y="${s.y}" font-size="${s.size}" fill="${s.fill}" dominant-baseline="central"` +
    ` text-anchor="${s.anchor || "start"}"${s.bold ? ' font-weight="600"' : ""}` +
    `${s.turn ? ` transform="rotate(${s.turn} ${s.x} ${s.y})"` : ""}>${escapeXml(s.text)}</text>`,
  cells(shape) {
    const { x, y, width, height, rows, cols, rgb } = shape;
    if (rows * cols > kMostVectorCells) {
      return `<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" ` +
        `style="image-rendering:pixelated" href="${cellsImage(shape).toDataURL()}"/>`;
    }
    const parts = [], wide = width / cols, high = height / rows;
    for (let row = 0; row < rows; ++row) {
      for (let col = 0; col < cols; ++col) {
        parts.push(`<rect x="${(x + col * wide).toFixed(2)}" y="${(y + row * high).toFixed(2)}" ` +
          `width="${wide.toFixed(2)}" height="${high.toFixed(2)}" fill="rgb(${rgb(row, col).join(",")})"/>`);
      }
    }
    return `<g shape-rendering="crispEdges">${parts.join("")}</g>`;
  },
};

export function svgOf({ width, height, shapes }, background) {
  const body = shapes.map((shape) => kSvgWriters[shape.type](shape)).join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" font-family="${escapeXml(kFont)}">\n` +
    `<rect width="100%" height="100%" fill="${background}"/>\n${body}\n</svg>\n`;
}

export function moved(figure, dx, dy) {
  return figure.shapes.map((shape) => shape.type === "curve"
    ? { ...shape, x1: shape.x1 + dx, x2: shape.x2 + dx, y1: shape.y1 + dy, y2: shape.y2 + dy }
    : { ...shape, x: shape.x + dx, y: shape.y + dy });
}

// Shortens a label to what fits, by the middle width of a character.
export function fitLabel(text, width, size) {
  let used = 0, out = "";
  for (const c of text) {
    used += (c.codePointAt(0) > 0x2e7f ? 1 : /[ijlt.,:;'!|]/.test(c) ? 0.34 : 0.58) * size;
    if (used > width) return out.slice(0, -1) + "\u2026";
    out += c;
  }
  return out;
}
