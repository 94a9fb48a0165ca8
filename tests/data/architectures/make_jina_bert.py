#!/usr/bin/env python3
"""Writes jina-bert/ beside this file: a tiny JinaBERT v2 with random weights, and its numbers.

No reference library runs JinaBERT here, so this is our own reading of the paper (arXiv 2310.19923)
and of the layout of the published weights, in plain double precision. Needs numpy.
"""
import json
import math
import pathlib
import struct

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent / "jina-bert"
HIDDEN, HEADS, INNER, LAYERS, VOCAB, POSITIONS = 36, 3, 50, 2, 90, 64
CONFIG = {
    "architectures": ["JinaBertModel"], "model_type": "bert", "position_embedding_type": "alibi",
    "feed_forward_type": "geglu", "hidden_act": "gelu", "hidden_size": HIDDEN,
    "num_attention_heads": HEADS, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "pad_token_id": 0,
}
RANDOM = np.random.default_rng(20231019)


def normal(*shape, deviation, mean=0.0):
    return (mean + deviation * RANDOM.standard_normal(shape)).astype(np.float32)


def make_weights():
    weights = {
        "embeddings.word_embeddings.weight": normal(VOCAB, HIDDEN, deviation=0.5),
        "embeddings.token_type_embeddings.weight": normal(2, HIDDEN, deviation=0.5),
    }
    def norm(stem):
        weights[stem + ".weight"] = normal(HIDDEN, deviation=0.2, mean=1.0)
        weights[stem + ".bias"] = normal(HIDDEN, deviation=0.1)
    def dense(stem, outputs, inputs, bias=True):
        weights[stem + ".weight"] = normal(outputs, inputs, deviation=0.2)
        if bias:
            weights[stem + ".bias"] = normal(outputs, deviation=0.1)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        stem = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            dense(stem + "attention.self." + name, HIDDEN, HIDDEN)
        dense(stem + "attention.output.dense", HIDDEN, HIDDEN)
        norm(stem + "attention.output.LayerNorm")
        dense(stem + "mlp.gated_layers", 2 * INNER, HIDDEN, bias=False)
        dense(stem + "mlp.wo", HIDDEN, INNER)
        norm(stem + "mlp.layernorm")
    dense("pooler.dense", HIDDEN, HIDDEN)
    return weights


def slopes(heads):
    """2^(-8 (h + 1) / n) for a power of two; else those of the power below, then every other one
    of twice as many."""
    power = 2 ** int(math.floor(math.log2(heads)))
    first = [2.0 ** (-8.0 * (h + 1) / power) for h in range(power)]
    rest = [2.0 ** (-8.0 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    return (first + rest)[:heads]


class Twin:
    def __init__(self, weights):
        self.w = {name: value.astype(np.float64) for name, value in weights.items()}

    def dense(self, stem, x):
        return x @ self.w[stem + ".weight"].T + self.w.get(stem + ".bias", 0.0)

    def norm(self, stem, x):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(-1, keepdims=True) + CONFIG["layer_norm_eps"])
        return centred / deviation * self.w[stem + ".weight"] + self.w[stem + ".bias"]

    def attend(self, stem, x):
        tokens, size = len(x), HIDDEN // HEADS
        heads = [self.dense(stem + name, x).reshape(tokens, HEADS, size)
                 for name in ("query", "key", "value")]
        distance = np.abs(np.subtract.outer(np.arange(tokens), np.arange(tokens)))
        rows, context = [], []
        for head, slope in enumerate(slopes(HEADS)):
            q, k, v = (part[:, head] for part in heads)
            scores = q @ k.T / math.sqrt(size) - slope * distance
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            rows.append(weights)
            context.append(weights @ v)
        return np.concatenate(context, -1), np.stack(rows)

    def run(self, ids, types):
        gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))
        x = (self.w["embeddings.word_embeddings.weight"][ids]
             + self.w["embeddings.token_type_embeddings.weight"][types])
        x = self.norm("embeddings.LayerNorm", x)
        hidden, attention = [x], []
        for layer in range(LAYERS):
            stem = f"encoder.layer.{layer}."
            context, rows = self.attend(stem + "attention.self.", x)
            x = self.norm(stem + "attention.output.LayerNorm",
                          x + self.dense(stem + "attention.output.dense", context))
            halves = self.dense(stem + "mlp.gated_layers", x)
            inner = gelu(halves[:, :INNER]) * halves[:, INNER:]
            x = self.norm(stem + "mlp.layernorm", x + self.dense(stem + "mlp.wo", inner))
            hidden.append(x)
            attention.append(rows)
        return np.stack(hidden), np.stack(attention), np.tanh(self.dense("pooler.dense", x[0]))


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    OUT.mkdir(exist_ok=True)
    weights = make_weights()
    twin, tensors, texts = Twin(weights), {}, []
    for index, length in enumerate((1, 7, 50)):
        ids = RANDOM.integers(0, VOCAB, length).tolist()
        types = [int(t >= length // 2) for t in range(length)]
        hidden, attention, pooler = twin.run(ids, types)
        tensors |= {f"text.{index}.hidden": hidden, f"text.{index}.attn": attention,
                    f"text.{index}.pooler": pooler}
        texts.append({"index": index, "text": "", "ids": ids, "type_ids": types})
    (OUT / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    write_safetensors(OUT / "model.safetensors", weights)
    write_safetensors(OUT / "golden.safetensors", tensors)
    golden = {"what": "JinaBERT v2 by our own reading, in double precision",
              "tolerance": {"abs": 2e-5, "rel": 1e-5}, "texts": texts}
    (OUT / "golden.json").write_text(json.dumps(golden) + "\n")


main()
