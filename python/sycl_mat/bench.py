"""Measures contenders side by side, and checks every result it measured.

A library's worker threads may keep spinning after a call (OpenBLAS's do, for up to a quarter of a second) and take a core away from
whatever runs next. So each contender runs in blocks of its own, with a pause after one that spins, and the blocks take turns so that a
change of the machine's clock meets all of them. The plain interleaving, one call each in turn, is measured too: it is what a program
that mixes the libraries sees.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .peers import Contender
from .shapes import Shape, check_dtype

Array = NDArray[Any]

PAUSE_AFTER_SPINNING = 0.3
#: a call that takes longer than this is timed twice, and left out of the interleaving: the whole would take its length
SLOW = 1.0
#: a product that takes longer than this is compared with multiply-adds that take as long: few slices of a shared machine are undisturbed
LONG = 5e-3
#: what multiply-adds are otherwise measured over (src/roofline.cpp)
SHORT_SLICE = 15e-3
#: another round while one improved somebody's best time by a fiftieth, up to so many times the rounds that were asked for
MOST_ROUNDS = 3
#: a timed sample lasts at least this long, so that the clock's own cost does not count
SHORTEST_SAMPLE = 50e-6
#: float64 reference of the whole result up to here, of some rows and one projection beyond
WHOLE_REFERENCE_FLOPS = 3e11
SAMPLED_ROWS = 192


@dataclass
class Timing:
    """Seconds a call, one number a sample."""

    samples: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """How far the median lies above the best, as a fraction of the best."""
        return self.median / self.best - 1


@dataclass
class Result:
    """One contender at one shape."""

    contender: str
    peer: bool
    flops: float
    quiet: Timing
    interleaved: Timing
    kernel: str
    error: float
    """largest |C − AB| / bound: at most 1 where `verified`"""

    @property
    def gflops(self) -> float:
        return self.flops / self.quiet.best / 1e9

    @property
    def interleaved_gflops(self) -> float:
        return self.flops / self.interleaved.median / 1e9

    @property
    def verified(self) -> bool:
        return self.error <= 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "contender": self.contender,
            "peer": self.peer,
            "kernel": self.kernel,
            "best_s": self.quiet.best,
            "median_s": self.quiet.median,
            "samples": len(self.quiet.samples),
            "gflops": self.gflops,
            "interleaved_gflops": self.interleaved_gflops if self.interleaved.samples else None,
            "error_over_bound": self.error,
            "verified": self.verified,
        }


@dataclass
class Row:
    """All contenders at one shape."""

    shape: Shape
    dtype: str
    results: list[Result]
    skipped: dict[str, str]
    peak: Timing | None = None
    """of as many multiply-adds from registers as the product has, in blocks between the contenders'; None for short products"""
    peak_floor: float = 0.0
    """GFLOP/s that multiply-adds reached elsewhere in the run over at least as long, so that these here were only unlucky"""

    def of(self, name: str) -> Result | None:
        return next((r for r in self.results if r.contender == name), None)

    @property
    def best_peer(self) -> Result | None:
        return max((r for r in self.results if r.peer), key=lambda r: r.gflops, default=None)

    def ratio(self, name: str) -> float | None:
        """How many times as fast as the best peer."""
        mine, peer = self.of(name), self.best_peer
        return None if mine is None or peer is None else mine.gflops / peer.gflops

    def peak_gflops(self, short: float | None) -> float | None:
        """The multiply-add rate that the product is measured by: over as long as it takes itself, or else in `short` slices."""
        if self.peak is None:
            return short
        own = max(self.shape.flops / self.peak.best / 1e9, self.peak_floor)
        return max(own, short or 0.0) if self.peak.best < SHORT_SLICE else own

    def share_of_peak(self, name: str, short: float | None) -> float | None:
        """None also where a product is faster than multiply-adds: by tensor units, or because a busy machine disturbed these."""
        mine, peak = self.of(name), self.peak_gflops(short)
        share = None if mine is None or not peak else mine.gflops / peak
        return None if share is None or share > 1.02 else share

    def as_dict(self) -> dict[str, Any]:
        s = self.shape
        return {
            "m": s.m,
            "n": s.n,
            "k": s.k,
            "layout": s.layout,
            "batch": s.batch,
            "group": s.group,
            "dtype": self.dtype,
            "results": [r.as_dict() for r in self.results],
            "skipped": self.skipped,
            "peak_gflops": self.peak_gflops(None),
            "peak_median_s": self.peak.median if self.peak else None,
        }


def dtype_from_name(name: str) -> np.dtype[Any]:
    """Raises ValueError for a name that is none of DTYPES, and where bfloat16's package is missing."""
    name = check_dtype(name)
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise ValueError("bfloat16 needs a package: pip install ml_dtypes") from None
        name = ml_dtypes.bfloat16
    kind: np.dtype[Any] = np.dtype(name)
    return kind


def operands(shape: Shape, dtype: str, seed: int = 0) -> tuple[Array, Array]:
    """Random operands of that layout; a transposed one is stored transposed and passed as a view."""
    random = np.random.default_rng(seed)
    batch = (shape.batch,) if shape.batch > 1 else ()
    kind = dtype_from_name(dtype)

    def make(rows: int, cols: int, transposed: bool) -> Array:
        stored = (*batch, cols, rows) if transposed else (*batch, rows, cols)
        if kind == np.int8:
            values: Array = random.integers(-100, 100, stored, np.int8)
        else:
            values = random.random(stored, np.float32)
            values = (values * 2 - 1).astype(kind)
        return values.swapaxes(-1, -2) if transposed else values

    return make(shape.m, shape.k, shape.layout[0] == "T"), make(shape.k, shape.n, shape.layout[1] == "T")


class Reference:
    """The product in float64, and how far a result may lie from it: |C − AB| ≤ γ(K)·|A||B| + u·|AB|, γ(K) = Ku / (1 − Ku), with the
    unit roundoff of the accumulator in γ and that of the result's type beside it (Higham, Accuracy and Stability, 3.5)."""

    def __init__(self, a: Array, b: Array, out: np.dtype[Any]) -> None:
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        self.rows: Array | None = None
        self._a, self._b = a, b
        if 2.0 * m * n * k * math.prod(a.shape[:-2]) > WHOLE_REFERENCE_FLOPS and m > SAMPLED_ROWS and a.ndim == 2:
            inner = np.random.default_rng(1).choice(m, SAMPLED_ROWS - 2, replace=False)
            self.rows = np.unique([0, m - 1, *inner])
            a = a[self.rows]
        a64, b64 = a.astype(np.float64), b.astype(np.float64)
        self.value = a64 @ b64
        roundoff, result_roundoff = _roundoff(out)
        gamma = k * roundoff / (1 - min(k * roundoff, 0.5))
        if out == np.float64:
            gamma *= 2  # the reference is no better
        self.bound = gamma * (np.abs(a64) @ np.abs(b64)) + result_roundoff * np.abs(self.value) + np.finfo(np.float32).tiny
        self._gamma = gamma

    def error(self, out: Array) -> float:
        """The largest error in units of the bound; infinity where the result has no number."""
        part = out if self.rows is None else out[self.rows]
        difference = np.abs(part.astype(np.float64) - self.value)
        worst = float(np.max(difference / self.bound, initial=0.0))
        if self.rows is not None:
            worst = max(worst, self._projection_error(out))
        return worst if math.isfinite(worst) else math.inf

    def _projection_error(self, out: Array) -> float:
        """Every element of a result too large for a whole reference, by C·x against A·(B·x)."""
        x = np.random.default_rng(2).choice([-1.0, 1.0], self._b.shape[1])
        a64, b64 = self._a.astype(np.float64), self._b.astype(np.float64)
        difference = np.abs(out.astype(np.float64) @ x - a64 @ (b64 @ x))
        return float(np.max(difference / (self._gamma * (np.abs(a64) @ np.abs(b64).sum(axis=1)) + np.finfo(np.float32).tiny)))


def _roundoff(out: np.dtype[Any]) -> tuple[float, float]:
    """Unit roundoff of the accumulator and of the result's type."""
    if out.kind == "i":
        return 0.0, 0.0
    if out == np.float64:
        return 2.0**-53, 0.0
    return 2.0**-24, {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}[out.name]


def _time(run: Callable[[], object], seconds: float, number: int, most: int = 10_000) -> list[float]:
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < most:
        begin = time.perf_counter()
        for _ in range(number):
            run()
        now = time.perf_counter()
        samples.append((now - begin) / number)
        if now > end:
            break
    return samples


def _peak_times(peak: Callable[[float], float], flops: float, seconds: float) -> list[float]:
    """Seconds of that many multiply-adds, again and again for about `seconds`."""
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while not samples or time.perf_counter() < end:
        samples.append(flops / peak(flops) / 1e9)
    return samples


def _calls_a_sample(run: Callable[[], object]) -> tuple[int, float]:
    """How many calls make a sample long enough, and about how long one takes."""
    run()
    begin = time.perf_counter()
    run()
    once = max(time.perf_counter() - begin, 1e-8)
    if once < SHORTEST_SAMPLE:
        begin = time.perf_counter()
        for _ in range(20):
            run()
        once = max((time.perf_counter() - begin) / 20, 1e-8)
    return max(1, math.ceil(SHORTEST_SAMPLE / once)), once


def measure(
    shape: Shape,
    dtype: str,
    contenders: Sequence[Contender],
    *,
    rounds: int = 3,
    seconds: float = 0.25,
    interleave: bool = True,
    step: Callable[[str], None] = lambda _: None,
    peak: Callable[[float], float] | None = None,
) -> Row:
    """Times every contender at one shape: `rounds` quiet blocks of about `seconds` each, more while times improve, then the plain
    interleaving. `peak(flops)` runs so many multiply-adds and returns their rate in GFLOP/s."""
    a, b = operands(shape, dtype)
    kind = np.dtype(np.int32) if dtype == "int8" else a.dtype
    outs: dict[str, Array] = {}
    skipped: dict[str, str] = {}
    runs: dict[str, Callable[[], object]] = {}
    calls: dict[str, tuple[int, float]] = {}
    kernels: dict[str, str] = {}
    quiet: dict[str, Timing] = {}
    batch = (shape.batch,) if shape.batch > 1 else ()
    able = [c for c in contenders if dtype in c.dtypes and (c.stacks or shape.batch == 1)]
    for contender in able:
        out = np.empty((*batch, shape.m, shape.n), kind)
        run, name = contender.run, contender.name
        runs[name] = lambda run=run, out=out: run(a, b, out)  # type: ignore[misc]
        try:
            calls[name] = _calls_a_sample(runs[name])
        except (RuntimeError, ValueError, TypeError) as error:  # constants this device has no room for, a dtype it lacks
            skipped[name] = str(error)
            continue
        kernels[name] = "" if contender.peer else _core.last_kernel()
        outs[name] = out
        slow = calls[name][1] > SLOW
        quiet[name] = Timing([calls[name][1]] if slow else [])
        if contender.spins:
            time.sleep(PAUSE_AFTER_SPINNING)
    able = [c for c in able if c.name in quiet]
    if not able:
        return Row(shape, dtype, [], skipped)

    ceiling = Timing([])
    timings = [*quiet.values(), ceiling]
    for turn in range(MOST_ROUNDS * rounds):
        before = [timing.best if timing.samples else None for timing in timings]
        for contender in able[turn % len(able) :] + able[: turn % len(able)]:
            step(contender.name)
            name = contender.name
            number, once = calls[name]
            if once > SLOW and len(quiet[name].samples) >= 2:
                continue
            if once < seconds:
                for _ in range(max(2, min(number, 1000))):
                    runs[name]()
            quiet[name].samples += _time(lambda run=contender.run, out=outs[name]: run(a, b, out), seconds, number)  # type: ignore[misc]
            if contender.spins:
                time.sleep(PAUSE_AFTER_SPINNING)
        fastest = min(timing.best for timing in quiet.values())
        if peak is not None and fastest > LONG and not (fastest > SLOW and len(ceiling.samples) >= 2):
            step("peak")
            ceiling.samples += _peak_times(peak, shape.flops, seconds)
        improved = any(best is not None and timing.best <= 0.98 * best for timing, best in zip(timings, before, strict=True))
        if turn + 1 >= rounds and not improved:
            break

    mixed = {c.name: Timing() for c in able}
    if interleave:
        end = time.perf_counter() + seconds * len(able)
        while True:
            for contender in (c for c in able if calls[c.name][1] <= SLOW):
                mixed[contender.name].samples += _time(runs[contender.name], 0.0, calls[contender.name][0], most=1)
            if time.perf_counter() > end:
                break
        time.sleep(PAUSE_AFTER_SPINNING)
    reference = Reference(a, b, kind)
    results = [
        Result(c.name, c.peer, shape.flops, quiet[c.name], mixed[c.name], kernels[c.name], reference.error(outs[c.name])) for c in able
    ]
    time.sleep(PAUSE_AFTER_SPINNING)  # the reference was NumPy's
    return Row(shape, dtype, results, skipped, ceiling if ceiling.samples else None)


def settle_peaks(rows: Sequence[Row]) -> None:
    """No slice of multiply-adds is better by itself than a longer one: what the longer one reached counts for the shorter one, too."""
    for row in rows:
        longer = (r for r in rows if r.dtype == row.dtype and r.shape.flops >= row.shape.flops)
        row.peak_floor = max((r.shape.flops / r.peak.best / 1e9 for r in longer if r.peak), default=0.0)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
