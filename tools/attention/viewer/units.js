import { header } from "./data.js";

// Tokens as what a reader sees: words or pieces, with their text and the text between them.

// Scripts written without spaces: there a "word" of the tokenizer may be a whole sentence.
const kWithoutSpaces = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
// Control characters, and those that would reorder or hide what stands around them.
const kInvisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const kRightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

export let texts = [];                        // code points, as offsets count
export const units = { pieces: [], words: [] };  // all items
let segments = [];                            // of each token: which text

// The text with invisible characters named: nothing on the page can be reordered by a text.
export function legible(text) {
  return text.replace(kInvisible, (c) =>
    "\u27e8U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

// "rtl" or "ltr", by the first letter.
export function directionOf(text) {
  return kRightToLeft.test((/\p{L}/u.exec(text) || [""])[0]) ? "rtl" : "ltr";
}

// A label inside a sentence, kept from reordering what stands around it.
export function isolated(label) {
  return kRightToLeft.test(label) ? "\u2068" + label + "\u2069" : label;
}

export function makeUnits() {
  const { sequence, special, word } = header;
  texts = header.texts.map((text) => Array.from(text));
  // A special belongs to the text before it, the first one to the text behind it.
  let text = 0;
  segments = sequence.map((of) => { if (of >= 0) text = of; return text; });
  units.pieces = sequence.map((_, token) => makeItem([token]));
  const groups = [];
  sequence.forEach((_, token) => {
    const before = token - 1;
    const joins = token > 0 && !special[token] && !special[before] && word[token] >= 0 && word[token] === word[before] &&
      segments[token] === segments[before] && !kWithoutSpaces.test(units.pieces[token].text + units.pieces[before].text);
    if (joins) groups.at(-1).push(token); else groups.push([token]);
  });
  units.words = groups.map(makeItem).map((item) => (item.text ? { ...item, label: legible(item.text) } : item));
}

// {tokens, first, last, begin, end, segment, special, text, label}: `text` as in the text itself
// ("" for specials), `label` what names it elsewhere.
function makeItem(tokens) {
  const { offsets, special } = header, first = tokens[0], last = tokens.at(-1), segment = segments[first];
  let [begin] = offsets[first], end = offsets[last][1], text = "";
  if (!special[first]) {
    const covered = texts[segment].slice(begin, end).join("");
    text = covered.trim();
    // Byte pieces take the space before a word into it.
    if (text) begin += Array.from(covered).length - Array.from(covered.trimStart()).length;
    if (text) end -= Array.from(covered).length - Array.from(covered.trimEnd()).length;
  }
  return { tokens, first, last, begin, end, segment, special: Boolean(special[first]), text,
    label: legible((tokens.length > 1 && text) || header.tokens[first] || "\u2423") };
}

// The items of one text in order, as [{before: the plain text before it, index, special, text}], and
// the text behind the last (what was cut off, if the text was truncated). Of bytes that make up one
// character, the first piece has the character, the others their names.
export function layoutOf(items, segment) {
  const parts = [], between = (begin, end) => texts[segment].slice(begin, end).join("");
  let at = 0;
  items.forEach(({ segment: of, special, begin, end, text, label }, index) => {
    if (of !== segment) return;
    const follows = !special && begin >= at;
    parts.push({ before: follows ? between(at, begin) : "", index, special, text: (follows && legible(text)) || label });
    if (follows) at = end;
  });
  return { parts, rest: between(at) };
}
