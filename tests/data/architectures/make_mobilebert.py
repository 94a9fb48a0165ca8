#!/usr/bin/env python3
"""Writes the mobilebert folders beside this file: tiny MobileBERTs with random weights, and what
transformers gives for them in double precision. Needs torch and transformers.
"""
import json
import pathlib

import numpy as np
import torch
import transformers

from twin import write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {
    "vocab_size": 70, "hidden_size": 42, "num_attention_heads": 3, "intermediate_size": 34,
    "num_hidden_layers": 2, "max_position_embeddings": 48, "embedding_size": 12,
    "intra_bottleneck_size": 24, "num_feedforward_networks": 3,
}
VARIANTS = {
    "mobilebert": {},
    "mobilebert-one-bottleneck": {
        "use_bottleneck_attention": True, "num_feedforward_networks": 1, "trigram_input": False,
        "intermediate_size": 70, "hidden_act": "gelu", "classifier_activation": False},
    "mobilebert-no-bottleneck": {
        "use_bottleneck": False, "num_feedforward_networks": 2, "trigram_input": False,
        "hidden_size": 36, "embedding_size": 36},
}


def randomise(model, generator):
    """Gains about 1, shifts and biases about 0, weights that keep the size of what they read."""
    for name, value in model.named_parameters():
        noise = torch.randn(value.shape, generator=generator, dtype=torch.float32)
        if name.endswith("LayerNorm.weight"):
            noise = 0.8 + 0.1 * noise
        elif value.dim() == 1:
            noise = 0.1 * noise
        elif "embeddings." in name and "transformation" not in name:
            noise = 0.6 * noise
        else:
            noise = noise * value.shape[1] ** -0.5
        value.data = noise


def make(name, changes, seed):
    out = HERE / name
    out.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    config = transformers.MobileBertConfig(**(SIZES | changes), attn_implementation="eager")
    model = transformers.MobileBertModel(config).eval()
    randomise(model, generator)
    write_safetensors(out / "model.safetensors",
                      {key: value.numpy() for key, value in model.state_dict().items()})
    model.double()
    tensors, texts = {}, []
    for index, length in enumerate((1, 2, 7, 40)):
        ids = torch.randint(0, config.vocab_size, (1, length), generator=generator)
        types = (torch.arange(length) >= length // 2).long()[None]
        with torch.no_grad():
            result = model(ids, token_type_ids=types, output_hidden_states=True,
                           output_attentions=True)
        tensors[f"text.{index}.hidden"] = torch.cat(result.hidden_states).numpy()
        tensors[f"text.{index}.attn"] = torch.cat(result.attentions).numpy()
        if config.classifier_activation:
            tensors[f"text.{index}.pooler"] = result.pooler_output[0].numpy()
        texts.append({"index": index, "text": "", "ids": ids[0].tolist(),
                      "type_ids": types[0].tolist()})
    settings = config.to_dict() | {"architectures": ["MobileBertModel"]}
    for key in ("transformers_version", "_attn_implementation", "dtype"):
        settings.pop(key, None)
    (out / "config.json").write_text(json.dumps(settings, indent=1) + "\n")
    write_safetensors(out / "golden.safetensors", tensors)
    golden = {"what": f"MobileBERT {changes}, random weights",
              "made_with": f"transformers {transformers.__version__}, double precision",
              "tolerance": {"abs": 2e-5, "rel": 1e-5}, "texts": texts}
    (out / "golden.json").write_text(json.dumps(golden) + "\n")
    print(name, float(np.abs(tensors["text.3.hidden"]).max()))


for number, (folder, variant) in enumerate(VARIANTS.items()):
    make(folder, variant, 20200406 + number)
