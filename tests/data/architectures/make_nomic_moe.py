#!/usr/bin/env python3
"""Writes nomic-bert-moe/ beside this file: a tiny NomicBERT v2-MoE with random weights, and its
numbers.

No reference library runs its experts here, so this is our own reading of the paper (arXiv
2502.07972) and of the layout of the published weights, in plain double precision. Needs numpy.
"""
import numpy as np

from twin import RandomWeights, RotaryTwin, gelu, softmax, write_folder

HIDDEN, HEADS, INNER, LAYERS, VOCAB, EXPERTS, CHOSEN, THETA = 24, 3, 20, 4, 60, 5, 2, 10000.0
CONFIG = {
    "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "gelu",
    "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
    "n_embd": HIDDEN, "n_head": HEADS, "n_inner": INNER, "n_layer": LAYERS, "n_positions": 64,
    "vocab_size": VOCAB, "type_vocab_size": 1, "layer_norm_epsilon": 1e-5, "prenorm": False,
    "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "causal": False,
    "moe_every_n_layers": 2, "num_experts": EXPERTS, "moe_top_k": CHOSEN, "moe_impl": "megablocks",
    "moe_normalize_expert_weights": False, "moe_resid_pdrop": 0.0, "expert_choice_router": False,
    "num_shared_experts": 0, "ffn_div": 1, "router_aux_loss_coef": 0.1, "pad_token_id": 1,
    "rotary_emb_base": THETA, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "max_trained_positions": 2048,
    "parallel_block": False, "use_rms_norm": False, "scale_attn_weights": True,
}


def has_experts(layer):
    return layer % CONFIG["moe_every_n_layers"] == 1


def make_weights(weights):
    weights.normal("embeddings.word_embeddings.weight", VOCAB, HIDDEN, deviation=0.5)
    weights.normal("embeddings.token_type_embeddings.weight", 1, HIDDEN, deviation=0.5)
    weights.norm("emb_ln")
    for layer in range(LAYERS):
        stem = f"encoder.layers.{layer}."
        weights.dense(stem + "attn.Wqkv", 3 * HIDDEN, HIDDEN)
        weights.dense(stem + "attn.out_proj", HIDDEN, HIDDEN)
        if has_experts(layer):
            weights.dense(stem + "mlp.router.layer", EXPERTS, HIDDEN, bias=False)
            for name in ("w1", "w2"):
                weights.normal(stem + "mlp.experts.mlp." + name, EXPERTS * INNER, HIDDEN,
                               deviation=0.3)
            weights.normal(stem + "mlp.experts.bias", HIDDEN, deviation=0.2)
        else:
            weights.dense(stem + "mlp.fc1", INNER, HIDDEN)
            weights.dense(stem + "mlp.fc2", HIDDEN, INNER)
        weights.norm(stem + "norm1")
        weights.norm(stem + "norm2")


class Twin(RotaryTwin):
    def experts(self, stem, x):
        """The sum of p_e w2_e^T gelu(w1_e x) over the experts of the largest p, and a bias."""
        w1, w2 = (self.w[stem + "experts.mlp." + name].reshape(EXPERTS, INNER, HIDDEN)
                  for name in ("w1", "w2"))
        shares = softmax(self.dense(stem + "router.layer", x))
        sums = np.tile(self.w[stem + "experts.bias"], (len(x), 1))
        for row, share in enumerate(shares):
            for e in sorted(range(EXPERTS), key=lambda e: -share[e])[:CHOSEN]:
                sums[row] += share[e] * (gelu(w1[e] @ x[row]) @ w2[e])
        return sums

    def feed_forward(self, layer, stem, x):
        return self.experts(stem, x) if has_experts(layer) else super().feed_forward(layer, stem, x)

    def run(self, ids):
        return self.run_layers(ids, layers=LAYERS, heads=HEADS, theta=THETA, mixer="attn")


def main():
    weights = RandomWeights(20250211, HIDDEN)
    make_weights(weights)
    twin, tensors, texts = Twin(weights.tensors, CONFIG["layer_norm_epsilon"]), {}, []
    for index, length in enumerate((1, 7, 29)):
        ids = weights.random.integers(0, VOCAB, length).tolist()
        hidden, attention = twin.run(ids)
        tensors |= {f"text.{index}.hidden": hidden, f"text.{index}.attn": attention}
        texts.append({"index": index, "text": "", "ids": ids})
    write_folder("nomic-bert-moe", CONFIG, weights.tensors,
                 {"what": "NomicBERT v2-MoE", "texts": texts}, tensors)


main()
