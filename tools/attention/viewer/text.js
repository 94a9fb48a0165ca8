import { element, byId, tipOver } from "./dom.js";
import { state, update } from "./state.js";
import { legible, directionOf } from "./units.js";
import { scaled } from "./colour.js";

// The text itself: its words are what one picks, and their colour is the present head's weight.

export class TextStrip {
  constructor(app) {
    this.app = app;
    this.root = byId("text");
    this.built = "";
    this.dragFrom = -1;
    this.root.addEventListener("pointerdown", (event) => this.press(event));
    this.root.addEventListener("pointerover", (event) => this.drag(event));
    addEventListener("pointerup", () => { this.dragFrom = -1; });
    this.root.addEventListener("keydown", (event) => this.key(event));
    tipOver(this.root, (event) => this.tip(event));
  }

  itemAt(event) {
    const word = event.target.closest(".word");
    return word ? Number(word.dataset.index) : -1;
  }

  range(a, b) {
    const { items } = this.app.weights;
    const [low, high] = a <= b ? [a, b] : [b, a];
    return [items[low].first, items[high].last];
  }

  press(event) {
    const index = this.itemAt(event);
    if (index < 0 || event.button !== 0) return;
    event.preventDefault();
    this.words[index].focus({ preventScroll: true });
    if (event.shiftKey && state.word) { update({ second: this.range(index, index) }); return; }
    this.dragFrom = index;
    update({ word: this.range(index, index) });
  }

  drag(event) {
    const index = this.itemAt(event);
    if (this.dragFrom < 0 || index < 0 || !(event.buttons & 1)) return;
    update({ word: this.range(this.dragFrom, index) });
  }

  // Arrow keys follow what is seen: in a right-to-left text, left is onwards.
  key(event) {
    const at = this.words.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const rightToLeft = getComputedStyle(this.words[at].parentElement).direction === "rtl";
    const onwards = rightToLeft ? "ArrowLeft" : "ArrowRight", back = rightToLeft ? "ArrowRight" : "ArrowLeft";
    const targets = { [onwards]: at + 1, [back]: at - 1, Home: 0, End: this.words.length - 1,
      ArrowDown: this.lineFrom(at, 1), ArrowUp: this.lineFrom(at, -1), Enter: at, " ": at };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    if (!this.words[target]) return;
    if (event.shiftKey && (event.key === "Enter" || event.key === " ")) {
      update({ second: this.range(at, at) });
      return;
    }
    if (!event.shiftKey || this.keyFrom === undefined) this.keyFrom = event.shiftKey ? at : target;
    update({ word: this.range(event.shiftKey ? this.keyFrom : target, target) });
    this.words[target].focus();
  }

  // The word nearest above or below.
  lineFrom(at, step) {
    const here = this.words[at].getBoundingClientRect();
    let best = at, distance = Infinity;
    for (let i = at + step; this.words[i]; i += step) {
      const there = this.words[i].getBoundingClientRect();
      const rows = Math.abs(there.top - here.top);
      if (rows < here.height / 2) continue;
      const cost = rows * 10 + Math.abs(there.left - here.left);
      if (rows > here.height * 4 && best !== at) break;
      if (cost < distance) { distance = cost; best = i; }
    }
    return best;
  }

  tip(event) {
    const index = this.itemAt(event);
    if (index < 0) return null;
    const { weights, picture, numbers, header } = this.app;
    const item = weights.items[index], vector = picture.vectors.get(state.head);
    const lines = [item.label];
    if (vector) lines.push(numbers.show(vector[index]) + "  " + this.app.nameOf(state.head));
    lines.push(item.tokens.slice(0, 12).map((t) => `${t}: ${legible(header.tokens[t])} (${header.ids[t]})`).join("   "));
    return lines;
  }

  build() {
    const { units, weights, header } = this.app;
    this.words = [];
    const paragraphs = units.texts.map((text, segment) => {
      const line = element("div", { class: "text", dir: directionOf(text.join("")), role: "listbox", "aria-label": "Words",
        "aria-multiselectable": "true" });
      const { parts, rest } = units.layout(weights.items, segment);
      for (const { before, item, index } of parts) {
        const word = element("span", { class: item.special ? "word special" : "word", role: "option",
          "data-index": index, tabindex: -1 }, (!item.special && legible(item.text)) || item.label);
        line.append(item.special && line.hasChildNodes() ? " " : legible(before), word, item.special ? " " : "");
        this.words[index] = word;
      }
      if (rest.trim()) {
        line.append(header.truncated ? element("span", { class: "cut", title: "cut off: beyond the model's limit" }, legible(rest))
          : legible(rest));
      }
      const name = units.texts.length > 1 ? [element("span", { class: "name", "aria-hidden": "true" }, "AB"[segment])] : [];
      return element("div", { class: "paragraph" }, ...name, line);
    });
    if (weights.items.length === 0) paragraphs.push(element("p", { class: "faint" }, "This text has no tokens."));
    this.root.className = weights.unit + (header.tokens.length > 150 ? " long" : "");
    this.root.replaceChildren(...paragraphs);
  }

  render() {
    const { weights, picture, colours } = this.app;
    if (this.built !== weights.key) { this.build(); this.built = weights.key; }
    const vector = picture.vectors.get(state.head);
    const signed = weights.run === "diff", full = picture.fullOf(state.head);
    let tabStop = -1;
    this.words.forEach((word, index) => {
      const t = vector ? scaled(vector[index], full, state) : 0;
      const picked = picture.picked.has(index);
      if (picked && tabStop < 0) tabStop = index;
      word.style.background = vector ? colours.css(t, signed) : "";
      word.style.color = vector ? colours.inkOn(t, signed) : "";
      word.classList.toggle("picked", picked);
      word.classList.toggle("second", picture.second.has(index));
      word.classList.toggle("masked", picture.masked.has(index));
      word.setAttribute("aria-selected", picked);
      word.tabIndex = -1;
    });
    if (this.words.length > 0) this.words[Math.max(tabStop, 0)].tabIndex = 0;
  }
}
