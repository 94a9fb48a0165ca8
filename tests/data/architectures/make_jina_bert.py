#!/usr/bin/env python3
"""Writes jina-bert/ and jina-bert-code/ beside this file: a tiny JinaBERT v2 and one of its variant
for code, with random weights, and their numbers.

No reference library runs JinaBERT here, so this is our own reading of the paper (arXiv 2310.19923)
and of the layout of the published weights, in plain double precision. Needs numpy.
"""
import math

import numpy as np

from twin import Arithmetic, RandomWeights, attend, gelu, write_folder

HIDDEN, HEADS, INNER, LAYERS, VOCAB, POSITIONS = 36, 3, 50, 2, 90, 64
CONFIG = {
    "architectures": ["JinaBertModel"], "model_type": "bert", "position_embedding_type": "alibi",
    "feed_forward_type": "geglu", "hidden_act": "gelu", "hidden_size": HIDDEN,
    "num_attention_heads": HEADS, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "pad_token_id": 0,
}


def make_weights(weights, code):
    weights.normal("embeddings.word_embeddings.weight", VOCAB, HIDDEN, deviation=0.5)
    weights.normal("embeddings.token_type_embeddings.weight", 2, HIDDEN, deviation=0.5)
    weights.norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        stem = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            weights.dense(stem + "attention.self." + name, HIDDEN, HIDDEN)
        weights.dense(stem + "attention.output.dense", HIDDEN, HIDDEN)
        weights.norm(stem + "attention.output.LayerNorm")
        if code:
            for name in ("attention.self.layer_norm_q", "attention.self.layer_norm_k",
                         "layer_norm_1", "layer_norm_2"):
                weights.norm(stem + name)
            weights.dense(stem + "mlp.up_gated_layer", 2 * INNER, HIDDEN, bias=False)
            weights.dense(stem + "mlp.down_layer", HIDDEN, INNER)
        else:
            weights.dense(stem + "mlp.gated_layers", 2 * INNER, HIDDEN, bias=False)
            weights.dense(stem + "mlp.wo", HIDDEN, INNER)
            weights.norm(stem + "mlp.layernorm")
    weights.dense("pooler.dense", HIDDEN, HIDDEN)


def slopes(heads):
    """2^(-8 (h + 1) / n) for a power of two; else those of the power below, then every other one
    of twice as many."""
    power = 2 ** int(math.floor(math.log2(heads)))
    first = [2.0 ** (-8.0 * (h + 1) / power) for h in range(power)]
    rest = [2.0 ** (-8.0 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    return (first + rest)[:heads]


class Twin(Arithmetic):
    def attend(self, stem, x, code):
        query, key, value = (self.dense(stem + name, x) for name in ("query", "key", "value"))
        if code:  # over all heads together
            query = self.norm(stem + "layer_norm_q", query)
            key = self.norm(stem + "layer_norm_k", key)
        places = np.arange(len(x))
        distance = np.abs(np.subtract.outer(places, places))
        return attend(query, key, value, HEADS, [-slope * distance for slope in slopes(HEADS)])

    def feed_forward(self, stem, x, code):
        if code:  # value, then gate
            halves = self.dense(stem + "mlp.up_gated_layer", x)
            return self.dense(stem + "mlp.down_layer", halves[:, :INNER] * gelu(halves[:, INNER:]))
        halves = self.dense(stem + "mlp.gated_layers", x)
        return self.dense(stem + "mlp.wo", gelu(halves[:, :INNER]) * halves[:, INNER:])

    def run(self, ids, types, code):
        x = (self.w["embeddings.word_embeddings.weight"][ids]
             + self.w["embeddings.token_type_embeddings.weight"][types])
        x = self.norm("embeddings.LayerNorm", x)
        hidden, attention = [x], []
        for layer in range(LAYERS):
            stem = f"encoder.layer.{layer}."
            context, rows = self.attend(stem + "attention.self.", x, code)
            attended = self.norm(stem + "attention.output.LayerNorm",
                                 x + self.dense(stem + "attention.output.dense", context))
            if code:  # the input of the layer is added once more
                attended = self.norm(stem + "layer_norm_1", x + attended)
            last = "layer_norm_2" if code else "mlp.layernorm"
            x = self.norm(stem + last, attended + self.feed_forward(stem, attended, code))
            hidden.append(x)
            attention.append(rows)
        return np.stack(hidden), np.stack(attention), np.tanh(self.dense("pooler.dense", x[0]))


def main():
    for name, code, seed in (("jina-bert", False, 20231019), ("jina-bert-code", True, 20240206)):
        weights = RandomWeights(seed, HIDDEN)
        make_weights(weights, code)
        twin, tensors, texts = Twin(weights.tensors, CONFIG["layer_norm_eps"]), {}, []
        for index, length in enumerate((1, 7, 30 if code else 50)):
            ids = weights.random.integers(0, VOCAB, length).tolist()
            types = [int(t >= length // 2) for t in range(length)]
            hidden, attention, pooler = twin.run(ids, types, code)
            tensors |= {f"text.{index}.hidden": hidden, f"text.{index}.attn": attention,
                        f"text.{index}.pooler": pooler}
            texts.append({"index": index, "text": "", "ids": ids, "type_ids": types})
        what = "JinaBERT v2's variant for code" if code else "JinaBERT v2"
        write_folder(name, CONFIG, weights.tensors, {"what": what, "texts": texts}, tensors)


main()
