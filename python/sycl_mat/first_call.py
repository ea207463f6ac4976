"""How long a new process waits for its first product: with what it compiled before, with what the package ships, with neither."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: prints the seconds of importing, and from then to the first product
_PROGRAM = """
import sys, time
import numpy as np
a = np.ones((1024, 1024), np.float32)
begin = time.perf_counter()
import sycl_mat
imported = time.perf_counter()
params = {params}
sycl_mat.matmul(a, a, device={device!r}, **params)
print(imported - begin, time.perf_counter() - imported)
"""

#: constants that no package ships
_NEW_TILES = "dict(kernel='tiled', params=sycl_mat.TileParams(8, 8, 12, 4, 4, 4))"
_NEW_PACKS = "dict(kernel='packed', params=sycl_mat.PackParams(mr=5, nv=2))"


@dataclass(frozen=True)
class FirstCall:
    """Best of several new processes, in seconds. NumPy's import is not in it."""

    what: str
    importing: float
    product: float
    goal: float

    @property
    def total(self) -> float:
        return self.importing + self.product


def _once(cache: Path, device: str | None, params: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(params=params, device=device)],
        env={**os.environ, "SYCL_MAT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    importing, product = map(float, done.stdout.split())
    return importing, product


def measure_first_calls(device: str | None = None, on_processor: bool = True, repeats: int = 3) -> list[FirstCall]:
    """The three cases, each `repeats` times in processes of their own."""
    results = []
    for what, params, fresh, goal in (
        ("compiled before (warm cache)", "{}", False, 0.15),
        ("shipped constants, empty cache", "{}", True, 0.6),
        ("new constants, empty cache", _NEW_PACKS if on_processor else _NEW_TILES, True, 1.5),
    ):
        with tempfile.TemporaryDirectory() as folder:
            if not fresh:
                _once(Path(folder), device, params)
            tries = [_once(Path(folder) / (str(i) if fresh else ""), device, params) for i in range(repeats)]
        importing, product = min(tries, key=sum)
        results.append(FirstCall(what, importing, product, goal))
    return results
