"""What the scripts beside this file share: random weights, plain double-precision arithmetic, and
the files of a golden folder. Needs numpy."""
import json
import math
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


class RandomWeights:
    def __init__(self, seed, hidden):
        self.random = np.random.default_rng(seed)
        self.hidden = hidden
        self.tensors = {}

    def normal(self, name, *shape, deviation, mean=0.0):
        values = mean + deviation * self.random.standard_normal(shape)
        self.tensors[name] = values.astype(np.float32)

    def norm(self, stem):
        self.normal(stem + ".weight", self.hidden, deviation=0.2, mean=1.0)
        self.normal(stem + ".bias", self.hidden, deviation=0.1)

    def dense(self, stem, outputs, inputs, bias=True):
        self.normal(stem + ".weight", outputs, inputs, deviation=0.2)
        if bias:
            self.normal(stem + ".bias", outputs, deviation=0.1)


class Arithmetic:
    def __init__(self, tensors, epsilon):
        self.w = {name: value.astype(np.float64) for name, value in tensors.items()}
        self.epsilon = epsilon

    def dense(self, stem, x):
        return x @ self.w[stem + ".weight"].T + self.w.get(stem + ".bias", 0.0)

    def norm(self, stem, x):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(-1, keepdims=True) + self.epsilon)
        return centred / deviation * self.w[stem + ".weight"] + self.w[stem + ".bias"]


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attend(query, key, value, heads, bias=None):
    """Rows [tokens, hidden] to context rows and weights [heads, tokens, tokens]; `bias` likewise."""
    tokens, size = len(query), query.shape[1] // heads
    q, k, v = (x.reshape(tokens, heads, size) for x in (query, key, value))
    rows, context = [], []
    for head in range(heads):
        scores = q[:, head] @ k[:, head].T / math.sqrt(size)
        rows.append(softmax(scores if bias is None else scores + bias[head]))
        context.append(rows[-1] @ v[:, head])
    return np.concatenate(context, -1), np.stack(rows)


def rotate(x, heads, theta):
    """Columns i and i + d/2 of every head turn by p * theta^(-2i/d) at position p."""
    tokens, size = len(x), x.shape[1] // heads
    angles = np.outer(np.arange(tokens), theta ** (-2.0 * np.arange(size // 2) / size))
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = np.split(x.reshape(tokens, heads, size), 2, axis=-1)
    turned = np.concatenate((first * cos - second * sin, second * cos + first * sin), -1)
    return turned.reshape(tokens, -1)


class RotaryTwin(Arithmetic):
    """A post-norm encoder whose positions rotate; `feed_forward(layer, stem, x)` is the model's."""

    def run_layers(self, ids, *, layers, heads, theta, mixer):
        """Hidden states [layers + 1, tokens, hidden], attention [layers, heads, tokens, tokens]."""
        x = self.norm("emb_ln", self.w["embeddings.word_embeddings.weight"][ids]
                      + self.w["embeddings.token_type_embeddings.weight"][0])
        hidden, attention = [x], []
        for layer in range(layers):
            stem = f"encoder.layers.{layer}."
            query, key, value = np.split(self.dense(stem + mixer + ".Wqkv", x), 3, axis=-1)
            context, rows = attend(rotate(query, heads, theta), rotate(key, heads, theta), value,
                                   heads)
            x = self.norm(stem + "norm1", x + self.dense(stem + mixer + ".out_proj", context))
            x = self.norm(stem + "norm2", x + self.feed_forward(layer, stem + "mlp.", x))
            hidden.append(x)
            attention.append(rows)
        return np.stack(hidden), np.stack(attention)

    def feed_forward(self, layer, stem, x):
        return self.dense(stem + "fc2", gelu(self.dense(stem + "fc1", x)))


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


def write_folder(name, config, weights, golden, tensors):
    out = HERE / name
    out.mkdir(exist_ok=True)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_safetensors(out / "model.safetensors", weights)
    write_safetensors(out / "golden.safetensors", tensors)
    golden = {"what": golden.pop("what") + " by our own reading, in double precision",
              "tolerance": {"abs": 2e-5, "rel": 1e-5}} | golden
    (out / "golden.json").write_text(json.dumps(golden) + "\n")
