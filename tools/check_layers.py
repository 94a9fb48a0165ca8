#!/usr/bin/env python3
"""Checks the shape of the tree; prints one line a fault and exits 1 if there is any.

* includes point one way: kernels <- engine <- models <- tools, tests, bench
* each third-party library has one door
* kernels/ uses no mathematical function of libm and no reduction whose order depends on the target
* public headers include the standard library and each other only
* every folder of code has a README.md
* nothing is unfinished, and nothing belongs to one machine or names a package registry's host
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".hpp", ".cc", ".inc"}

# Which of our folders a folder may include.
ARROWS = {
    "kernels": {"kernels"},
    "engine": {"kernels", "engine"},
    "models": {"kernels", "engine", "models"},
    "tools": {"kernels", "engine", "models", "tools"},
    "bench": {"kernels", "engine", "models", "tools", "bench"},
    "tests": {"kernels", "engine", "models", "tools", "tests"},
    "tests/kernels": {"kernels", "tests"},
    "tests/engine": {"kernels", "engine", "tests"},
    "tests/models": {"kernels", "engine", "models", "tests"},
}

# Third-party headers, and the files that may include them.
DOORS = [
    (r"hwy/foreach_target\.h", r"(tests/)?kernels/[^/]+\.cc"),
    (r"hwy/", r"kernels/simd-inl\.h|tests/support/.*"),
    (r"(oneapi/)?tbb[/.]", r"engine/(parallel|graph)\.(h|cc)"),
    (r"mimalloc", r"engine/memory\.(h|cc)"),
    (r"simdjson", r"models/json\.(h|cc)"),
    (r"pcre2", r"models/text/regex\.cc"),
    (r"protozero/", r"models/protobuf\.cc"),
    (r"xxhash", r"models/formats/checksum\.cc"),
    (r"CLI/", r"tools/cli/.*"),
    (r"boost/", r"tools/server/.*"),
    (r"libdeflate", r"tools/io/deflate\.(h|cc)"),
    (r"doctest/", r"tests/.*"),
    (r"benchmark/", r"bench/.*"),
]

# In kernels/: what would make bits depend on the C library or on the width of a vector.
KERNEL_BANS = [
    (r"#include <c?math(\.h)?>", "libm"),
    (r"\bstd::(exp|expm1|exp2|log|log2|log1p|pow|tanh|erf|erfc|sin|cos|sqrt|fma|lgamma)f?\s*\(", "libm"),
    (r"\b(expf|logf|tanhf|erff|powf|sqrtf|fmaf)\s*\(", "libm"),
    (r"\bhn::(ReduceSum|SumOfLanes|SumsOf\w+|Exp|Log|Tanh|Sin|Cos)\b", "depends on the target"),
]

# Written so that this file does not contain what it looks for.
WORD_BANS = [
    (r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b", "unfinished"),
    (r"doctest::sk" r"ip|GTEST_SK" r"IP|\bDIS" r"ABLED_", "a test that is switched off"),
    (r"(?<![\w.])/(wo" r"rk|fa" r"rm|ro" r"ot|ho" r"me/\w+)/", "a path of one machine"),
    (r"(?<![\w.])/op" r"t/(re" r"f|pe" r"ers)\b", "a path of one machine"),
    (r"py" r"pi\.(org|io)|files\.python" r"hosted|deb\.deb" r"ian\.org|archive\.ubu" r"ntu\.com|"
     r"registry\.np" r"mjs|static\.crat" r"es\.io|repo1?\.mav" r"en|proxy\.gol" r"ang",
     "a package registry's host"),
]

HARD_LIMIT = 800  # lines of a source file


def tracked_files():
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True)
    if listing.returncode == 0 and listing.stdout:
        names = listing.stdout.decode().split("\0")[:-1]
    else:  # a release archive
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    return [n for n in names if not n.startswith(("build/", ".git/")) and (ROOT / n).is_file()]


def allowed_folders(name):
    parts = name.split("/")
    return ARROWS.get("/".join(parts[:2])) or ARROWS.get(parts[0])


def check_include(name, header, report):
    for pattern, door in DOORS:
        if re.match(pattern, header):
            if not re.fullmatch(door, name):
                report(f"includes {header}, whose door is {door}")
            return
    folder = header.split("/")[0]
    allowed = allowed_folders(name)
    if allowed is not None and folder in ARROWS and folder not in allowed:
        report(f"includes {header}, against the arrows")
    if header == "pozor/status.h" and name.startswith("kernels/"):
        report(f"includes {header}, against the arrows")
    if header.startswith("pozor/") and header != "pozor/status.h" and name.startswith(("kernels/", "engine/")):
        report(f"includes {header}, against the arrows")
    if "/include/pozor/" in name and "/" in header and not header.startswith("pozor/"):
        report(f"is a public header and includes {header}")


def check_code(name, lines, report_line):
    for number, line in enumerate(lines, 1):
        report = lambda fault: report_line(number, fault)
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if include:
            check_include(name, include.group(1), report)
        if name.startswith("kernels/"):
            code = line.split("//")[0]
            for pattern, why in KERNEL_BANS:
                found = re.search(pattern, code)
                if found:
                    report(f"{found.group(0).strip()}: {why}")
    if len(lines) > HARD_LIMIT and not name.endswith(".inc"):
        report_line(1, f"{len(lines)} lines; split it by subject (at most {HARD_LIMIT})")


def main():
    faults = []
    names = tracked_files()
    for name in names:
        path = ROOT / name
        if name.startswith(("tests/data/", "tests/fuzz/seeds/")):
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            faults.append(f"{name}: a binary file outside tests/data")
            continue
        report = lambda number, fault, name=name: faults.append(f"{name}:{number}: {fault}")
        if path.suffix in CODE:
            check_code(name, lines, report)
        for number, line in enumerate(lines, 1):
            for pattern, why in WORD_BANS:
                found = re.search(pattern, line)
                if found:
                    report(number, f"'{found.group(0)}': {why}")
    for folder in ("kernels", "engine", "models", "tools", "tests", "bench"):
        if f"{folder}/README.md" not in names and not (ROOT / folder / "README.md").is_file():
            faults.append(f"{folder}: no README.md")
    print("\n".join(faults) if faults else f"{len(names)} files in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
