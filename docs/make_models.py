#!/usr/bin/env python3
"""Writes models.md beside this file from what the architecture test says about itself.

    docs/make_models.py BUILD_DIR [--check]

BUILD_DIR holds bin/models_architectures_test. With --check nothing is written: exit code 1 if
models.md is not what the tests say.
"""
import pathlib
import subprocess
import sys

HEAD = """# Models that Pozor runs

Written by `docs/make_models.py` from the architecture test; do not edit.

A model is recognised by `model_type` in its `config.json` (or by `architectures[0]`), never by its
name. Every tensor must be in its place, every configuration value that changes the mathematics is
honoured or refused by name, and `pozor info MODEL` tells what each one did.

A tick stands for golden numbers of the reference library: hidden states of all layers and attention
rows of a tiny model with random weights agree within 2e-5 + 1e-5 |x|. The same folders prove that
a text has the same bits in any batch, mode and number of threads, on every tier with fused
multiply-add.

| family | `model_type` | tested on |
|---|---|---|
"""

NOTES = """
## Limits worth knowing

* **BERT** with `is_decoder` is causal; `relative_key` and `relative_key_query` positions are run.
* **RoBERTa** and its relatives count positions from `pad_token_id` + 1; that many fewer tokens fit.
* **BigBird** with `block_sparse` attention is run as far as transformers itself takes full
  attention for it: (5 + 2 `num_random_blocks`) `block_size` tokens.
* **Longformer** looks through its windows at linear cost. Plain encoding has no global tokens, as in
  transformers; callers of the engine may name some.
* **JinaBERT v2**: the numbers are our own reading of the paper, in double precision
  (`tests/data/architectures/make_jina_bert.py`), as no reference library runs it. The variant for
  code, with norms of queries and keys, is refused.
* **NomicBERT**: a folder with `rotary_scaling_factor` takes texts of up to `max_trained_positions`
  tokens, where its angles do not depend on the length of the text. Mixtures of experts (v2) are
  refused.
* **jina-embeddings-v3** gives the vectors of the model itself; its adapters are not applied.
* **GTE** with `logn_attention_scale` or RMS norms is refused.
* **Llama**, **Mistral** and **Qwen** are causal unless `is_causal` is false, **Gemma 3** unless
  `use_bidirectional_attention` is true. A folder that brings its own code (`auto_map`) is refused.
* Models without a position table take texts of up to 65,536 tokens.
* **SqueezeBERT**'s convolutions in groups run as whole matrices, with zeros outside the groups.
  transformers hands out its scores where other models have attention; Pozor gives the softmax.
* Rotary scaling is run where it is none, `linear`, or GTE's `ntk`; others are refused.

## The original Transformer encoder

`torch.nn.TransformerEncoder` has no configuration file of its own. A folder of such weights
(`embedding.weight`, `encoder.layers.N.*` or `layers.N.*`, `encoder.norm.*`) needs a `config.json`:

| key | value |
|---|---|
| `model_type` | `transformer-encoder` |
| `vocab_size`, `d_model`, `num_heads`, `num_layers`, `d_ff` | sizes |
| `activation` | `relu` (default), `gelu`, ... |
| `norm_first` | `true`: norms before the sublayers; default `false` |
| `final_norm` | `true`: a norm after the last layer; default `false` |
| `layer_norm_eps` | default 1e-5 |
| `positional_encoding` | `sinusoidal-interleaved` (default), `sinusoidal-halves`, `none` |
| `scale_embedding` | word rows times sqrt(`d_model`); default `true` |
| `max_position_embeddings` | longest text |
"""


def families(build):
    program = pathlib.Path(build) / "bin/models_architectures_test"
    run = subprocess.run([program, "--test-case=goldens of every architecture"],
                         capture_output=True, text=True, check=False)
    rows = {}
    for line in run.stdout.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if not line.startswith("| ") or len(cells) != 4 or cells[0] == "folder":
            continue
        folder, model_type, family, difference = cells
        tick = "✓" if float(difference) <= 1 else "✗"
        rows.setdefault((family, model_type), []).append(f"{folder} {tick}")
    return rows


def main():
    rows = families(sys.argv[1])
    if not rows:
        sys.exit("make_models.py: no table in the output of models_architectures_test; build it")
    lines = [f"| {family} | `{model_type}` | {', '.join(folders)} |\n"
             for (family, model_type), folders in sorted(rows.items(), key=lambda row: row[0][0].lower())]
    text = HEAD + "".join(lines) + NOTES
    path = pathlib.Path(__file__).with_name("models.md")
    if "--check" in sys.argv[2:]:
        if not path.exists() or path.read_text() != text:
            sys.exit("docs/models.md is not what the tests say; run docs/make_models.py BUILD_DIR")
        return
    path.write_text(text)


main()
