"""Pozor and its peers in one run, round by round, as one result of `pozor bench`:

    bench/peers/run.py MODEL --converted OUT --texts a.txt b.txt@4 -o result.json

Prints the table that the README shows. Peers are chosen by name (--peers, default all f32 ones); each
runs with every batch size of --batch, with one session, and with as many sessions as threads
("-streams") where there are several threads: whichever is fastest is its own best. A part of a file
(@STRIDE) has bigger steps between neighbouring lengths than the whole: give it the smaller batches.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# name: environment, engine, precision, a stream a thread, variables
PEERS = {
    "onnxruntime": ("run", "onnxruntime", "f32", False, {}),
    "onnxruntime-streams": ("run", "onnxruntime", "f32", True, {}),
    "openvino": ("run", "openvino", "f32", False, {}),
    "openvino-streams": ("run", "openvino", "f32", True, {}),
    "ctranslate2": ("run", "ctranslate2", "f32", False, {}),
    "ctranslate2-streams": ("run", "ctranslate2", "f32", True, {}),
    # Its own choice is AVX2 on some CPUs where AVX-512 is faster.
    "ctranslate2-avx512": ("run", "ctranslate2", "f32", False, {"CT2_FORCE_CPU_ISA": "AVX512"}),
    "ctranslate2-avx512-streams": ("run", "ctranslate2", "f32", True, {"CT2_FORCE_CPU_ISA": "AVX512"}),
    "sentence-transformers": ("torch", "sentence-transformers", "f32", False, {}),
    "openvino-bf16": ("run", "openvino", "bf16", False, {}),
    "onnxruntime-int8": ("run", "onnxruntime", "int8", False, {}),
    "onnxruntime-int8-streams": ("run", "onnxruntime", "int8", True, {}),
    "openvino-int8": ("run", "openvino", "int8", False, {}),
    "openvino-int8-streams": ("run", "openvino", "int8", True, {}),
    "ctranslate2-int8": ("run", "ctranslate2", "int8", False, {}),
    "ctranslate2-int8-streams": ("run", "ctranslate2", "int8", True, {}),
    "ctranslate2-avx512-int8": ("run", "ctranslate2", "int8", False, {"CT2_FORCE_CPU_ISA": "AVX512"}),
    "ctranslate2-avx512-int8-streams": ("run", "ctranslate2", "int8", True, {"CT2_FORCE_CPU_ISA": "AVX512"}),
}


def peer_option(name, options):
    environment, engine, precision, streams, variables = PEERS[name]
    words = ["env", *(f"{key}={value}" for key, value in variables.items()),
             str(options.environments / environment / "bin" / "python"), str(HERE / "worker.py"),
             "--engine", engine, "--model", "{model}", "--precision", precision, "--threads", "{threads}",
             "--max-length", str(options.max_length), "--converted", str(options.converted)]
    if streams:
        words += ["--streams", "{threads}"]
    return f"{name}:{precision}:{options.batch}=" + " ".join("'" + word + "'" if " " in word else word for word in words)


def bench_command(options):
    command = [options.pozor, "bench", str(options.model), "--threads", options.threads, "--max-length",
               str(options.max_length), "--precision", ",".join(sorted({PEERS[name][2] for name in options.peers} | set(options.precision))),
               "-o", str(options.output)]
    for text in options.texts:
        command += ["--workload", f"file:{text}"]
    for name in options.workloads:
        command += ["--workload", name]
    for key in ("rounds", "processes"):
        if getattr(options, key):
            command += [f"--{key}", str(getattr(options, key))]
    if options.pin:
        command.append("--pin")
    for name in options.peers:
        command += ["--peer", peer_option(name, options)]
    return command


def rate(row):
    """Lower quartile of the seconds of a sample, less what its threads waited for a CPU, as `pozor bench` has it."""
    return row["summary"]["quiet_lower_quartile_seconds"]


def readme_table(result):
    """One line a workload, precision and number of threads: Pozor, its best peer, the ratio of speeds."""
    groups = {}
    for row in result["rows"]:
        key = row["key"]
        groups.setdefault((key["workload"], key["precision"], key["threads"]), []).append(row)
    lines = ["| workload | precision | threads | Pozor | best peer | Pozor against it | of the roof |",
             "|---|---|---|---|---|---|---|"]
    for (workload, precision, threads), rows in groups.items():
        own = [row for row in rows if row["key"]["engine"] == "pozor"]
        peers = [row for row in rows if row["key"]["engine"] != "pozor"]
        if not own or not peers:
            continue
        own, best = min(own, key=rate), min(peers, key=rate)

        def shown(row):
            if row["sample"] == "call":
                return f"{1e3 * rate(row):.2f} ms"
            return f"{row['tokens'] / rate(row):,.0f} tokens/s".replace(",", " ")

        share = own["summary"].get("roof_share")
        lines.append(f"| {workload} | {precision} | {threads} | {shown(own)} | {shown(best)} ({best['key']['engine']}) | "
                     f"{rate(best) / rate(own):.2f}x | {f'{100 * share:.0f} %' if share else '–'} |")
    cpu = result["system"]["cpu"].get("name", "unknown CPU")
    lines.append(f"\n{cpu}, {result['created'][:10]}, Pozor {result['system']['build'].get('commit', '')}; lower quartiles of interleaved rounds.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="the model's folder")
    parser.add_argument("--table", type=pathlib.Path, metavar="RESULT", help="only print the table of an older result")
    parser.add_argument("--converted", type=pathlib.Path, help="what convert.py wrote")
    parser.add_argument("--environments", type=pathlib.Path, default=HERE.parents[1] / "build" / "peers", help="what setup.sh made")
    parser.add_argument("--pozor", default=str(HERE.parents[1] / "build" / "release" / "bin" / "pozor"))
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), metavar="NAME",
                        default=[name for name, peer in PEERS.items() if peer[2] == "f32"], help=", ".join(PEERS))
    parser.add_argument("--precision", nargs="*", default=[], help="of Pozor, besides those of the peers")
    parser.add_argument("--texts", nargs="*", default=[], metavar="FILE[@STRIDE]")
    parser.add_argument("--workloads", nargs="*", default=[], metavar="NAME", help="fixed-N, query-N, query-N@MS, mix")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--batch", default="8,32", help="texts of a peer's batch: its best one counts (8,32)")
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("result.json"))
    options = parser.parse_args()
    if options.table:
        print(readme_table(json.loads(options.table.read_text())))
        return
    if not options.model or not options.converted:
        parser.error("MODEL and --converted are needed, or --table RESULT")
    if subprocess.run(bench_command(options), check=False).returncode != 0:
        sys.exit(1)
    print(readme_table(json.loads(options.output.read_text())))


if __name__ == "__main__":
    main()
