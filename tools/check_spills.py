#!/usr/bin/env python3
"""Looks at compiled kernels for what no test of results can see.

  check_spills.py [--only spills|baseline] OBJECT|FOLDER...

spills: vector registers moved to or from the stack inside the K loops of GEMM micro-kernels, at
most one per eight multiply-adds. baseline: VEX, EVEX or SVE instructions in functions that are not in
a namespace reached by run-time dispatch only. Without --only both are looked for.

Objects, static libraries, shared libraries and programs will do; a folder stands for the objects of
Pozor's own libraries below it. Needs objdump of the objects' architecture (--objdump). Exit code:
0 clean, 1 findings, 2 used wrongly or nothing found to look at.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# The functions that hold a GEMM's K loop, whatever the element type.
MICRO_KERNEL = re.compile(r"::MultiplyTile\w*<")
DISPATCHED = re.compile(r"\bN_(AVX|NEON|SVE)\w*::")

MULTIPLY_ADD = re.compile(r"^(vfn?madd\w*p[sd]|v?addps|vpdp\w+|vdpbf16ps|vpmaddwd|fmla|[su]dot|[su]mmla|bfmmla)$")
VECTOR = re.compile(r"%[xyz]mm\d+|\b[qv]\d+\b")
STACK = re.compile(r"\(%(rsp|rbp)\b|\[(sp|x29)\b")
WIDE = re.compile(r"%[yz]mm\d|%k[0-7]\b")
SVE = re.compile(r"\b[zp]\d+(\.[bhsd]|/[mz])")
# Mnemonics with a v that are older than AVX.
NOT_VEX = re.compile(r"^(verr|verw|vm\w+)$")

MAX_SPILLS_PER_MULTIPLY_ADD = 1 / 8
MIN_MULTIPLY_ADDS = 4


def objects_of(paths):
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from sorted(path.glob("**/pozor_*.dir/**/*.o"))
        else:
            yield path


def functions_of(objdump, path):
    """Yields (demangled name, [(address, mnemonic, operands)])."""
    run = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", str(path)],
                         capture_output=True, text=True, check=True)
    name, body = None, []
    for line in run.stdout.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            if name:
                yield name, body
            name, body = head.group(1), []
            continue
        instruction = re.match(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", line)
        if instruction:
            address, mnemonic, operands = instruction.groups()
            if re.match(r"^\{e?vex\d?\}$", mnemonic):  # an encoding asked for, not an instruction
                mnemonic, operands = operands.split(None, 1)
            operands = operands.split(" <")[0].split("  #")[0]
            body.append((int(address, 16), mnemonic, operands))
    if name:
        yield name, body


def innermost_loops(body, counts=lambda instruction: True):
    """Instruction lists between a backward jump and its target, without the loops around them.

    Loops without an instruction that counts are none.
    """
    loops = []
    first = body[0][0] if body else 0
    index = {address: i for i, (address, _, _) in enumerate(body)}
    for i, (address, mnemonic, operands) in enumerate(body):
        if not re.match(r"^(j\w+|b\.?\w*|cbn?z|tbn?z)$", mnemonic):
            continue
        target = re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+)$", operands.strip())
        if not target:
            continue
        to = int(target.group(1), 16)
        if first <= to < address and to in index and any(map(counts, body[index[to]:i + 1])):
            loops.append((index[to], i))
    for begin, end in loops:
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops):
            yield body[begin:end + 1]


def uses_frame_pointer(body):
    return any(m == "mov" and o == "%rsp,%rbp" for _, m, o in body)


def is_spill(mnemonic, operands, frame_pointer):
    stack = STACK.search(operands)
    if not stack or not VECTOR.search(operands):
        return False
    # Without a frame, rbp is an ordinary register that may well point to a matrix.
    return stack.group(1) != "rbp" or frame_pointer


def check_spills(objdump, paths):
    looked_at, findings = 0, []
    for path in paths:
        for name, body in functions_of(objdump, path):
            if not MICRO_KERNEL.search(name):
                continue
            frame_pointer = uses_frame_pointer(body)
            for loop in innermost_loops(body):
                multiply_adds = sum(bool(MULTIPLY_ADD.match(m)) for _, m, _ in loop)
                if multiply_adds < MIN_MULTIPLY_ADDS:
                    continue
                looked_at += 1
                spills = sum(is_spill(m, o, frame_pointer) for _, m, o in loop)
                if spills > multiply_adds * MAX_SPILLS_PER_MULTIPLY_ADD:
                    findings.append(f"{path.name}: {name}: {spills} spills for {multiply_adds} "
                                    "multiply-adds in a K loop")
    return looked_at, "K loops", findings


def is_wide(mnemonic, operands):
    if WIDE.search(operands):
        return True
    return mnemonic.startswith("v") and not NOT_VEX.match(mnemonic)


def check_baseline(objdump, paths):
    looked_at, findings = 0, []
    for path in paths:
        for name, body in functions_of(objdump, path):
            if "N_SVE" in name:
                continue
            wide = next(((m, o) for _, m, o in body if SVE.search(o)), None)
            if not DISPATCHED.search(name):
                looked_at += 1
                wide = wide or next(((m, o) for _, m, o in body if is_wide(m, o)), None)
            if wide:
                findings.append(f"{path.name}: {name}: {wide[0]} {wide[1]}")
    return looked_at, "functions", findings


CHECKS = {"spills": check_spills, "baseline": check_baseline}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--only", choices=CHECKS)
    parser.add_argument("--objdump", default="objdump")
    args = parser.parse_args()
    exit_code = 0
    for name in [args.only] if args.only else CHECKS:
        try:
            looked_at, what, findings = CHECKS[name](args.objdump, objects_of(args.paths))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"check_spills: {error}", file=sys.stderr)
            return 2
        for finding in findings:
            print(finding)
        print(f"{name}: {looked_at} {what} looked at, {len(findings)} findings")
        exit_code = max(exit_code, 2 if looked_at == 0 else 1 if findings else 0)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
