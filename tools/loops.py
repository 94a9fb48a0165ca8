#!/usr/bin/env python3
"""Predicts by llvm-mca what inner loops of the kernels cost on CPUs that are not at hand.

Reads objects that are built, in build/release or, for Arm, build/aarch64; builds nothing. A line:
cycles an iteration, what the loop's multiplies alone would take, the share, spills, what limits.
It is a model of ports, latencies and dispatch: operands come from L1, no sibling thread is busy.
Of tile instructions llvm-mca knows nothing: TDP* counts 16 cycles, TILELOADD 8.
Exit code: 0 shown, 1 a loop is not in its object, 2 used wrongly or something is missing.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

import check_spills

ROOT = pathlib.Path(__file__).resolve().parents[1]
LLVM_MCA = next((name for name in ("llvm-mca-19", "llvm-mca") if shutil.which(name)), None)

# What LLVM's models get wrong, as an instruction on the same ports that they get right. Of Intel's
# 512-bit arithmetic they put on one port what was measured on two: all of it for Sapphire Rapids,
# for which Ice Lake's model stands in, and f32 there. Loads and broadcasts of memory take no port of
# vectors, copies of registers none at all. Zen 4's dot products take one cycle, as measured.
WIDE = r"(?=.*%zmm)"
LOAD = r"v(?:p?broadcast|mov)\w+ ([^%,]*\([^)]*\),)%[yz]mm"
INTEL = [(WIDE + r"vfn?m(add|sub)\d+ps ", "vpdpwssd "), (WIDE + r"v(add|sub|mul)ps ", "vmaxps "),
         (LOAD, r"vmovups \1%ymm"),
         (r"vmov\w+ %zmm\d+,%zmm(\d+)$", r"vxorps %ymm\1,%ymm\1,%ymm\1")]
ZEN4 = [(WIDE + r"(vpdp(busd|wssd)|vdpbf16ps) ", "vfmadd231ps "), (LOAD, r"vmovups \1%zmm")]
# Name: (triple, -mcpu, replacements)
CPUS = {
    "sapphirerapids": ("x86_64", "icelake-server", INTEL),
    "znver4": ("x86_64", "znver4", ZEN4),
    "alderlake": ("x86_64", "alderlake", []),
    "znver3": ("x86_64", "znver3", []),
    "skylake": ("x86_64", "skylake", []),
    "neoverse-n1": ("aarch64", "neoverse-n1", []),
    "neoverse-v1": ("aarch64", "neoverse-v1", []),
}

SERVERS = ("sapphirerapids", "znver4")
SPR, ZEN, ADL = ("sapphirerapids",), ("znver4",), ("alderlake",)
NO_VNNI = ("znver3", "skylake")
ARM, V1 = ("neoverse-n1", "neoverse-v1"), ("neoverse-v1",)
FMA, DOT, TILE = r"vfn?m(add|sub)\d+ps", r"vpdpbusd", r"tdp\w+"
# Loops of GEMMs are named after the rows of gemm_kernels.inc.
# (name, CPUs, object, the function as a pattern, its multiplies as a pattern)
LOOPS = [
    ("f32 8x48", SERVERS, "gemm_f32", r"AVX3.*MultiplyTile<8ul, 3ul>", FMA),
    ("f32 6x64", SERVERS, "gemm_f32", r"AVX3.*MultiplyTile<6ul, 4ul>", FMA),
    ("f32 6x16", ADL + NO_VNNI, "gemm_f32", r"AVX2.*MultiplyTile<6ul, 1ul>", FMA),
    ("f32 6x16", ARM, "gemm_f32", r"NEON.*MultiplyTile<6ul, 1ul>", r"fmla"),
    ("int8 8x48", SERVERS, "gemm_vnni", r"AVX3.*MultiplyTile<8ul, 3ul>", DOT),
    ("int8 6x64", SERVERS, "gemm_vnni", r"AVX3.*MultiplyTile<6ul, 4ul>", DOT),
    ("int8 6x16", ADL, "gemm_vnni", r"AVX2.*MultiplyTile<6ul, 1ul>", DOT),
    ("int8 16x16 pairs", SERVERS, "gemm_pairs", r"AVX3.*MultiplyTilePairs<16ul", r"vpmaddwd"),
    ("int8 3x16 bounded", NO_VNNI, "gemm_bounded", r"AVX2.*MultiplyTiles<3ul>",
     r"vpmadd(ubsw|wd)"),
    ("int8 6x16 SDOT", ARM, "gemm_s8_arm", r"MultiplyTileDot<6ul", r"sdot"),
    ("int8 12x16 SMMLA", V1, "gemm_s8_arm", r"MultiplyTileMatrix<6ul", r"smmla"),
    ("int8 32x32 tiles", SPR, "gemm_amx", r"MultiplyBytes", TILE),
    ("dequantise tile row", SPR, "gemm_amx", r"MultiplyBytes", FMA),
    ("bf16 8x48", ZEN, "gemm_bf16", r"AVX3.*MultiplyTile<8ul, 3ul, .*Dotted>", r"vdpbf16ps"),
    ("bf16 6x64", ZEN, "gemm_bf16", r"AVX3.*MultiplyTile<6ul, 4ul, .*Dotted>", r"vdpbf16ps"),
    ("bf16 8x48 widened", SPR, "gemm_bf16", r"AVX3.*MultiplyTile<8ul, 3ul, .*Widened>", FMA),
    ("bf16 6x16 widened", ADL, "gemm_bf16", r"AVX2.*MultiplyTile<6ul, 1ul, .*Widened>", FMA),
    ("bf16 6x16 widened", ARM, "gemm_bf16", r"NEON.*MultiplyTile<6ul, 1ul, .*Widened>", r"fmla"),
    ("bf16 6x16 BFMMLA", V1, "gemm_bf16_arm", r"MultiplyTile<3ul", r"bfmmla"),
    ("bf16 32x32 tiles", SPR, "gemm_amx", r"MultiplyHalves<.*::Halves>", TILE),
    ("bf16x3 32x32 tiles", SPR, "gemm_amx_split", r"MultiplyHalves<.*SplitHalves>", TILE),
    ("GELU", SERVERS, "gemm_f32", r"AVX3.*StorePanel<\(pozor::Activation\)1>", FMA),
    ("GELU", ADL, "gemm_f32", r"AVX2.*StorePanel<\(pozor::Activation\)1>", FMA),
    ("GELU", ARM, "gemm_f32", r"NEON.*StorePanel<\(pozor::Activation\)1>", r"fml[as]"),
    ("attention f32", SERVERS, "attention", r"AVX3.*MultiplyTile<6ul, 4ul, .*\)0, 64ul>", FMA),
    ("attention int8", SERVERS, "attention_s8",
     r"AVX3.*MultiplyTileS8<.*VnniDots, 6ul, 4ul, .*\)0, 16ul>", DOT),
    ("attention f32 exp", SERVERS, "attention", r"AVX3.*Exponentials<false>", FMA),
    ("attention int8 exp", SERVERS, "attention_s8", r"AVX3.*WeighScores<false, true>", FMA),
    ("norm and quantise", SERVERS, "norm_quantize", r"AVX3.*NormQuantizeRows<true>", FMA),
]

BRANCH = re.compile(r"^(j\w+|b(\.\w+)?|cbn?z|tbn?z)$")
ITERATIONS = 1000
TILE_CYCLES = ((r"tdp\w+", 16), (r"tileload\w+", 8))


def hot_loop(objdump, path, function, multiply):
    """The loop with the most multiplies that has no other such in it, and its spills; or None."""
    best, best_key = None, (0, 0)
    for name, body in check_spills.functions_of(objdump, path):
        if not re.search(function, name):
            continue
        frame_pointer = check_spills.uses_frame_pointer(body)
        for loop in check_spills.innermost_loops(body, lambda i: re.fullmatch(multiply, i[1])):
            key = (sum(bool(re.fullmatch(multiply, m)) for _, m, _ in loop), -len(loop))
            if key > best_key:
                spills = sum(check_spills.is_spill(m, o, frame_pointer) for _, m, o in loop)
                best, best_key = (loop, spills), key
    return best


def assembly_of(loop, replacements):
    for _, mnemonic, operands in loop:
        if BRANCH.match(mnemonic):
            operands = re.sub(r"(?:\b0x)?\b([0-9a-f]+)$", r"0x\1", operands)
        line = f"{mnemonic} {operands}".replace("#0.0", "#0")
        for pattern, instead in replacements:
            line = re.sub(pattern, instead, line)
        yield line


def run_model(triple, model, lines):
    """(cycles an iteration, the least by throughput alone, the busiest resource's, its name)"""
    run = subprocess.run([LLVM_MCA, f"-mtriple={triple}", f"-mcpu={model}", "-json",
                          f"-iterations={ITERATIONS}", "-"],
                         input="\n".join(lines), capture_output=True, text=True)
    if run.returncode != 0:
        raise ValueError(f"llvm-mca: {run.stderr.strip().splitlines()[0]}")
    result = json.loads(run.stdout)
    region, names = result["CodeRegions"][0], result["TargetInfo"]["Resources"]
    summary = region["SummaryView"]
    pressure = {"dispatch": summary["TotaluOps"] / ITERATIONS / summary["DispatchWidth"]}
    total = len(region["Instructions"])
    for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
        if use["InstructionIndex"] == total:
            pressure[names[use["ResourceIndex"]].split(".")[0]] = use["ResourceUsage"]
    busiest = max(pressure, key=pressure.get)
    return (summary["TotalCycles"] / ITERATIONS, summary["BlockRThroughput"], pressure[busiest],
            busiest)


def count_tiles(loop):
    """(cycles, cycles of the multiplies, what limits) of a loop of tile instructions."""
    multiply, load = (cycles * sum(bool(re.fullmatch(pattern, m)) for _, m, _ in loop)
                      for pattern, cycles in TILE_CYCLES)
    return max(multiply, load), multiply, "tile multiplies" if multiply >= load else "tile loads"


def predict(cpu, loop, multiply):
    triple, model, replacements = CPUS[cpu]
    if multiply == TILE:
        return count_tiles(loop)
    cycles, _, busy, resource = run_model(triple, model, assembly_of(loop, replacements))
    multiplies = [i for i in loop if re.fullmatch(multiply, i[1])]
    _, ideal, _, _ = run_model(triple, model, assembly_of(multiplies, replacements))
    return cycles, ideal, resource if busy > 0.93 * cycles else "latency"


def build_of(cpu):
    return ROOT / "build" / ("aarch64" if CPUS[cpu][0] == "aarch64" else "release")


def die(message):
    print(f"loops: {message}", file=sys.stderr)
    sys.exit(2)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/dev loops", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(dict.fromkeys(name for name, *_ in LOOPS))
    parser.add_argument("cpu", nargs="?", choices=CPUS, metavar="CPU",
                        help=f"one of {', '.join(CPUS)}; without it all that are built for")
    parser.add_argument("loop", nargs="?", choices=names, metavar="LOOP",
                        help=f"one of {', '.join(names)}; without it all of the CPU")
    parser.add_argument("--show", action="store_true", help="the loops' instructions as well")
    args = parser.parse_args()
    if LLVM_MCA is None:
        die("llvm-mca is not here; install llvm-19")
    args.cpus = [cpu for cpu in CPUS if args.cpu in (None, cpu) and build_of(cpu).is_dir()]
    if not args.cpus:
        die(f"{build_of(args.cpu or 'znver4')} is not there; run tools/dev "
            f"{'aarch64' if args.cpu and CPUS[args.cpu][0] == 'aarch64' else 'build'}")
    return args


def show_loop(row, cpu, with_instructions):
    """Prints a line, and True if the loop was found."""
    name, _, file, function, multiply = row
    path = build_of(cpu) / f"kernels/CMakeFiles/pozor_kernels.dir/{file}.cc.o"
    if not path.exists():
        die(f"{path} is not there; build it first")
    objdump = "aarch64-linux-gnu-objdump" if CPUS[cpu][0] == "aarch64" else "objdump"
    found = hot_loop(objdump, path, function, multiply)
    if found is None:
        print(f"{name:<20} {cpu:<15} not found in {path.name}")
        return False
    loop, spills = found
    cycles, ideal, limit = predict(cpu, loop, multiply)
    print(f"{name:<20} {cpu:<15} {cycles:7.1f} {ideal:6.1f} {ideal / cycles:5.0%} {spills:6}  "
          f"{limit}", flush=True)
    if with_instructions:
        print("\n".join(f"    {mnemonic} {operands}" for _, mnemonic, operands in loop))
    return True


def main():
    args = parse_arguments()
    print(f"{'loop':<20} {'CPU':<15} {'cycles':>7} {'ideal':>6} {'share':>5} {'spills':>6}  limit")
    rows = [(row, cpu) for row in LOOPS for cpu in args.cpus
            if cpu in row[1] and args.loop in (None, row[0])]
    if not rows:
        die(f"{args.loop}: not a loop of {args.cpu}")
    found = [show_loop(row, cpu, args.show) for row, cpu in rows]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
