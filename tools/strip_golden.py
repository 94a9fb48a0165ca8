#!/usr/bin/env python3
"""Copies golden folders to tests/data/architectures with only what the architecture test needs.

    tools/strip_golden.py GOLDENS_FOLDER NAME...

Kept are configuration and weights, a few texts with their hidden states and attention rows, one
pair, and every text that holds the padding token. Tokenizers are not: they have tests of their own.
"""
import json
import math
import pathlib
import shutil
import struct
import sys

OUT = pathlib.Path(__file__).resolve().parents[1] / "tests/data/architectures"


def read_safetensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    data = raw[8 + size:]
    return {name: (entry, data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (entry, values) in tensors.items():
        header[name] = {"dtype": entry["dtype"], "shape": entry["shape"],
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def chosen_texts(texts, tensors, pad):
    """Short, middling and longest among those that show attention; and texts with a pad token."""
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]["ids"]))
    shows = lambda i, kind: any(n.startswith(f"text.{i}.{kind}") for n in tensors)
    rich = [i for i in by_length if shows(i, "attn")] or [i for i in by_length if shows(i, "")]
    keep = {rich[0], rich[len(rich) // 2], rich[-1]}
    keep |= {i for i in by_length if pad in texts[i]["ids"][1:-1] and shows(i, "")}
    return sorted(keep)


def softmax_rows(tensor):
    """transformers hands out SqueezeBERT's scores where other models have the softmax of them."""
    entry, data = tensor
    scores = struct.unpack(f"<{len(data) // 4}f", data)
    columns, out = entry["shape"][-1], []
    for begin in range(0, len(scores), columns):
        row = [math.exp(score) for score in scores[begin:begin + columns]]
        out += [value / sum(row) for value in row]
    return entry, struct.pack(f"<{len(out)}f", *out)


def entry(item, index):
    kept = {key: value for key, value in item.items()
            if key in ("text", "pair", "ids", "type_ids") or key.startswith("global")}
    return {"index": index, **kept}


def strip(source, name):
    folder, out = source / name, OUT / name
    out.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "config.v4.json", "model.safetensors"):
        if (folder / file).exists():
            shutil.copyfile(folder / file, out / file)
    golden = json.loads((folder / "golden.json").read_text())
    if "same_as" in golden:
        (out / "golden.json").write_text(json.dumps({"same_as": golden["same_as"]}) + "\n")
        return
    tensors = read_safetensors(folder / "golden.safetensors")
    if json.loads((folder / "config.json").read_text())["model_type"] == "squeezebert":
        tensors = {n: softmax_rows(t) if n.endswith(".attn") else t for n, t in tensors.items()}
    pad = json.loads((folder / "config.json").read_text()).get("pad_token_id")
    texts = chosen_texts(golden["texts"], tensors, pad)
    pairs = [i for i in range(len(golden.get("pairs", []))) if f"pair.{i}.last" in tensors][:1]
    stems = [f"text.{i}." for i in texts] + [f"pair.{i}." for i in pairs]
    write_safetensors(out / "golden.safetensors",
                      {n: t for n, t in tensors.items() if n.startswith(tuple(stems))})
    small = {"what": golden["what"], "tolerance": golden["tolerance"],
             "made_with": golden["made_with"],
             "texts": [entry(golden["texts"][i], i) for i in texts],
             "pairs": [entry(golden["pairs"][i], i) for i in pairs]}
    (out / "golden.json").write_text(json.dumps(small) + "\n")


for name in sys.argv[2:]:
    strip(pathlib.Path(sys.argv[1]), name)
