"""Pages with made-up attention: the viewer's files around data by the contract of tools/attention/README.md."""

import base64
import json
import math
import pathlib
import random
import re
import struct
import zlib

VIEWER = pathlib.Path(__file__).resolve().parents[3] / "tools" / "attention" / "viewer"
SCRIPT = re.compile(r'<script type="module" src="([\w.-]+)"></script>\n')
STYLE = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">')


def read(name):
    return (VIEWER / name).read_text(encoding="utf-8")


def style(name):
    css = re.sub(r"([{:;,]) +", r"\1", read(name))
    return re.sub(r"\n\s+", "\n", re.sub(r" +{", "{", css))


def bundle():
    """index.html with its style sheet and modules inside, as the build does it."""
    page = STYLE.sub(lambda match: f"<style>\n{style(match[1])}</style>", read("index.html"))
    modules = []
    for name in SCRIPT.findall(page):
        code = re.sub(r"(?m)^import .*\n", "", read(name))
        modules.append(re.sub(r"(?m)^export ", "", code))
    code = re.sub(r"(?m)^[ \t]*//.*|  +// .*", "", "".join(modules))
    code = re.sub(r"\n[ \t\n]+", "\n", code)
    joined = '<script type="module">\n' + code + "</script>\n"
    first, rest = page.split(SCRIPT.search(page)[0], 1)
    return first + joined + SCRIPT.sub("", rest)


def ascii_json(value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def tokens_of(texts, pieces, without_spaces):
    """Columns of the header: words are runs of letters or single marks, cut into pieces of at most `pieces`."""
    columns = {name: [] for name in ("tokens", "ids", "offsets", "sequence", "special", "word")}

    def add(token, offset, sequence, special, word):
        for name, value in zip(columns, (token, len(columns["tokens"]) + 1, offset, sequence, special, word)):
            columns[name].append(value)

    words = []
    add("[CLS]", [0, 0], -1, 1, -1)
    for sequence, text in enumerate(texts):
        parts = re.finditer(r"\S+" if without_spaces else r"\w+|[^\w\s]", text)
        for part in parts:
            begin, end = part.span()
            first = len(columns["tokens"])
            for at in range(begin, end, pieces):
                stop = min(end, at + pieces)
                add(("##" if at > begin else "") + text[at:stop].lower(), [at, stop], sequence, 0, len(words))
            words.append({"sequence": sequence, "begin": begin, "end": end,
                          "tokens": [first, len(columns["tokens"])]})
        add("[SEP]", [0, 0], -1, 1, -1)
    return {**columns, "words": words}


def softmax_rows(rng, size, peak, causal, window):
    """A matrix [size, size] of weights, peaked near token i + peak."""
    rows = []
    for i in range(size):
        seen = [(not causal or j <= i) and (window is None or abs(i - j) <= window) for j in range(size)]
        scores = [math.exp(rng.gauss(0, 1) - abs(i + peak - j) / 3) if ok else 0.0 for j, ok in enumerate(seen)]
        total = sum(scores)
        rows.append([score / total for score in scores])
    return rows


def encode_block(heads, exact):
    if exact:
        data = b"".join(struct.pack("<e", w) for rows in heads for row in rows for w in row)
    else:
        data = bytes(round(255 * math.sqrt(w)) for rows in heads for row in rows for w in row)
    return base64.b64encode(zlib.compress(data, 9)).decode()


def decoded(weight, exact):
    """The weight that the page gets to see."""
    if exact:
        return struct.unpack("<e", struct.pack("<e", weight))[0]
    return (round(255 * math.sqrt(weight)) / 255) ** 2


def positions():
    places = list(range(0, 64, 4))
    table = [round(127 * math.sin(p / 10000 ** (c / 16))) for p in places for c in range(16)]
    alike = [round(127 * math.exp(-abs(a - b) / 16)) for a in places for b in places]
    pack = lambda values: base64.b64encode(struct.pack(f"{len(values)}b", *values)).decode()
    return {"kind": "sinusoidal", "count": 64, "size": 16, "sampled_positions": places,
            "sampled_columns": list(range(16)), "table": pack(table), "table_scale": 1 / 127, "similarity": pack(alike)}


def make(texts, layers=3, heads=4, exact=False, runs=1, causal=False, window=None, pieces=5, no_tokens=False,
         without_spaces=False, truncated=False, chosen_heads=None, seed=7):
    """(header, weights[run][layer][head][query][key])."""
    columns = tokens_of(texts, pieces, without_spaces)
    if no_tokens:
        columns = {name: [] for name in columns}
    size = len(columns["tokens"])
    rng = random.Random(seed)
    chosen = chosen_heads or [list(range(heads))] * layers
    present = [layer for layer in range(layers) if chosen[layer]]
    windows = [window if layer % 2 else None for layer in present]
    weights = [[[softmax_rows(rng, size, head - 1, causal, windows[i]) for head in chosen[layer]]
                for i, layer in enumerate(present)] for _ in range(runs)]
    header = {
        "format": "pozor-attention", "format_version": 1, "pozor": "test", "source": "embedded",
        "texts": texts, "truncated": truncated, "max_length": 512, "segments": [0] * size, **columns,
        "byte_offsets": columns["offsets"], "layer_count": layers, "head_count": heads, "layers": present,
        "heads": [chosen[layer] for layer in present],
        "attention": [{"causal": causal, "window": w} for w in windows],
        "encoding": "f16" if exact else "sqrt-u8", "positions": positions(),
        "runs": [{"label": "AB"[run] if runs > 1 else "", "model": "made-up", "architecture": "BERT",
                  "precision": ("f32", "int8")[run], "tier": "none", "weights_hash": "0" * 64,
                  "self_check": {"max_row_sum_error": 2e-7, "max_vector_difference": None}} for run in range(runs)],
    }
    return header, weights


def page_of(header, weights):
    exact = header["encoding"] == "f16"
    parts = [f'<script type="application/json" id="pozor-data">{ascii_json(header)}</script>']
    for run, layers in enumerate(weights):
        for layer, heads in zip(header["layers"], layers):
            parts.append(f'<script type="text/plain" id="pozor-run-{run}-layer-{layer}">{encode_block(heads, exact)}</script>')
    page = bundle()
    assert page.count("<!-- pozor:data -->") == 1
    return page.replace("<!-- pozor:data -->", "\n".join(parts))
