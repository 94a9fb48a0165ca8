"""usage: attention_loaders.py POZOR MODEL README: runs the Python of the README on a dump of MODEL.

torch, bertviz and matplotlib are replaced by stand-ins that check what they are given, where they are
not installed. Without numpy nothing can be tested, which is said."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import types

pozor, model, readme = (os.path.abspath(path) for path in sys.argv[1:4])
if importlib.util.find_spec("numpy") is None:
    print("left out: numpy is not installed (python3-numpy)")
    sys.exit(0)
import numpy as np  # noqa: E402


def stand_in(name, **members):
    if importlib.util.find_spec(name.split(".")[0]) is None:
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module


calls = []


def head_view(attention, tokens, **_):
    calls.append("head_view")
    for layer in attention:
        array = np.asarray(layer)
        assert array.ndim == 4 and array.shape[0] == 1, array.shape
        assert array.shape[2] == array.shape[3] == len(tokens), array.shape
        assert np.abs(array.sum(axis=-1) - 1).max() < 1e-5


def check_image(matrix, **_):
    calls.append("imshow")
    assert matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]


stand_in("torch", from_numpy=lambda array: array)
stand_in("bertviz", head_view=head_view)
if importlib.util.find_spec("matplotlib") is None:
    nothing = lambda *_, **__: None  # noqa: E731
    plots = types.ModuleType("matplotlib.pyplot")
    plots.__dict__.update(imshow=check_image, xticks=nothing, yticks=nothing, savefig=nothing)
    sys.modules["matplotlib"] = types.ModuleType("matplotlib")
    sys.modules["matplotlib"].pyplot = plots
    sys.modules["matplotlib.pyplot"] = plots
else:
    os.environ["MPLBACKEND"] = "Agg"

# The tiny model of the tests has fewer layers and heads than the README's, and other words.
replace = {"[5, :, bank]": "[1, :, bank]", "[5, 3]": "[1, 2]", 'index("bank")': 'index("is")'}
blocks = re.findall(r"```python\n(.*?)```", open(readme, encoding="utf-8").read(), re.S)
assert len(blocks) == 3, len(blocks)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    command = [pozor, "attention", "dump", model, "A girl is styling her hair.", "--quiet"]
    for name in ("bank.npz", "bank.npy", "bank.safetensors"):
        subprocess.run([*command, "-o", name], check=True)
    for block in blocks:
        for old, new in replace.items():
            block = block.replace(old, new)
        exec(compile(block, readme, "exec"), {})  # noqa: S102
    whole = np.load("bank.npz")["attn"]
    assert np.array_equal(whole, np.load("bank.npy"))
    subprocess.run([*command, "-o", "u8.npz", "--dtype", "u8"], check=True)
    assert np.abs((np.load("u8.npz")["attn"] / 255.0) ** 2 - whole).max() < 0.004
    subprocess.run([*command, "-o", "f16.npz", "--dtype", "f16", "--hidden"], check=True)
    halves = np.load("f16.npz")
    assert np.array_equal(halves["attn"], whole.astype(np.float16))
    assert halves["hidden"].shape[:2] == (whole.shape[0] + 1, whole.shape[2])
print("ran", len(blocks), "examples", *calls)
