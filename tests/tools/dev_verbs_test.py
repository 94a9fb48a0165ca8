#!/usr/bin/env python3
"""dev_verbs_test.py BINARY_DIR: tools/dev answers wrong arguments and --help before it builds.

Exit code 2 and a line that names the argument and what to do; 0 for --help.
"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERBS = ("build", "test", "clang", "asan", "tsan", "fuzz", "aarch64", "emulate", "tidy", "format",
         "layers", "spills", "loops", "bench", "ab")
BUILD_TOOLS = ("cmake", "ninja", "ctest", "clang-format-19", "clang-tidy-19")

# Arguments, and what the answer says beside the last of them.
WRONG = [
    (["biuld"], "unknown verb; tools/dev lists them"),
    (["build", "--flag"], "give targets"),
    (["test", "--flag"], "-R --tests-regex"),
    (["test", "tokenizer"], "tools/dev test -R 'tokenizer'"),
    (["test", "-R"], "value is missing"),
    (["test", "-j2", "-R", "x", "-j", "2", "--timeout=5", "-V", "y"], "-R 'y'"),
    (["clang", "all"], "no arguments"),
    (["asan", "--flag"], "-R --tests-regex"),
    (["tsan", "engine"], "tools/dev tsan -R 'engine'"),
    (["fuzz", "--flag"], "number of seconds"),
    (["fuzz", "json_fuzz"], "not a number of seconds"),
    (["fuzz", "0"], "not a number of seconds"),
    (["fuzz", "5", "6"], "one argument too many"),
    (["aarch64", "-Q", "--flag"], "-R --tests-regex"),
    (["emulate", "--flag"], "--model FOLDER"),
    (["emulate", "kernels_gem"], "kernels_gemm kernels_math"),
    (["emulate", "kernels_math", "gemm:*fused*"], "engine_linear"),
    (["emulate", "--model"], "give that of a model"),
    (["emulate", "--model", "/nowhere"], "give that of a model"),
    (["tidy", "--fix"], "give sources"),
    (["tidy", "models/nothing.cc"], "give sources"),
    (["format", "--flag"], "--check"),
    (["format", "--check", "models/json.cc"], "--check"),
    (["layers", "--fix"], "no arguments"),
    (["spills", "build"], "no arguments"),
    (["loops", "haswell"], "choose from 'sapphirerapids'"),
    (["loops", "znver4", "int8 9x9"], "choose from 'f32 8x48'"),
    (["bench", "--flag"], "regular expression"),
    (["bench", "gemm", "attention"], "one argument too many"),
    (["ab"], "REF"),
    (["ab", "HEAD", "--flag"], "usage: tools/dev ab"),
    (["ab", "no-such-branch"], "give a branch"),
    (["ab", "HEAD", "gemm", "attention"], "usage: tools/dev ab"),
]

# What a build that is configured knows.
WRONG_FOR_BUILD = [
    (["build", "pozor_comand"], "pozor_command"),
    (["build", "pozor_command", "tests"], "lists them"),
    (["test", "-R", "no_test_is_called_so"], "lists their names"),
]


def dev(arguments, environment):
    start = time.monotonic()
    done = subprocess.run([ROOT / "tools/dev", *arguments], capture_output=True, text=True,
                          env=environment, stdin=subprocess.DEVNULL)
    return done, time.monotonic() - start


def without_build_tools(folder):
    """An environment whose build tools only leave a note that they were called."""
    for name in BUILD_TOOLS:
        tool = folder / name
        tool.write_text(f"#!/bin/sh\necho called >>{folder}/{name}.called\nexit 1\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")


def check_wrong(arguments, hint, environment):
    done, seconds = dev(arguments, environment)
    faults = []
    if done.returncode != 2:
        faults.append(f"exit code {done.returncode}")
    faults += [f"no {part!r}" for part in (arguments[-1], hint) if part not in done.stderr]
    if done.stdout:
        faults.append("an answer on standard output")
    if seconds > 10:  # a loaded machine; an idle one takes a fraction of a second
        faults.append(f"{seconds:.1f} s")
    return [f"tools/dev {' '.join(arguments)}: {', '.join(faults)}: {done.stderr}"] if faults else []


def check_help(verb, environment):
    done, _ = dev([verb, "--help"], environment)
    good = done.returncode == 0 and verb in done.stdout and not done.stderr
    return [] if good else [f"tools/dev {verb} --help: {done.returncode}: {done.stdout}{done.stderr}"]


def main():
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = without_build_tools(folder)
        for arguments, hint in WRONG:
            faults += check_wrong(arguments, hint, environment)
        for verb in VERBS:
            faults += check_help(verb, environment)
        faults += [f"{path.stem} was called" for path in folder.glob("*.called")]
    if pathlib.Path(sys.argv[1]).resolve() == ROOT / "build/release":
        for arguments, hint in WRONG_FOR_BUILD:
            faults += check_wrong(arguments, hint, os.environ)
    print("\n".join(faults) if faults else "every wrong argument is answered")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
