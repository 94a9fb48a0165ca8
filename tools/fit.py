#!/usr/bin/env python3
"""Minimax fits behind the constants of kernels/math-inl.h. Python 3 only, no packages.

    tools/fit.py exp      2^n-reduced exp on [-ln2/2, ln2/2], relative error
    tools/fit.py expm1    the same with an exact linear term, for expm1
    tools/fit.py gelu     the fourth root of 0.5 erfc(a / sqrt 2), absolute error of a root^4

Every fit is a Remez exchange in double precision followed by a rounding of the coefficients to
binary32, highest power first; after each rounding the lower ones are fitted again, so that they
absorb what the rounding lost.
"""
import math
import struct
import sys


def to_float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def solve(matrix, right):
    """Gaussian elimination with partial pivoting; overwrites its arguments."""
    n = len(matrix)
    for column in range(n):
        pivot = max(range(column, n), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        right[column], right[pivot] = right[pivot], right[column]
        for row in range(column + 1, n):
            factor = matrix[row][column] / matrix[column][column]
            for k in range(column, n):
                matrix[row][k] -= factor * matrix[column][k]
            right[row] -= factor * right[column]
    for row in reversed(range(n)):
        known = sum(matrix[row][k] * right[k] for k in range(row + 1, n))
        right[row] = (right[row] - known) / matrix[row][row]
    return right


def remez(function, weight, powers, low, high, steps=4000, rounds=30):
    """Coefficients of x^p for p in powers that minimise max |weight * (polynomial - function)|.

    The exchange works on a grid of `steps` points, dense enough for degrees below ten.
    """
    count = len(powers)
    grid = [low + (high - low) * i / steps for i in range(steps + 1)]
    target = [function(x) for x in grid]
    weights = [weight(x) for x in grid]
    points = [round(steps * (1 - math.cos(math.pi * i / count)) / 2) for i in range(count + 1)]
    best = None
    for _ in range(rounds):
        matrix = [[grid[p] ** power for power in powers] + [(-1) ** i / weights[p]]
                  for i, p in enumerate(points)]
        solution = solve(matrix, [target[p] for p in points])
        coefficients, level = solution[:-1], abs(solution[-1])
        error = [w * (sum(c * x ** p for c, p in zip(coefficients, powers)) - t)
                 for x, t, w in zip(grid, target, weights)]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[0]:
            best = (worst, coefficients)
        if worst <= level * 1.0005:
            break
        points = alternation(error, count + 1) or points
    return best


def alternation(error, count):
    """Indices of `count` extrema of alternating sign with the largest magnitudes, or None."""
    extrema = []
    for i, e in enumerate(error):
        if e == 0:
            continue
        if extrema and (error[extrema[-1]] > 0) == (e > 0):
            if abs(e) > abs(error[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        end = 0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1
        extrema.pop(end)
    return extrema if len(extrema) == count else None


def fit_float32(function, weight, powers, low, high):
    """Remez fit with coefficients that are binary32 numbers; {power: coefficient}, error."""
    fixed = {}
    free = sorted(powers)
    while free:
        def rest(x):
            return function(x) - sum(c * x ** p for p, c in fixed.items())
        error, coefficients = remez(rest, weight, free, low, high)
        top = free.pop()
        fixed[top] = to_float32(coefficients[-1])
    grid = [low + (high - low) * i / 20000 for i in range(20001)]
    error = max(abs(weight(x) * (sum(c * x ** p for p, c in fixed.items()) - function(x)))
                for x in grid)
    return fixed, error


def literal(x):
    return f"{x:.9g}f" if any(c in f"{x:.9g}" for c in ".e") else f"{x:.1f}f"


def fit_exp():
    half = math.log(2) / 2
    fixed, error = fit_float32(lambda x: math.expm1(x) / x if x else 1.0,
                               lambda x: max(abs(x), 1e-9) * math.exp(-x),
                               [0, 1, 2, 3, 4], -half, half)
    print("exp, degree 5, constant term 1; relative error", f"{error:.2e}")
    for power in sorted(fixed):
        print(f"  c{power + 1} = {literal(fixed[power])}")
    ln2_high = struct.unpack("f", struct.pack("I", struct.unpack(
        "I", struct.pack("f", math.log(2)))[0] & 0xFFFFF000))[0]
    print(f"  ln2 = {literal(ln2_high)} + {literal(to_float32(math.log(2) - ln2_high))}")


def fit_expm1():
    half = math.log(2) / 2

    def second_order(x):  # (e^x - 1 - x) / x^2, by its series: the difference cancels
        return sum(x ** n / math.factorial(n + 2) for n in range(16))

    fixed, error = fit_float32(second_order,
                               lambda x: x * x / max(abs(math.expm1(x)), 1e-9) + 1e-9,
                               [0, 1, 2, 3, 4], -half, half)
    print("expm1, degree 6, linear term 1; relative error", f"{error:.2e}")
    for power in sorted(fixed):
        print(f"  c{power + 2} = {literal(fixed[power])}")


def gelu_root(a):
    """The fourth root of (max(x, 0) - GELU(x)) / a for |x| = a: of 0.5 erfc(a / sqrt 2)."""
    return (0.5 * math.erfc(a / math.sqrt(2))) ** 0.25


def fit_gelu(end=5.7, degree=8):
    """Of degree 8 the polynomial has its root at 5.7, beyond which GELU(x) is x or 0."""
    fixed, _ = fit_float32(gelu_root, lambda a: (a + 1e-9) * 4 * gelu_root(a) ** 3,
                           list(range(degree + 1)), 0.0, end)
    def root(a):
        return sum(c * a ** p for p, c in fixed.items())
    worst = max(a * abs(root(a) ** 4 - gelu_root(a) ** 4)
                for a in (end * i / 20000 for i in range(20001)))
    print(f"gelu, degree {degree}; absolute error {worst:.2e}, root at {end}: {root(end):.1e}")
    for power in sorted(fixed):
        print(f"  c{power} = {literal(fixed[power])}")


FITS = {"exp": fit_exp, "expm1": fit_expm1, "gelu": fit_gelu}

if __name__ == "__main__":
    names = sys.argv[1:] or list(FITS)
    for name in names:
        if name not in FITS:
            sys.exit(f"fit.py: {name}: no such fit; choose from {', '.join(FITS)}")
        FITS[name]()
