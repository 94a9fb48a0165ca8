// Colours of weights, and how numbers are written.
// One hue from pale to deep (light theme) or from dark to bright (dark theme): readable for every
// kind of colour vision, since lightness alone carries the order. Differences: blue to orange.

const kPalettes = {
  light: {
    ramp: ["#f2f5f9", "#d3e3f2", "#9cc6e4", "#549bd0", "#1f66ad", "#0b3a78"],
    less: "#1f66ad", zero: "#f4f4f2", more: "#c2510c",
    ink: "#1b2330", faint: "#5c6675", line: "#d9dee6", paper: "#ffffff", second: "#c2510c", masked: "#e3e1dc",
  },
  dark: {
    ramp: ["#20262f", "#1e3c5c", "#23608f", "#3f92cb", "#8cc5ee", "#e4f2fd"],
    less: "#6fb3ee", zero: "#262a30", more: "#ff9a4a",
    ink: "#e6eaf0", faint: "#9aa5b4", line: "#353d48", paper: "#171b21", second: "#ff9a4a", masked: "#35322c",
  },
};

export function rgbOf(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }

function blend(stops, t) {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  const a = rgbOf(stops[i]), b = rgbOf(stops[i + 1]);
  return a.map((value, channel) => Math.round(value + (b[channel] - value) * (at - i)));
}

export class Colours {
  constructor(theme) {
    Object.assign(this, kPalettes[theme]);
    this.theme = theme;
    this.steps = Array.from({ length: 256 }, (_, i) => blend(this.ramp, i / 255));
    const diverging = [this.less, this.zero, this.more];
    this.signedSteps = Array.from({ length: 256 }, (_, i) => blend(diverging, i / 255));
  }
  // t in [0, 1], or in [-1, 1] if signed.
  rgb(t, signed) {
    return signed ? this.signedSteps[Math.round((t + 1) * 127.5)] : this.steps[Math.round(t * 255)];
  }
  css(t, signed) { return `rgb(${this.rgb(t, signed).join(" ")})`; }
  // Ink that is legible on a weight's colour.
  inkOn(t, signed) {
    const [r, g, b] = this.rgb(t, signed);
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#10161f" : "#ffffff";
  }
}

// A weight as a share of the scale, in [0, 1] ([-1, 1] for differences); `full` has full colour.
export function scaled(weight, full, { scale, threshold }) {
  const size = Math.abs(weight);
  if (!(size > 0) || size < threshold || !(full > 0)) return 0;
  const share = Math.min(size / full, 1);
  const shown = scale === "linear" ? share : scale === "sqrt" ? Math.sqrt(share)
    : Math.max(0, 1 + Math.log10(share) / 4);  // log: four powers of ten
  return weight < 0 ? -shown : shown;
}

// Writes weights: rounded ones (8 bits) with their sign of approximation and no false digits.
export class Numbers {
  constructor(exact) { this.exact = exact; }
  // Half a step of the stored square root, 1/510, is 2 sqrt(w) / 510 of the weight.
  weight(value) {
    if (this.exact) return value.toFixed(4);
    return "\u2248\u2009" + value.toFixed(Math.abs(value) < 0.1 ? 3 : 2);
  }
  signed(value) { return (value > 0 ? "+" : "") + this.weight(value).replace("-", "\u2212"); }
  // Without its unit, except for %: as it stands in a table.
  statistic(value, { unit }) {
    if (value === undefined) return "";
    if (unit === "%") return (value * 100).toFixed(value < 0.0995 ? 1 : 0) + " %";
    return value.toFixed(unit === "" || value < 0.01 ? 4 : 2);
  }
}
