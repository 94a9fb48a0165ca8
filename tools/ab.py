#!/usr/bin/env python3
"""This tree against commit REF, interleaved on this machine.

Builds the command and the benchmarks of both, REF in a work tree of its own (build/ab), then runs
both in turns, A B B A, and prints for each measurement the ratio REF / here of their times: above 1,
this tree is faster. It is the median of the turns' ratios, with their range; a difference is one
that every turn agrees on and that is larger than what code does that merely moved in memory.
Measured are `pozor encode` on the default model, and the Google Benchmarks whose names match FILTER
(a regular expression; without it, a small selection).
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TURNS = 7
REPETITIONS = 3  # in a turn, of which the quickest counts: a disturbance is never quicker
RESOLUTION = 0.02
DEFAULT_FILTER = ("gemm/.*-(6|8|12)x.*/384x1536/m(16|128)/hot/|LayerNorm/cols:384|Activate/gelu$"
                  "|Attention/dim:32/tokens:(32|512)$|^append/")
# Benchmark programs that want arguments: a model's folder and a file of texts.
WANT_MODEL = {"tokenizer_bench"}


def run(command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, text=True, **kwargs)


def targets(tree):
    """The command, and the benchmarks that the tree has."""
    return ["pozor_command"] + sorted(path.stem for path in (tree / "bench").glob("*_bench.cc"))


def commit_of(ref):
    """The hash of a commit, or None."""
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", "--end-of-options",
                            ref + "^{commit}"], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def build_reference(commit):
    tree = ROOT / "build/ab/tree"
    if (tree / ".git").exists():
        run(["git", "-C", tree, "checkout", "--quiet", "--detach", commit])
    else:
        run(["git", "-C", ROOT, "worktree", "prune"])
        run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, commit])
    # The libraries that this tree is built with: another allocator is a difference as well.
    (tree / "build").mkdir(exist_ok=True)
    if not (tree / "build/deps").exists():
        (tree / "build/deps").symlink_to(ROOT / "build/deps")
    environment = dict(os.environ, CCACHE_BASEDIR=str(tree), CCACHE_NOHASHDIR="1")
    run(["cmake", "--preset", "release"], cwd=tree, env=environment, stdout=subprocess.DEVNULL)
    run(["ninja", "-C", tree / "build/release", *targets(tree)], env=environment,
        stdout=subprocess.DEVNULL)
    return tree / "build/release/bin"


def write_texts(path):
    """150 texts of 3 to 120 words, the same at every call."""
    words = (ROOT / "tools/samples/sentences.txt").read_text().split()
    source = random.Random(1)
    lengths = [min(120, int(3 + source.expovariate(1 / 18))) for _ in range(150)]
    path.write_text("\n".join(" ".join(source.choices(words, k=n)) for n in lengths) + "\n")


def keep_quickest(times, name, seconds):
    times[name] = min(seconds, times.get(name, seconds))


def encode_seconds(binaries, model, texts):
    """{name: seconds a token}"""
    times = {}
    for threads in (1, 2) * REPETITIONS:
        done = run([binaries / "pozor", "encode", model, texts, "-o", os.devnull, "--format", "f32",
                    "--threads", threads, "--json"], capture_output=True)
        summary = json.loads(done.stderr.strip().splitlines()[-1])
        keep_quickest(times, f"pozor encode, {threads} thread(s)", 1 / summary["tokens_per_second"])
    return times


def benchmark_seconds(binaries, names, model, texts, wanted):
    times = {}
    for name in names:
        command = [binaries / name, f"--benchmark_filter={wanted}", "--benchmark_format=json",
                   "--benchmark_min_time=0.05", f"--benchmark_repetitions={REPETITIONS}"]
        done = run(command + ([model, texts] if name in WANT_MODEL else []), capture_output=True)
        if not done.stdout.strip():
            continue
        for row in json.loads(done.stdout)["benchmarks"]:
            if row.get("run_type") == "aggregate" or "real_time" not in row:
                continue
            # Where a benchmark does not keep its own time, what the CPU did for it is less noisy.
            own = row["name"].endswith(("/manual_time", "/real_time"))
            keep_quickest(times, row["name"], row["real_time" if own else "cpu_time"])
    return times


def measure(sides, model, texts, wanted):
    """{name: {side: [seconds of each turn]}}"""
    samples = {}
    common = set.intersection(*({path.name for path in side.glob("*_bench")}
                                for side in sides.values()))
    for turn in range(TURNS):
        print(f"turn {turn + 1} of {TURNS}", file=sys.stderr)
        order = list(sides) if turn % 2 == 0 else list(sides)[::-1]
        for side in order:
            times = encode_seconds(sides[side], model, texts)
            times.update(benchmark_seconds(sides[side], sorted(common), model, texts, wanted))
            for name, seconds in times.items():
                samples.setdefault(name, {}).setdefault(side, []).append(seconds)
    return samples


def report(samples, ref):
    print(f"ratio = time of {ref} / time of this tree; median of {TURNS} turns [smallest, largest]")
    medians = []
    for name, sides in samples.items():
        if len(sides) < 2:
            print(f"{'only on one side':28}  {name}")
            continue
        ratios = [a / b for a, b in zip(sides["ref"], sides["here"])]
        low, high, middle = min(ratios), max(ratios), statistics.median(ratios)
        verdict = "no difference"
        if low > 1 and middle > 1 + RESOLUTION:
            verdict = "faster"
        if high < 1 and middle < 1 / (1 + RESOLUTION):
            verdict = "slower"
        medians.append(middle)
        print(f"{middle:6.3f} [{low:.3f}, {high:.3f}]  {verdict:13}  {name}")
    if medians:
        print(f"{statistics.geometric_mean(medians):6.3f} on the geometric mean of {len(medians)}")


def read_arguments():
    parser = argparse.ArgumentParser(prog="tools/dev ab", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("REF", help="a branch, a tag or a commit's hash")
    parser.add_argument("FILTER", nargs="?", default=DEFAULT_FILTER)
    arguments = parser.parse_args()
    commit = commit_of(arguments.REF)
    if commit is None:
        parser.error(f"{arguments.REF}: no such commit; give a branch, a tag or a commit's hash")
    return arguments, commit


def main():
    arguments, commit = read_arguments()
    run([ROOT / "tools/dev", "build", *targets(ROOT)], stdout=subprocess.DEVNULL)
    sides = {"ref": build_reference(commit), "here": ROOT / "build/release/bin"}
    model = run([ROOT / "tools/get_model.sh"], capture_output=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        texts = pathlib.Path(folder) / "texts.txt"
        write_texts(texts)
        report(measure(sides, model, texts, arguments.FILTER), arguments.REF)


if __name__ == "__main__":
    main()
