import { element, byId, tipOver, on, isChord } from "./dom.js";
import { header } from "./data.js";
import { texts, legible, directionOf, layoutOf } from "./units.js";
import { state, update } from "./state.js";
import { items, itemsKey, tokensOf } from "./weights.js";
import { cssAt, inkAt, scaled, shown } from "./colour.js";
import { picked, second, masked, vectors, fullOf, nameOf } from "./page.js";

// The text itself: its words are what one picks, and their colour is the chosen head's weight.

const strip = byId("text");
let wordElements = [], builtFor = "", dragFrom = -1, rangeFrom = -1;

function wordAt(event) {
  const word = event.target.closest(".word");
  return word ? Number(word.dataset.index) : -1;
}

function rangeOf(a, b) { return [items[Math.min(a, b)].first, items[Math.max(a, b)].last]; }

on(strip, "pointerdown", (event) => {
  const index = wordAt(event);
  if (index < 0 || event.button !== 0) return;
  event.preventDefault();
  wordElements[index].focus({ preventScroll: true });
  if (event.shiftKey && state.word) { update({ second: tokensOf(index) }); return; }
  dragFrom = rangeFrom = index;
  update({ word: tokensOf(index) });
});
on(strip, "pointerover", (event) => {
  const index = wordAt(event);
  if (dragFrom >= 0 && index >= 0 && event.buttons & 1) update({ word: rangeOf(dragFrom, index) });
});
on(window, "pointerup", () => { dragFrom = -1; });
on(strip, "keydown", moveByKey);
tipOver(strip, (event) => {
  const index = wordAt(event);
  if (index < 0) return null;
  const vector = vectors.get(state.head), { label, tokens } = items[index];
  return [label, ...(vector ? [`${shown(vector[index])}  ${nameOf(state.head)}`] : []),
    tokens.slice(0, 12).map((t) => `${t}: ${legible(header.tokens[t])} (${header.ids[t]})`).join("   ")];
});

// Arrow keys follow what is seen: in a right-to-left text, left is onwards.
function moveByKey(event) {
  const at = wordElements.indexOf(document.activeElement);
  if (at < 0 || isChord(event)) return;
  const onwards = getComputedStyle(wordElements[at].parentElement).direction === "rtl" ? -1 : 1;
  const target = { ArrowRight: at + onwards, ArrowLeft: at - onwards, Home: 0, End: items.length - 1, Enter: at, " ": at }[event.key];
  if (!items[target]) return;
  event.preventDefault();
  if (event.shiftKey && target === at) { update({ second: tokensOf(at) }); return; }
  if (!event.shiftKey) rangeFrom = target; else if (!items[rangeFrom]) rangeFrom = at;
  update({ word: rangeOf(rangeFrom, target) });
  wordElements[target].focus();
}

function buildText() {
  wordElements = [];
  const paragraphs = texts.map((text, segment) => {
    const line = element("div", { class: "text", dir: directionOf(text.join("")), role: "listbox", "aria-label": "Words",
      "aria-multiselectable": "true" });
    const { parts, rest } = layoutOf(items, segment);
    for (const { before, index, special, text: shownText } of parts) {
      const word = element("span", { class: special ? "word special" : "word", role: "option", "data-index": index }, shownText);
      line.append(special && line.hasChildNodes() ? " " : legible(before), word, special ? " " : "");
      wordElements[index] = word;
    }
    line.append(header.truncated && rest.trim() ? element("s", { title: "beyond the model's limit" }, legible(rest)) : legible(rest));
    return element("div", { class: "paragraph" }, element("span", { class: "name", "aria-hidden": "true" }, texts[1] ? "AB"[segment] : ""), line);
  });
  if (items.length === 0) paragraphs.push(element("p", { class: "faint" }, "This text has no tokens."));
  strip.className = state.unit + (header.tokens.length > 150 ? " long" : "");
  strip.replaceChildren(...paragraphs);
}

export function renderText() {
  if (builtFor !== itemsKey) { buildText(); builtFor = itemsKey; }
  const vector = vectors.get(state.head), full = fullOf(state.head), [tabStop] = picked.size ? picked : [0];
  wordElements.forEach((word, index) => {
    const t = vector ? scaled(vector[index], full) : 0;
    word.style.background = vector ? cssAt(t) : "";
    word.style.color = vector ? inkAt(t) : "";
    word.classList.toggle("picked", picked.has(index));
    word.classList.toggle("second", second.has(index));
    word.classList.toggle("masked", masked.has(index));
    word.setAttribute("aria-selected", picked.has(index));
    word.tabIndex = index === tabStop ? 0 : -1;
  });
}
