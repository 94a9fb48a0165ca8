// Everything the reader can choose, as one flat object that the address of the page (#...) holds.

export const kDefaults = {
  word: null,         // [first token, last token] of the picked word or range
  second: null,       // the same for the second word
  direction: "from",  // from the picked word, or to it
  head: null,         // "layer:head", "layer:mean", "layer:max" or "layer:rollout"
  pins: [],           // heads beside it
  view: "matrix",     // matrix, arcs, table, heads
  unit: "words",      // words, pieces
  merge: "mean",      // queries of a word: mean, first, max
  specials: "show",   // show, hide, renormalise
  part: "all",        // pairs: all, 00, 01, 10, 11 (from text, to text)
  summary: "mean",    // the last column: mean, max, rollout
  scale: "sqrt",      // sqrt, linear, log
  most: "all",        // full colour: the largest weight of all heads, of each head, or 1
  threshold: 0,       // smaller weights are not drawn
  sort: "layer",
  run: "0",           // of a diff: 0, 1, diff
  theme: "auto",
};

export const state = { ...kDefaults };
export const looksFrom = () => state.direction === "from";
export const isDiff = () => state.run === "diff";
let onStateChange = () => {};

export function whenStateChanges(call) { onStateChange = call; }

function encodeState() {
  const parts = [];
  for (const [name, initial] of Object.entries(kDefaults)) {
    const value = state[name];
    if (value === null || String(value) === String(initial)) continue;
    const text = Array.isArray(value) ? value.join(name === "pins" ? "," : "-") : String(value);
    parts.push(name + "=" + encodeURIComponent(text).replace(/%3A/g, ":").replace(/%2C/g, ","));
  }
  return parts.join("&");
}

// Reads an address; what is not a value of that choice is left as it was.
export function decodeState(hash, limits) {
  const next = { ...kDefaults };
  for (const part of hash.replace(/^#/, "").split("&")) {
    const cut = part.indexOf("=");
    if (cut < 0) continue;
    const name = part.slice(0, cut);
    if (!Object.hasOwn(kDefaults, name)) continue;
    let text;
    try { text = decodeURIComponent(part.slice(cut + 1)); } catch { continue; }
    if (name === "word" || name === "second") {
      const range = text.split("-").map(Number);
      const valid = range.length === 2 && range[0] <= range[1] &&
        range.every((token) => Number.isInteger(token) && token >= 0 && token < limits.tokens);
      if (valid) next[name] = range;
    } else if (name === "pins") {
      next.pins = text.split(",").filter(limits.isHead);
    } else if (name === "head") {
      if (limits.isHead(text)) next.head = text;
    } else if (name === "threshold") {
      if (Number(text) >= 0 && Number(text) <= 1) next.threshold = Number(text);
    } else if (limits.choices[name]?.includes(text)) {
      next[name] = text;
    }
  }
  return next;
}

let addressTimer = 0;

export function togglePin(key) {
  const pins = state.pins.filter((pin) => pin !== key);
  update({ pins: pins.length < state.pins.length ? pins : [...pins, key] });
}

export function update(change) {
  Object.assign(state, change);
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    try {
      history.replaceState(null, "", "#" + encodeState());
    } catch { /* a sandboxed frame has no address of its own */ }
  }, 200);
  onStateChange();
}
