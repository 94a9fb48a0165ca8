import { exact } from "./data.js";
import { state, isDiff } from "./state.js";

// Colours of weights, and how numbers are written.
// One hue from pale to deep (light theme) or from dark to bright (dark theme): readable for every
// kind of colour vision, since lightness alone carries the order. Differences: blue to orange.

const kRamps = {
  light: ["#f2f5f9", "#d3e3f2", "#9cc6e4", "#549bd0", "#1f66ad", "#0b3a78"],
  dark: ["#20262f", "#1e3c5c", "#23608f", "#3f92cb", "#8cc5ee", "#e4f2fd"],
};

export function rgbOf(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }

function blend(stops, t) {
  const at = t * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  const a = rgbOf(stops[i]), b = rgbOf(stops[i + 1]);
  return a.map((value, channel) => Math.round(value + (b[channel] - value) * (at - i)));
}

// The colours of the present theme: those of the style sheet, and 256 steps of each scale.
export let colours = null;

export function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const css = getComputedStyle(document.documentElement), steps = (stops) => Array.from({ length: 256 }, (_, i) => blend(stops, i / 255));
  colours = { theme };
  for (const name of "ink faint line paper accent second zero pale masked".split(" ")) colours[name] = css.getPropertyValue("--" + name).trim();
  colours.steps = steps(kRamps[theme]);
  colours.signedSteps = steps([colours.accent, colours.zero, colours.second]);
}

// The colour of a share of the scale: [0, 1], or [-1, 1] in a difference.
export function rgbAt(t) {
  return isDiff() ? colours.signedSteps[Math.round((t + 1) * 127.5)] : colours.steps[Math.round(t * 255)];
}

export function cssAt(t) { return `rgb(${rgbAt(t).join(" ")})`; }

// Ink that is legible on it.
export function inkAt(t) {
  const [r, g, b] = rgbAt(t);
  return 0.299 * r + 0.587 * g + 0.114 * b > 118 ? "#10161f" : "#ffffff";
}

// A weight as a share of the scale, in [0, 1] ([-1, 1] for differences); `full` has full colour.
export function scaled(weight, full) {
  const { scale, threshold } = state, size = Math.abs(weight);
  if (!(size > 0) || size < threshold || !(full > 0)) return 0;
  const share = Math.min(size / full, 1);
  const shown = scale === "linear" ? share : scale === "sqrt" ? Math.sqrt(share)
    : Math.max(0, 1 + Math.log10(share) / 4);  // log: four powers of ten
  return weight < 0 ? -shown : shown;
}

// Weights as text: rounded ones (8 bits) with their sign of approximation and no false digits,
// since half a step of the stored root, 1/510, is up to 0.004 of the weight; differences signed.
export function shown(value) { return (exact ? "" : "\u2248\u2009") + bare(value); }

export function bare(value) {
  const size = Math.abs(value), digits = exact || size < 0.01 ? 4 : size < 0.1 ? 3 : 2;
  return (isDiff() && value > 0 ? "+" : "") + value.toFixed(digits).replace("-", "\u2212");
}

// A statistic of a head as it stands in a table.
export function shownStatistic(value, { unit }) {
  if (value === undefined) return "";
  if (unit === "%") return (value * 100).toFixed(value < 0.0995 ? 1 : 0) + " %";
  return value.toFixed(unit === "a weight" || value < 0.01 ? 4 : 2);
}
