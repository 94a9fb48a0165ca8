#!/usr/bin/env python3
"""Writes models.md and precision.md beside this file from what the tests of models say.

    docs/make_models.py BUILD_DIR [--check]

BUILD_DIR holds bin/models_architectures_test and bin/models_precision_test. With --check nothing is
written: exit code 1 if the files are not what the tests say. Numbers of precision.md are not
checked, as those of bf16 depend on the CPU; the test itself bounds them.
"""
import pathlib
import subprocess
import sys

HEAD = """# Models that Pozor runs

Written by `docs/make_models.py` from the architecture test; do not edit.

A model is recognised by `model_type` in its `config.json` (or by `architectures[0]`), never by its
name. Every tensor must be in its place, every configuration value that changes the mathematics is
honoured or refused by name, and `pozor info MODEL` tells what each one did.

A tick stands for golden numbers of the reference library, or of our own reading where the notes
below say so: hidden states of all layers and attention rows of a tiny model with random weights
agree within 2e-5 + 1e-5 |x|. The same folders prove that a text has the same bits in any batch,
mode and number of threads, on every tier with fused multiply-add.

| family | `model_type` | tested on |
|---|---|---|
"""

NOTES = """
## Limits worth knowing

* **BERT** with `is_decoder` is causal; `relative_key` and `relative_key_query` positions are run.
* **RoBERTa** and its relatives count positions from `pad_token_id` + 1; that many fewer tokens fit.
* **DeBERTa** v1, v2 and v3 run with any of `c2p` and `p2c`, with and without buckets, shared or own
  projections of positions, and v2's convolution; scores of positions and the convolution are f32 in
  every precision. A text has up to `max_position_embeddings` tokens, with or without a position
  table. `p2p`, `talking_head`, a convolution in groups and `z_steps` above 1 are refused. v1 has no
  buckets, as in transformers. The vectors are those of the model itself; the heads in such a folder
  (pooler, classifier, masked language model) are not applied.
* **BigBird** with `block_sparse` attention is run as far as transformers itself takes full
  attention for it: (5 + 2 `num_random_blocks`) `block_size` tokens.
* Windows cost what they show: a token of 4,096 takes 1.26 times as long as one of 512 in
  **Longformer** (base shape, `attention_window` 512, whose edges hide a quarter of the keys at 512)
  and 1.18 times in **ModernBERT**'s local layers, on an AVX2 machine with
  `pozor bench DIR --workload fixed-512,fixed-4096 --threads 1 --max-length 4096`.
* **Longformer** looks through its windows. Plain encoding has no global tokens, as in
  transformers; callers of the engine may name some.
* **JinaBERT v2**: the numbers are our own reading of the paper, in double precision
  (`tests/data/architectures/make_jina_bert.py`), as no reference library runs it. So are those of
  its variant for code, which norms queries and keys over all heads.
* **NomicBERT**: a folder with `rotary_scaling_factor` takes texts of up to `max_trained_positions`
  tokens, where its angles do not depend on the length of the text.
* **NomicBERT v2-MoE**: the numbers are our own reading of the paper and of the layout of the
  published weights, in double precision (`tests/data/architectures/make_nomic_moe.py`). Experts run
  in f32, bf16 or int8 as all products do; which experts a token goes to is decided in f32.
* **jina-embeddings-v3**: `--task retrieval.query` (`LoadOptions::task`, `pozor_load_options.task`)
  merges that task's adapter into the weights at load and makes its instruction the default prompt,
  as the published code's `encode(task=...)` does. Without a task the adapters are left out, as
  there. Numbers of the adapters are our own reading (`tests/data/architectures/make_jina_v3.py`).
* **GTE** with `logn_attention_scale` or RMS norms is refused.
* **Llama**, **Mistral** and **Qwen** are causal unless `is_causal` is false, **Gemma 3** unless
  `use_bidirectional_attention` is true. A folder that brings its own code (`auto_map`) is refused.
* Models without a position table take texts of up to 65,536 tokens.
* **SqueezeBERT**'s convolutions in groups run as whole matrices, with zeros outside the groups.
  transformers hands out its scores where other models have attention; Pozor gives the softmax.
* **MobileBERT** is run with gains and shifts in place of norms (`no_norm`), as it is published; its
  variant with `layer_norm` is refused. Lists of products count every further feed-forward of a layer
  as a layer of its own.
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


PRECISION = """# What int8 and bf16 keep

Written by `docs/make_models.py` from `tests/models/precision_test.cc`, which bounds these numbers; do
not edit.

Every golden folder runs in f32, int8 and bf16. A text's vector is the mean over its tokens of the last
hidden states; its cosine is taken to the one in f32. The largest difference is that of any element of
any layer's hidden states; the largest value says how large these are.

These are tiny models with random weights and 30 to 90 columns. The table shows whether an
architecture falls out of line, not what a trained model keeps: `pozor quantize` measures that for
each (the README has MiniLM's numbers).

* **int8** is the default scheme (u8 rows, s8 weights, smoothing, bias correction, int8 attention),
  calibrated on the built-in text where the folder has a tokenizer, else on random tokens.
* Usual is a cosine of at least 0.9995 in the mean and 0.999 for every text in int8, 0.9998 and 0.9995
  in bf16. Notes say what is worse and why, and what int8 leaves in f32 by itself: products whose
  integers would not be what the model means. Embeddings, their projection,
  the projections of global tokens, scores of positions, DeBERTa's convolution, norms, softmax and
  residual sums are f32.
* **bf16** rounds weights to bf16. These numbers come from a CPU without bf16 products, where the
  weights are widened and the mathematics is f32; CPUs that have them round the inputs as well.
* **bf16x3** (AMX only; elsewhere it is f32) has no column: vectors of these folders, made of length one,
  are within 9e-6 of those of f32, and `tests/models/bf16x3_test.cc` bounds that by 2e-5.
  Of all-MiniLM-L6-v2 50 short and 6 long texts are within 1.9e-6 (bf16 on AMX: 1.1e-3), emulated.

| folder | `model_type` | largest value | int8 cosine, mean | least | largest difference | bf16 cosine, mean | least | largest difference | notes |
|---|---|---|---|---|---|---|---|---|---|
"""


def table(build, program, case, columns):
    """Rows of the table with that many columns which a test prints."""
    run = subprocess.run([pathlib.Path(build) / "bin" / program, "--test-case=" + case],
                         capture_output=True, text=True, check=False)
    rows = []
    for line in run.stdout.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if line.startswith("| ") and len(cells) == columns and cells[0] != "folder":
            rows.append(cells)
    if not rows:
        sys.exit(f"make_models.py: no table in the output of {program}; build it")
    return rows


def models(build):
    families = {}
    for folder, model_type, family, difference in table(
            build, "models_architectures_test", "goldens of every architecture", 4):
        tick = "✓" if float(difference) <= 1 else "✗"
        families.setdefault((family, model_type), []).append(f"{folder} {tick}")
    lines = [f"| {family} | `{model_type}` | {', '.join(folders)} |\n"
             for (family, model_type), folders in sorted(families.items(),
                                                         key=lambda row: row[0][0].lower())]
    return HEAD + "".join(lines) + NOTES


def precision(build):
    rows = table(build, "models_precision_test", "int8 and bf16 of every architecture", 10)
    return PRECISION + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def without_numbers(text):
    lines = [line.split("|") for line in text.splitlines()]
    return [line if len(line) < 12 else line[:3] + line[-2:] for line in lines]


def main():
    folder = pathlib.Path(__file__).parent
    for name, text, same in (("models.md", models(sys.argv[1]), lambda text: text),
                             ("precision.md", precision(sys.argv[1]), without_numbers)):
        path = folder / name
        if "--check" not in sys.argv[2:]:
            path.write_text(text)
        elif not path.exists() or same(path.read_text()) != same(text):
            sys.exit(f"docs/{name} is not what the tests say; run docs/make_models.py BUILD_DIR")


main()
