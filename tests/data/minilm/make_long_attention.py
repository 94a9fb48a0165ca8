#!/usr/bin/env python3
"""Writes long_attention.json beside this file: attentions of all-MiniLM-L6-v2 over a text of 512 tokens.

    make_long_attention.py MODEL_FOLDER

Needs torch, transformers, tokenizers. 72 matrices of 512 x 512 are too many to keep, so of each there are 40 weights at
places drawn at random, the place and the weight of the largest one of 8 rows, and, so that no weight goes unseen, the
sum of all squares.
"""
import json
import pathlib
import random
import sys

import tokenizers
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parent / "long_attention.json"
TOKENS = 512
WORDS = ("the bank of a river was muddy and people went to another one in town where money is kept while cats dogs "
         "engineers 42 unbelievably quick brown foxes re-read Köln's timetable, didn't they? Yes; (mostly) at 7:30 !").split()


def make_text(tokenizer):
    rng, words = random.Random(512), []
    while len(tokenizer.encode(" ".join(words)).ids) < TOKENS:
        words.append(rng.choice(WORDS))
    return " ".join(words)


def main(folder):
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    text = make_text(tokenizer)
    ids = tokenizer.encode(text).ids[:TOKENS - 1] + [tokenizer.token_to_id("[SEP]")]
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
    rng, heads = random.Random(7), []
    for layer, weights in enumerate(attentions):
        for head, matrix in enumerate(weights[0].double()):
            places = [(rng.randrange(TOKENS), rng.randrange(TOKENS)) for _ in range(40)]
            rows = [rng.randrange(TOKENS) for _ in range(8)]
            heads.append({
                "layer": layer, "head": head, "sum_of_squares": float((matrix ** 2).sum()),
                "weights": [[i, j, float(f"{matrix[i, j]:.9g}")] for i, j in places],
                "largest": [[i, int(matrix[i].argmax()), float(f"{matrix[i].max():.9g}")] for i in rows]})
    made_with = f"torch {torch.__version__}, transformers {transformers.__version__}"
    head = {"what": "all-MiniLM-L6-v2, eager attentions", "made_with": made_with, "tolerance": 1e-5, "text": text, "ids": ids}
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in heads)
    OUT.write_text(json.dumps(head)[:-1] + ',\n"heads": [\n' + lines + "\n]}\n", encoding="utf-8")


main(sys.argv[1])
