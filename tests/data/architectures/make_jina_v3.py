#!/usr/bin/env python3
"""Writes jina-embeddings-v3-tasks/ beside this file: a tiny jina-embeddings-v3 with an adapter for
each of its tasks and random weights, and its numbers.

The adapters are our own reading of the paper (arXiv 2409.10173) and of the layout of the published
weights, in plain double precision; those of the model without them are checked against
transformers' elsewhere. Needs numpy.
"""
import numpy as np

from twin import RandomWeights, RotaryTwin, write_folder

HIDDEN, HEADS, INNER, LAYERS, VOCAB, RANK, ALPHA, THETA = 24, 3, 40, 2, 60, 3, 2, 20000.0
TASKS = ["retrieval.query", "retrieval.passage", "separation", "classification", "text-matching"]
CONFIG = {
    "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "hidden_act": "gelu",
    "auto_map": {"AutoModel": "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA"},
    "position_embedding_type": "rotary", "rotary_emb_base": THETA, "hidden_size": HIDDEN,
    "num_attention_heads": HEADS, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB, "max_position_embeddings": 66, "type_vocab_size": 1,
    "layer_norm_eps": 1e-5, "pad_token_id": 1, "emb_pooler": "mean", "use_flash_attn": True,
    "lora_adaptations": TASKS, "lora_rank": RANK, "lora_alpha": ALPHA, "lora_dropout_p": 0.0,
    "lora_main_params_trainable": False, "load_trained_adapters": True,
    "matryoshka_dimensions": [8, 16, 24], "truncate_dim": None,
    "task_instructions": {task: "Query: " if task == "retrieval.query" else "" for task in TASKS},
}
TABLES = {"embeddings.word_embeddings": VOCAB, "embeddings.token_type_embeddings": 1}
LAYER = {"mixer.Wqkv": (3 * HIDDEN, HIDDEN), "mixer.out_proj": (HIDDEN, HIDDEN),
         "mlp.fc1": (INNER, HIDDEN), "mlp.fc2": (HIDDEN, INNER)}


def adapted(weights, stem, rows, columns, a_shape, b_shape):
    stem = f"roberta.{stem}.parametrizations.weight."
    weights.normal(stem + "original", rows, columns, deviation=0.2)
    weights.normal(stem + "0.lora_A", len(TASKS), *a_shape, deviation=0.2)
    weights.normal(stem + "0.lora_B", len(TASKS), *b_shape, deviation=0.2)


def make_weights(weights):
    for stem, rows in TABLES.items():
        adapted(weights, stem, rows, HIDDEN, (rows, RANK), (RANK, HIDDEN))
    weights.norm("roberta.emb_ln")
    for layer in range(LAYERS):
        for name, (outputs, inputs) in LAYER.items():
            stem = f"encoder.layers.{layer}.{name}"
            adapted(weights, stem, outputs, inputs, (RANK, inputs), (outputs, RANK))
            weights.normal(f"roberta.{stem}.bias", outputs, deviation=0.1)
        for name in ("norm1", "norm2"):
            weights.norm(f"roberta.encoder.layers.{layer}.{name}")


class Twin(RotaryTwin):
    """The model for one task, or without adapters."""

    def __init__(self, tensors, task):
        super().__init__({name.removeprefix("roberta."): value for name, value in tensors.items()},
                         CONFIG["layer_norm_eps"])
        for name in [name for name in self.w if name.endswith(".original")]:
            stem = name.removesuffix(".original")
            weight = self.w[name]
            if task is not None:
                a, b = (self.w[f"{stem}.0.lora_{letter}"][TASKS.index(task)] for letter in "AB")
                weight = weight + (a @ b if "embeddings" in stem else b @ a) * (ALPHA / RANK)
            self.w[stem.removesuffix(".parametrizations.weight") + ".weight"] = weight

    def run(self, ids):
        return self.run_layers(ids, layers=LAYERS, heads=HEADS, theta=THETA, mixer="mixer")


def main():
    weights = RandomWeights(20240916, HIDDEN)
    make_weights(weights)
    chosen, tensors, texts = "text-matching", {}, []
    twins = {task: Twin(weights.tensors, task) for task in [None] + TASKS}
    for index, length in enumerate((1, 6, 29)):
        ids = weights.random.integers(0, VOCAB, length).tolist()
        hidden, attention = twins[chosen].run(ids)
        tensors |= {f"text.{index}.hidden": hidden, f"text.{index}.attn": attention}
        texts.append({"index": index, "text": "", "ids": ids})
        if length == 6:
            tensors |= {f"task.{task or ''}.hidden": twin.run(ids)[0] for task, twin in twins.items()}
    golden = {"what": "jina-embeddings-v3 with adapters", "task": chosen, "task_text": 1,
              "texts": texts}
    write_folder("jina-embeddings-v3-tasks", CONFIG, weights.tensors, golden, tensors)


main()
