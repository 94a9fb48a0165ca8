#!/usr/bin/env python3
"""Writes models/text/unicode_tables.inc: the character classes and mappings that tokenizers rely on.

    python3 tools/gen_unicode.py hf_unicode_classes.json > models/text/unicode_tables.inc

hf_unicode_classes.json holds what Hugging Face `tokenizers` does with every single code point
(classes, lower-casing, normalisation forms), found by asking it; its parts come from different
versions of Unicode. unicode_extra.json beside this file holds what single code points do not show:
combining classes (as far as that library knows them), grapheme break properties, scripts.
"""
import json
import pathlib
import sys
import unicodedata

BLOCK = 128
BITS = ["bert_removed", "bert_to_space", "bert_cjk", "bert_punct", "ws_split", "rust_numeric", "regex_word",
        "bert_mn_stripped", "strip_accents_removed", "onig_L", "onig_N"]
NAMES = ["BertRemoved", "BertToSpace", "Cjk", "Punctuation", "Space", "Numeric", "Word", "BertAccent", "Accent",
         "Letter", "Number"]
GRAPHEME = ["Other", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V",
            "T", "LV", "LVT", "Extended_Pictographic"]


def members(ranges):
    for r in ranges:
        low, _, high = r.partition("-")
        yield from range(int(low, 16), int(high or low, 16) + 1)


def two_stage(values, default):
    """(index of each block, the distinct blocks one after the other)"""
    blocks, index, seen = [], [], {}
    for start in range(0, 0x110000, BLOCK):
        block = tuple(values.get(c, default) for c in range(start, start + BLOCK))
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        index.append(seen[block])
    while len(index) > 1 and index[-1] == index[-2]:
        index.pop()  # the last entry stands for all that follow
    return index, [v for b in blocks for v in b]


def emit(ctype, name, values):
    print(f"inline constexpr {ctype} {name}[{len(values)}] = {{")
    line = "   "
    for v in values:
        item = f" {v},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


def smallest(values):
    return "uint8_t" if max(values) < 256 else "uint16_t" if max(values) < 65536 else "uint32_t"


def emit_stage(name, values, default):
    index, data = two_stage(values, default)
    emit(smallest(index), f"k{name}Index", index)
    emit(smallest(data), f"k{name}Data", data)


def records(classes, extra):
    bits, ccc, grapheme, incb = {}, {}, {}, {}
    for i, name in enumerate(BITS):
        for c in members(classes[name]):
            bits[c] = bits.get(c, 0) | 1 << i
    for value, ranges in extra["ccc"].items():
        for c in members(ranges):
            ccc[c] = int(value)
    for name, ranges in extra["grapheme"].items():
        for c in members(ranges):
            if name.startswith("InCB_"):
                incb[c] = 1 + ["Consonant", "Linker", "Extend"].index(name[5:])
            else:
                grapheme[c] = GRAPHEME.index(name)
    for c in range(0xAC00, 0xD7A4):
        grapheme[c] = GRAPHEME.index("LV" if (c - 0xAC00) % 28 == 0 else "LVT")
    table, of = [(0, 0, 0, 0)], {}
    for c in sorted(set(bits) | set(ccc) | set(grapheme) | set(incb)):
        record = (bits.get(c, 0), ccc.get(c, 0), grapheme.get(c, 0), incb.get(c, 0))
        if record not in table:
            table.append(record)
        of[c] = table.index(record)
    print("inline constexpr CharRecord kCharRecords[] = {")
    for record in table:
        print("    {%d, %d, %d, %d}," % record)
    print("};")
    emit_stage("Char", of, 0)


def lower(mapping):
    deltas, of = [0], {}
    for key, value in mapping.items():
        if " " in value:
            continue  # U+0130 alone becomes two characters; the code knows it
        delta = int(value, 16) - int(key, 16)
        if delta not in deltas:
            deltas.append(delta)
        of[int(key, 16)] = deltas.index(delta)
    emit("int32_t", "kLowerDeltas", deltas)
    emit_stage("Lower", of, 0)


def decompositions(norm):
    """Index 0 is "itself"; else the place of a length and as many code points in one shared array."""
    data, place = [0], {}
    for form in ("nfd", "nfkd"):
        of = {}
        for key, value in norm[form].items():
            c = int(key, 16)
            if 0xAC00 <= c <= 0xD7A3:
                continue  # Hangul syllables are computed
            if value not in place:
                place[value] = len(data)
                points = [int(p, 16) for p in value.split()]
                data += [len(points)] + points
            of[c] = place[value]
        emit_stage(form.capitalize(), of, 0)
    emit("uint32_t", "kDecompositions", data)


def compositions(norm):
    full = {int(k, 16): tuple(int(p, 16) for p in v.split()) for k, v in norm["nfd"].items()}
    primary = {c: d for c, d in full.items() if "%x" % c not in norm["nfc"] and not 0xAC00 <= c <= 0xD7A3}
    whole = {d: c for c, d in primary.items()}
    pairs = []
    for c, d in primary.items():
        first = d[0] if len(d) == 2 else whole[d[:-1]]
        pairs.append((first << 32 | d[-1], c))
    pairs.sort()
    emit("uint64_t", "kComposedFrom", ["0x%xu" % p[0] for p in pairs])
    emit("uint32_t", "kComposedTo", [p[1] for p in pairs])


def scripts(table):
    names = sorted(table)
    of = {c: 1 + names.index(n) for n in names for c in members(table[n])}
    print("// Scripts: 0 any, " + f"{1 + names.index('Han')} Han, {1 + names.index('Hiragana')} Hiragana, "
          + f"{1 + names.index('Katakana')} Katakana.")
    for n in ("Han", "Hiragana", "Katakana"):
        print(f"inline constexpr uint8_t kScript{n} = {1 + names.index(n)};")
    emit_stage("Script", of, 0)


def pattern_classes(classes):
    """What the reference's regular expressions count as letters, numbers and word characters beyond
    the general categories of Unicode 14, which any regular expression library knows."""
    def extra(name, wanted, categories):
        points = sorted(c for c in wanted if not unicodedata.category(chr(c)).startswith(categories))
        ends = []
        for c in points:
            if ends and ends[-1] == c - 1:
                ends[-1] = c
            else:
                ends += [c, c]
        emit("uint32_t", name, ends)
    assert unicodedata.unidata_version == "14.0.0", "run this with Python 3.11"
    print("// First and last code points of ranges, by turns.")
    word = set(members(classes["regex_word"])) - {0x200C, 0x200D}
    extra("kWordExtras", word, ("L", "M", "Nd", "Nl", "Pc"))


def main():
    data = json.loads(pathlib.Path(sys.argv[1]).read_text())
    extra = json.loads((pathlib.Path(__file__).parent / "unicode_extra.json").read_text())
    print("// Generated by tools/gen_unicode.py. Two-stage tables: Index[c / 128], then Data.")
    print("// clang-format off")
    for i, name in enumerate(NAMES):
        print(f"inline constexpr uint16_t k{name}Bit = 1u << {i};")
    records(data["classes"], extra)
    lower(data["lower"])
    decompositions(data["norm"])
    compositions(data["norm"])
    scripts(extra["script"])
    pattern_classes(data["classes"])
    print("// clang-format on")


if __name__ == "__main__":
    main()
