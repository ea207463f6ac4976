"""The tuner for Python: measure the constants of the kernels on this device, keep the best, and look at what was found.

>>> import sycl_mat
>>> report = sycl_mat.tune([(1024, 1024, 1024)], budget=20)   # doctest: +SKIP
>>> print(report)                                             # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core
from ._products import DeviceLike, ParamsLike
from .errors import Error
from .shapes import Shape, check_dtype

#: sizes of one product, as `tune` takes them: (m, n, k), or a Shape with layout and batch
ShapeLike = Shape | tuple[int, int, int]
_RawProblem = tuple[int, int, int, int, str, bool, bool]


@dataclass(frozen=True)
class Problem:
    """A product that is tuned for: a shape and an element type."""

    shape: Shape
    dtype: str = "float32"

    @property
    def label(self) -> str:
        return self.shape.label if self.dtype == "float32" else f"{self.shape.label} {self.dtype}"

    def raw(self) -> _RawProblem:
        s = self.shape
        return (s.m, s.n, s.k, s.batch, self.dtype, s.layout[0] == "T", s.layout[1] == "T")

    @staticmethod
    def from_raw(raw: _RawProblem) -> Problem:
        m, n, k, batch, dtype, transpose_a, transpose_b = raw
        return Problem(Shape(m, n, k, "NT"[transpose_a] + "NT"[transpose_b], batch), dtype)


@dataclass
class Candidate:
    """One set of constants that was tried."""

    params: ParamsLike
    constants: dict[str, int]
    state: str
    """'measured', 'wrong result', 'does not compile', 'device error', 'crashed' or 'spills'"""
    why: str
    seconds: list[float | None]
    """of a launch, one a problem of the group; None: not measured"""
    found_at: float
    build_seconds: float
    registers: int
    spills: int


@dataclass
class Outcome:
    """What tuning one kernel for one problem came to."""

    problem: Problem
    kernel: str
    defaults: ParamsLike
    present: ParamsLike
    best: ParamsLike
    best_text: str
    default_gflops: float
    present_gflops: float
    best_gflops: float
    gain: float
    """time with the constants in use before ÷ time with the best, the median over rounds in which they took turns"""
    noise: float
    improved: bool
    verdict: str
    fastest: bool = False
    """this kernel beat all others for the problem; 'onemkl': all of ours"""
    rule: str = ""
    """the kernel that is taken where nothing was measured; empty: the kernels were not measured beside each other"""

    @property
    def over_defaults(self) -> float:
        return self.best_gflops / self.default_gflops if self.default_gflops else 1.0


@dataclass
class Group:
    """Problems of one kernel, element type and layout, which were searched together."""

    kernel: str
    space: int
    problems: list[Problem]
    candidates: list[Candidate]
    outcomes: list[Outcome]

    def best_so_far(self, problem: int) -> list[tuple[float, float]]:
        """(seconds since the start, GFLOP/s) of each new best for a problem."""
        flops = self.problems[problem].shape.flops
        best = 0.0
        steps = []
        for candidate in self.candidates:
            seconds = candidate.seconds[problem] if problem < len(candidate.seconds) else None
            if seconds and flops / seconds / 1e9 > best:
                best = flops / seconds / 1e9
                steps.append((candidate.found_at, best))
        return steps

    def sharing(self) -> list[list[float | None]]:
        """How well constants travel: row i, column j is the speed at problem j of the set that was best at problem i, as a share of the
        best at j; None where that set was not measured at j. What decides how wide the classes of problems are (docs/tuning.md)."""
        measured = [c for c in self.candidates if c.state == "measured"]
        rows: list[list[float | None]] = []
        least = [min((s for c in measured if (s := c.seconds[j])), default=None) for j in range(len(self.problems))]
        for i in range(len(self.problems)):
            timed = [c for c in measured if c.seconds[i]]
            winner = min(timed, key=lambda c: c.seconds[i] or 0.0, default=None)
            row: list[float | None] = []
            for j, best in enumerate(least):
                own = winner.seconds[j] if winner else None
                row.append(best / own if best and own else None)
            rows.append(row)
        return rows


@dataclass
class TuneReport:
    """Everything that a run of the tuner saw."""

    device: str
    driver: str
    fingerprint: str
    file: str
    """where the records went, empty: nowhere"""
    records: int
    seconds: float
    interrupted: bool
    groups: list[Group] = field(default_factory=list)

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for group in self.groups for outcome in group.outcomes]

    def best_outcomes(self) -> list[Outcome]:
        """The fastest kernel of each problem."""
        best: dict[Problem, Outcome] = {}
        for outcome in self.outcomes:
            if outcome.problem not in best or outcome.best_gflops > best[outcome.problem].best_gflops:
                best[outcome.problem] = outcome
        return list(best.values())

    def __str__(self) -> str:
        lines = [f"{self.device}, {sum(len(g.candidates) for g in self.groups)} sets of constants in {self.seconds:.0f} s"]
        for o in self.outcomes:
            lines.append(
                f"{o.problem.label:>20}  {o.kernel:<10} {o.default_gflops:9.1f} -> {o.best_gflops:9.1f} GFLOP/s  {o.best_text}: {o.verdict}"
            )
        return "\n".join(lines)


def _report(raw: dict[str, Any]) -> TuneReport:
    groups = []
    for g in raw["groups"]:
        outcomes = [Outcome(**{**o, "problem": Problem.from_raw(o["problem"])}) for o in g["outcomes"]]
        groups.append(
            Group(
                g["kernel"], g["space"], [Problem.from_raw(p) for p in g["problems"]], [Candidate(**c) for c in g["candidates"]], outcomes
            )
        )
    return TuneReport(**{**raw, "groups": groups})


def problems_of(shapes: Iterable[ShapeLike | Problem], dtypes: Sequence[str] = ("float32",)) -> list[Problem]:
    """Shapes and element types as problems; a shape that names its own types has those only."""
    result: dict[Problem, None] = {}
    for shape in shapes:
        if isinstance(shape, Problem):
            result[shape] = None
            continue
        whole = shape if isinstance(shape, Shape) else Shape(*shape)
        for dtype in dtypes:
            if not whole.dtypes or dtype in whole.dtypes:
                result[Problem(Shape(whole.m, whole.n, whole.k, whole.layout, whole.batch), dtype)] = None
    return list(result)


def read_trace(path: Path, most: int = 40) -> list[Problem]:
    """The problems that a program had, from the file that SYCL_MAT_TRACE named, those that cost the most operations first."""
    counts: dict[Problem, int] = {}
    with path.open() as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                shape = Shape(entry["m"], entry["n"], entry["k"], entry["layout"].upper(), entry["batch"])
                problem = Problem(shape, check_dtype(entry["dtype"]))
                count = int(entry["count"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if "entry" in locals() and isinstance(entry, dict) and 0 in (entry.get("m"), entry.get("n"), entry.get("k")):
                    continue  # an empty product costs nothing
                raise ValueError(f"{path}, line {number}: {error}") from error
            # A problem has a line when it is met first, and one with the final count.
            counts[problem] = max(counts.get(problem, 0), count)
    ranked = sorted(counts, key=lambda p: counts[p] * p.shape.flops, reverse=True)
    return ranked[:most]


class NotWrittenError(Error):
    """The search ended well, but its records could not be put into the tuning file."""

    def __init__(self, message: str, report: TuneReport) -> None:
        super().__init__(message)
        #: what was found; its `file` is the place of the records, empty where they are lost
        self.report = report

    def __reduce__(self) -> tuple[type[NotWrittenError], tuple[str, TuneReport]]:
        return (NotWrittenError, (str(self), self.report))


def reason_of(error: OSError) -> str:
    """Why a file cannot be written, in words: of a parent that is a file, mkdir says that it exists."""
    return f"{error.filename} is no folder" if isinstance(error, FileExistsError) else error.strerror or str(error)


def check_tuning_file(file: str | Path | None = None) -> Path:
    """The file that the records will go to (None: the user's), after a look whether they can. Makes its folder. Raises Error."""
    target = Path(file or _core.user_tuning_file())
    mend = "give another file" if file else "set SYCL_MAT_TUNING_FILE or XDG_CONFIG_HOME to a writable place"
    if target.exists() and not target.is_file():
        raise Error(f"the tuning file {target} is no ordinary file; {mend}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # It is replaced by a file that is written beside it.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise Error(f"the tuning file {target} cannot be written ({reason_of(error)}); {mend}") from None
    return target


def _keep(report: TuneReport, target: Path) -> None:
    """Moves the records from the file where the search left them to where they belong."""
    try:
        report.records, _, _ = _core.merge_tuning_file(report.file, str(target))
    except Error as error:
        raise NotWrittenError(
            f"{error}; the records are in {report.file}: sycl-mat tuned import puts them into your tuning file", report
        ) from None
    report.file = str(target)


def tune(
    shapes: Iterable[ShapeLike | Problem] | None = None,
    *,
    budget: float = 60.0,
    device: DeviceLike = None,
    dtype: str | Sequence[str] = "float32",
    kernels: Sequence[str] | None = None,
    strategy: str = "guided",
    seed: int = 1,
    write: bool = True,
    file: str | Path | None = None,
    resume: bool = True,
    progress: Callable[[dict[str, Any]], None] | None = None,
    record_sweep: str | Path | None = None,
    most_evaluations: int = 0,
    restrict: dict[str, Sequence[int]] | None = None,
) -> TuneReport:
    """Find the constants that are fastest on this device, and keep them where later products look for them.

    shapes
        what to tune for: (m, n, k), Shape or Problem; None: problems that stand for what matters on such a device
    budget
        seconds for everything; compiling included
    kernels
        names to consider; None: all that could be chosen, the host path and oneMKL (where it is installed) among them, and which of them
        is the fastest is recorded too
    strategy
        "guided", "exhaustive", "random" or "annealing"
    write
        whether the winners go into the tuning file (`file`; None: the user's)
    resume
        whether what earlier runs measured on this device leads this one. Sets that were wrong or crashed are never tried again.
    progress
        called with a dictionary after every set of constants
    restrict
        values that a constant may take, by name

    Ctrl-C ends the search; what was found until then is compared and kept. Raises InputError for arguments that make no sense,
    Error where the tuning file cannot be written (before the search), and NotWrittenError, which holds the report, where that fails after
    it all the same.
    """
    dtypes = [dtype] if isinstance(dtype, str) else list(dtype)
    if shapes is None:
        shapes = [Problem.from_raw(raw).shape for raw in _core.representative_problems(device)]
    problems = [problem.raw() for problem in problems_of(shapes, dtypes)]
    target = check_tuning_file(file) if write else None
    aside = None
    if target:
        # A minute of measuring must not be lost to a file that was filled or moved meanwhile: the records are written elsewhere first.
        # The folder is made when they are, so that nothing stays where a set of constants ends the process.
        with contextlib.suppress(OSError):  # no such place: straight into the file
            aside = Path(tempfile.gettempdir()) / f"sycl-mat-tune-{secrets.token_hex(8)}"
    kept = True
    try:
        report = _report(
            _core.tune(
                problems,
                device=device,
                progress=progress,
                budget=float(budget),
                kernels=list(kernels or ()),
                strategy=strategy,
                seed=seed,
                write=write,
                file=str((aside / "records.json" if aside else target) or ""),
                resume=resume,
                record_sweep=str(record_sweep or ""),
                most_evaluations=most_evaluations,
                restrict={name: list(values) for name, values in (restrict or {}).items()},
            )
        )
        if aside and target and report.file:
            kept = False
            _keep(report, target)
            kept = True
    finally:
        if aside and kept:
            shutil.rmtree(aside, ignore_errors=True)
    return report


def report_as_dict(report: TuneReport) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return {
        "device": report.device,
        "driver": report.driver,
        "fingerprint": report.fingerprint,
        "file": report.file,
        "records": report.records,
        "seconds": report.seconds,
        "interrupted": report.interrupted,
        "groups": [
            {
                "kernel": g.kernel,
                "space": g.space,
                "problems": [list(p.raw()) for p in g.problems],
                "candidates": [{**c.__dict__, "params": None} for c in g.candidates],
                "outcomes": [
                    {
                        "problem": list(o.problem.raw()),
                        "kernel": o.kernel,
                        "best": o.best_text,
                        "default_gflops": o.default_gflops,
                        "present_gflops": o.present_gflops,
                        "best_gflops": o.best_gflops,
                        "gain": o.gain,
                        "noise": o.noise,
                        "improved": o.improved,
                        "verdict": o.verdict,
                        "fastest": o.fastest,
                        "rule": o.rule,
                    }
                    for o in g.outcomes
                ],
            }
            for g in report.groups
        ],
    }


def report_from_dict(content: dict[str, Any]) -> TuneReport:
    """The report that `report_as_dict` wrote; the constants of the outcomes are text only."""
    groups = []
    for g in content["groups"]:
        outcomes = [
            Outcome(
                problem=Problem.from_raw(tuple(o["problem"])),
                kernel=o["kernel"],
                defaults=None,
                present=None,
                best=None,
                best_text=o["best"],
                **{name: o[name] for name in ("default_gflops", "present_gflops", "best_gflops", "gain", "noise", "improved", "verdict")},
                fastest=o.get("fastest", False),
                rule=o.get("rule", ""),
            )
            for o in g["outcomes"]
        ]
        problems = [Problem.from_raw(tuple(p)) for p in g["problems"]]
        groups.append(Group(g["kernel"], g["space"], problems, [Candidate(**c) for c in g["candidates"]], outcomes))
    return TuneReport(**{**content, "groups": groups})
