#!/usr/bin/env python3
"""ab.py ROOT REF [FILTER]: this tree against commit REF, interleaved on this machine.

Builds REF in a work tree of its own (build/ab), then runs both builds in turns, A B B A, and
prints for each measurement the median of both and the ratio REF / here of their times: above 1,
this tree is faster. The range is that of the ratios of the single turns; a range that holds 1.00 is
no difference. Measured are `pozor encode` on the default model, and the Google Benchmarks whose
names match FILTER (a regular expression; without it, a small selection).
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

TURNS = 5
DEFAULT_FILTER = "MiniLM.*M:128|LayerNorm|Gelu|Attention.*128|Tokenize"


def run(command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, text=True, **kwargs)


def build_reference(root, ref):
    tree = root / "build/ab/tree"
    commit = run(["git", "-C", root, "rev-parse", "--verify", ref + "^{commit}"],
                 capture_output=True).stdout.strip()
    if (tree / ".git").exists():
        run(["git", "-C", tree, "checkout", "--quiet", "--detach", commit])
    else:
        run(["git", "-C", root, "worktree", "prune"])
        run(["git", "-C", root, "worktree", "add", "--quiet", "--detach", tree, commit])
    source = sorted((root / "build/deps").glob("highway-*"))
    configure = ["cmake", "--preset", "release"]
    if source:
        configure.append(f"-DPOZOR_HIGHWAY_SOURCE={source[-1]}")
    environment = dict(os.environ, CCACHE_BASEDIR=str(tree), CCACHE_NOHASHDIR="1")
    run(configure, cwd=tree, env=environment, stdout=subprocess.DEVNULL)
    run(["ninja", "-C", tree / "build/release"], env=environment, stdout=subprocess.DEVNULL)
    return tree / "build/release/bin"


def write_texts(path, root):
    """2000 texts of 3 to 120 words, the same at every call."""
    words = (root / "tools/samples/sentences.txt").read_text().split()
    source = random.Random(1)
    lengths = [min(120, int(3 + source.expovariate(1 / 18))) for _ in range(2000)]
    path.write_text("\n".join(" ".join(source.choices(words, k=n)) for n in lengths) + "\n")


def encode_seconds(binaries, model, texts):
    """{name: seconds a token} of one run."""
    times = {}
    for threads in (1, 2):
        done = run([binaries / "pozor", "encode", model, texts, "-o", os.devnull, "--format", "f32",
                    "--threads", threads, "--json"], capture_output=True)
        summary = json.loads(done.stderr.strip().splitlines()[-1])
        times[f"pozor encode, {threads} thread(s)"] = 1 / summary["tokens_per_second"]
    return times


def benchmark_seconds(binaries, wanted):
    times = {}
    for program in sorted(binaries.glob("*_bench")):
        done = run([program, f"--benchmark_filter={wanted}", "--benchmark_format=json",
                    "--benchmark_min_time=0.1"], capture_output=True)
        if not done.stdout.strip():
            continue
        for row in json.loads(done.stdout)["benchmarks"]:
            if "real_time" in row and row.get("run_type") != "aggregate":
                times[row["name"]] = row["real_time"]
    return times


def measure(sides, model, texts, wanted):
    """{name: {side: [seconds of each turn]}}"""
    samples = {}
    for turn in range(TURNS):
        order = list(sides) if turn % 2 == 0 else list(sides)[::-1]
        for side in order:
            times = encode_seconds(sides[side], model, texts)
            times.update(benchmark_seconds(sides[side], wanted))
            for name, seconds in times.items():
                samples.setdefault(name, {}).setdefault(side, []).append(seconds)
    return samples


def report(samples, ref):
    print(f"ratio = time of {ref} / time of this tree; median of {TURNS} turns [smallest, largest]")
    for name, sides in samples.items():
        if len(sides) < 2:
            print(f"{'only on one side':28}  {name}")
            continue
        ratios = [a / b for a, b in zip(sides["ref"], sides["here"])]
        low, high = min(ratios), max(ratios)
        verdict = "faster" if low > 1 else "slower" if high < 1 else "no difference"
        middle = statistics.median(ratios)
        print(f"{middle:6.3f} [{low:.3f}, {high:.3f}]  {verdict:13}  {name}")


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit("usage: tools/dev ab REF [FILTER]")
    root, ref = pathlib.Path(arguments[0]), arguments[1]
    wanted = arguments[2] if len(arguments) == 3 else DEFAULT_FILTER
    run([root / "tools/dev", "build"], stdout=subprocess.DEVNULL)
    sides = {"ref": build_reference(root, ref), "here": root / "build/release/bin"}
    model = run([root / "tools/get_model.sh"], capture_output=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        texts = pathlib.Path(folder) / "texts.txt"
        write_texts(texts, root)
        report(measure(sides, model, texts, wanted), ref)


if __name__ == "__main__":
    main(sys.argv[1:])
