#!/usr/bin/env python3
"""Kernels against float64 on random problems, each named by a seed that reproduces it.

python tests/fuzz/fuzz.py --seconds 60
python tests/fuzz/fuzz.py --seed 1234567      # that one problem, with all its particulars
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import sycl_mat

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from oracle import bound

DTYPES = [np.dtype(kind) for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]


def size(random: np.random.Generator) -> int:
    """Mostly small and around powers of two, where edges are; sometimes long."""
    kind = random.integers(5)
    if kind == 0:
        return int(random.integers(0, 4))
    if kind == 1:
        return int(2 ** random.integers(1, 9) + random.integers(-1, 2))
    if kind == 2:
        return int(random.integers(1, 20))
    if kind == 3:
        return int(random.integers(20, 300))
    return int(random.integers(300, 1500))


def laid_out(values: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """The same values in a random layout, inside a frame of NaNs."""
    rows, cols = values.shape[-2:]
    steps = random.choice([1, 1, 1, 2, -1], 2)
    extents = [rows * abs(int(steps[0])) + 3, cols * abs(int(steps[1])) + 5]
    turned = bool(random.integers(2))
    frame = np.full((*values.shape[:-2], *(extents[::-1] if turned else extents)), np.nan, values.dtype)
    view = frame.swapaxes(-1, -2) if turned else frame
    view = view[..., 1 : 1 + rows * abs(int(steps[0])) : abs(int(steps[0])), 2 : 2 + cols * abs(int(steps[1])) : abs(int(steps[1]))]
    view = view[..., :: int(np.sign(steps[0])), :: int(np.sign(steps[1]))]
    view[...] = values
    return view


def one(seed: int, verbose: bool = False) -> int:
    """Runs one problem on every kernel that can do it; how many did. Raises AssertionError."""
    random = np.random.default_rng(seed)
    m, n, k = (size(random) for _ in range(3))
    while m * n * k > 3e7:
        m, n, k = (max(1, x // 2) for x in (m, n, k))
    batch = [(), (), (), (2,), (3, 2)][random.integers(5)] if m * n * k < 1e6 else ()
    dtype = DTYPES[random.integers(len(DTYPES))]
    scale = 10.0 ** random.integers(-2, 2 if dtype == np.float16 else 3)  # float16 ends at 65504
    a, b = ((random.standard_normal((*batch, *s)) * scale).astype(dtype) for s in ((m, k), (k, n)))
    c = random.standard_normal((*batch, m, n)).astype(dtype)
    alpha, beta = [(1.0, 0.0), (1.0, 1.0), (-0.5, 0.25)][random.integers(3)]
    left, right = laid_out(a, random), laid_out(b, random)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    limit = abs(alpha) * bound(a, b) * 2
    if beta:
        exact = alpha * exact + beta * c.astype(np.float64)
        limit = limit + np.abs(exact) * float(ml_dtypes.finfo(dtype).eps) + np.abs(c.astype(np.float64)) * 4e-7
    else:
        exact = alpha * exact
    done = 0
    for kernel in [None, *(kernel.name for kernel in sycl_mat.kernels())]:
        out = laid_out(np.full((*batch, m, n), np.nan).astype(dtype), random)
        frame = out
        while frame.base is not None and isinstance(frame.base, np.ndarray):
            frame = frame.base
        try:
            sycl_mat.gemm(left, right, c if beta else None, alpha=alpha, beta=beta, out=out, kernel=kernel)
        except sycl_mat.UnsupportedError:
            continue
        where = f"seed {seed}: {kernel or sycl_mat.last_kernel()} {batch} {m}×{n}×{k} {dtype} alpha {alpha} beta {beta} strides {left.strides} {right.strides} {out.strides}"
        if verbose:
            print(where)
        difference = np.abs(out.astype(np.float64) - exact)
        assert np.all(difference <= limit), f"{where}: error {np.max(difference / limit):.3g} × the bound"
        out[...] = np.nan
        assert np.all(np.isnan(frame.astype(np.float32))), f"{where}: written outside the result"
        done += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        print(f"{one(arguments.seed, verbose=True)} kernels agree")
        return
    first = seed = int(time.time()) * 1000
    products = 0
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        products += one(seed)
        seed += 1
    print(f"{seed - first} problems, {products} products: all within their bounds, nothing written outside")


if __name__ == "__main__":
    main()
