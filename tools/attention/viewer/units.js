// Tokens as what a reader sees: words or pieces, with their text and the text between them.

// Scripts written without spaces: there a "word" of the tokenizer may be a whole sentence.
const kWithoutSpaces = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
// Control characters, and those that would reorder or hide what stands around them.
const kInvisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const kRightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// The text with invisible characters named: nothing on the page can be reordered by a text.
export function legible(text) {
  return text.replace(kInvisible, (c) =>
    "\u27e8U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

// "rtl" or "ltr", by the first letter.
export function directionOf(text) {
  return kRightToLeft.test((/\p{L}/u.exec(text) || [""])[0]) ? "rtl" : "ltr";
}

// The label inside a sentence, kept from reordering what stands around it.
export function isolated(label) {
  return kRightToLeft.test(label) ? "\u2068" + label + "\u2069" : label;
}

// An item is {tokens, first, last, begin, end, segment, special, text, label}: `text` as in the
// text itself ("" for specials), `label` what names it elsewhere.
export class Units {
  constructor(header) {
    const { sequence } = header;
    this.header = header;
    // A special belongs to the text before it, the first one to the text behind it.
    this.segment = sequence.map((text, token) => {
      for (let t = token; t >= 0; --t) if (sequence[t] >= 0) return sequence[t];
      return 0;
    });
    this.texts = header.texts.map((text) => Array.from(text));  // code points, as offsets count
    this.pieces = header.tokens.map((_, token) => this.makeItem([token]));
    this.words = this.mergeWords();
  }

  slice(segment, begin, end) {
    return (this.texts[segment] || []).slice(begin, end).join("");
  }

  makeItem(tokens) {
    const { tokens: text, offsets, special } = this.header;
    const first = tokens[0], last = tokens[tokens.length - 1];
    const item = {
      tokens, first, last, begin: offsets[first][0], end: offsets[last][1], segment: this.segment[first],
      special: Boolean(special[first]), text: "", label: "",
    };
    if (!item.special) {
      item.text = this.slice(item.segment, item.begin, item.end);
      // Byte pieces take the space before a word into it.
      const blank = item.text.length - item.text.trimStart().length;
      if (blank > 0 && blank < item.text.length) {
        item.begin += Array.from(item.text.slice(0, blank)).length;
        item.text = item.text.slice(blank);
      }
    }
    const whole = tokens.length > 1 ? item.text : text[first];
    item.label = legible(whole.trim() || text[first] || "\u2423");
    return item;
  }

  mergeWords() {
    const { word, special } = this.header, { segment } = this;
    const groups = [];
    for (let token = 0; token < word.length; ++token) {
      const group = groups[groups.length - 1];
      const before = token - 1;
      const joins = group && !special[token] && !special[before] && word[token] >= 0 &&
        word[token] === word[before] && segment[token] === segment[before] &&
        !kWithoutSpaces.test(this.pieces[token].text + this.pieces[before].text);
      if (joins) group.push(token); else groups.push([token]);
    }
    return groups.map((tokens) => {
      const item = this.makeItem(tokens);
      if (!item.special && item.text.trim()) item.label = legible(item.text.trim());
      return item;
    });
  }

  // The items of one text in order, with the plain text before each: [{before, item}], and the
  // text behind the last (what was cut off, if the text was truncated).
  layout(items, segment) {
    const parts = [];
    let at = 0;
    items.forEach((item, index) => {
      if (item.segment !== segment) return;
      let before = "";
      if (!item.special && item.begin >= at) {
        before = this.slice(segment, at, item.begin);
        at = Math.max(at, item.end);
      }
      parts.push({ before, item, index });
    });
    return { parts, rest: this.slice(segment, at) };
  }
}
