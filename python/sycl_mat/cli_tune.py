"""sycl-mat tune: find the fastest kernels and constants, show what was found. (try and tuned have files of their own.)"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from . import _core
from .bench import dtype_from_name
from .cli_bench import check_output, check_picture, check_plotting
from .cli_try import try_command
from .cli_tuned import fail, plain, tuned_app
from .errors import Error
from .shapes import dtypes_of, read_shapes, sizes_of
from .tuning import (
    NotWrittenError,
    Problem,
    TuneReport,
    check_tuning_file,
    problems_of,
    read_trace,
    report_as_dict,
    report_from_dict,
    tune,
)

console = Console()

#: a set of constants may bring the process down; what it had found is in the journal, so the search goes on in a new one
MOST_RESTARTS = 5
_WORKER = "SYCL_MAT_TUNE_WORKER"


def _wanted(
    sizes: str | None, shapes: Path | None, group: list[str] | None, from_trace: Path | None, dtype: str, device: str | None
) -> list[Problem]:
    if sum(given is not None for given in (sizes, shapes, from_trace)) > 1:
        raise typer.BadParameter("give one of --sizes, --shapes and --from-trace")
    try:
        dtypes = dtypes_of(dtype)
        for kind in dtypes:
            dtype_from_name(kind)
        if from_trace:
            found = read_trace(from_trace)
            if not found:
                raise typer.BadParameter(f"{from_trace} holds no problem")
            return found
        if shapes:
            chosen = [shape for shape in read_shapes(shapes) if not group or shape.group in group]
        elif sizes:
            chosen = sizes_of(sizes)
        else:
            chosen = [Problem.from_raw(raw).shape for raw in _core.representative_problems(device)]
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    if not chosen:
        raise typer.BadParameter("there is no shape to tune for")
    return problems_of(chosen, dtypes)


def _restrictions(texts: list[str] | None) -> dict[str, Sequence[int]]:
    result: dict[str, Sequence[int]] = {}
    for text in texts or ():
        name, _, values = text.partition("=")
        try:
            result[name.strip()] = [int(value) for value in values.split(",")]
        except ValueError:
            raise typer.BadParameter(f"--only {text!r}: something like kc=256,512 is wanted") from None
    return result


def _peer_gflops(problems: Sequence[Problem], most_seconds: float) -> dict[Problem, float]:
    """The best peer's speed at each problem, on the processor; problems for which there was no time are left out."""
    from . import bench, peers

    contenders = [c for c in (peers.numpy_contender(), peers.onemkl_contender()) if c]
    result: dict[Problem, float] = {}
    end = time.perf_counter() + most_seconds
    for problem in sorted(problems, key=lambda p: p.shape.flops, reverse=True):
        if time.perf_counter() > end:
            break
        a, b = bench.operands(problem.shape, problem.dtype)
        out = (a @ b).copy()
        for contender in contenders:
            if problem.dtype not in contender.dtypes or (problem.shape.batch > 1 and not contender.stacks):
                continue
            best = float("inf")
            for _ in range(4):
                start = time.perf_counter()
                contender.run(a, b, out)
                best = min(best, time.perf_counter() - start)
            result[problem] = max(result.get(problem, 0.0), problem.shape.flops / best / 1e9)
    time.sleep(bench.PAUSE_AFTER_SPINNING)
    return result


class _Bar:
    """The progress bar: best so far, its ratio to the defaults and to the peers, the time left."""

    def __init__(self, budget: float, peers: dict[Problem, float], problems: Sequence[Problem]) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[found]}"))
        self.progress = Progress(*columns, console=console, transient=True)
        self.task = self.progress.add_task("starting", total=budget, found="")
        largest = max(problems, key=lambda p: p.shape.flops)
        self.peer = peers.get(largest)

    def __call__(self, state: dict[str, Any]) -> None:
        part = f" {state['group'] + 1}/{state['groups']}" if state["groups"] > 1 else ""
        what = f"{state['kernel']}{part}: " + ("comparing the best" if state["phase"] == "final" else "searching")
        found = f"{state['evaluations']} sets"
        if state["failures"]:
            found += f", {state['failures']} failed"
        if state["best_gflops"]:
            found += f", best {state['best_gflops']:.4g} GFLOP/s, {state['best_ratio']:.3f} × defaults"
            if self.peer:
                found += f", {state['best_gflops'] / self.peer:.2f} × best peer"
        self.progress.update(self.task, completed=min(state["elapsed"], state["budget"]), description=what, found=found)


def _table(report: TuneReport, peers: dict[Problem, float]) -> Table:
    table = Table(title="GFLOP/s, best of rounds in which all took turns", title_justify="left")
    for name, right in (("problem", 0), ("kernel", 0), ("defaults", 1), ("before", 1), ("now", 1), ("× defaults", 1)):
        table.add_column(name, justify="right" if right else "left")
    if peers:
        table.add_column("× best peer", justify="right")
    table.add_column("constants", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for o in report.outcomes:
        cells = [
            o.problem.label,
            f"[green]{plain(o.kernel)}[/]" if o.fastest else plain(o.kernel),
            f"{o.default_gflops:.1f}",
            f"{o.present_gflops:.1f}",
            f"{o.best_gflops:.1f}",
            f"{o.over_defaults:.2f}",
        ]
        if peers:
            peer = peers.get(o.problem)
            cells.append(f"{o.best_gflops / peer:.2f}" if peer else "-")
        table.add_row(*cells, plain(o.best_text), f"[green]{plain(o.verdict)}[/]" if o.improved else plain(o.verdict))
    return table


def _summary(report: TuneReport) -> None:
    tried = sum(len(g.candidates) for g in report.groups)
    states: dict[str, int] = {}
    for group in report.groups:
        for candidate in group.candidates:
            states[candidate.state] = states.get(candidate.state, 0) + 1
    failed = ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if state != "measured")
    console.print(
        f"{tried} sets of constants in {report.seconds:.0f} s"
        + (f" ({failed})" if failed else "")
        + (", interrupted" if report.interrupted else ""),
        highlight=False,
    )
    if report.file:
        console.print(f"{report.records} records written: {report.file}", highlight=False)
    else:
        console.print("nothing was written")


def _supervise(budget: float) -> int:
    """Runs this very command in a child process, and again where a set of constants brought it down. Returns its exit status."""
    end = time.monotonic() + budget
    environment = dict(os.environ)
    for _ in range(MOST_RESTARTS):
        environment[_WORKER] = str(max(5.0, end - time.monotonic()))
        child = subprocess.Popen([sys.executable, "-m", "sycl_mat", *sys.argv[1:]], env=environment)
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child hears it too, and ends in its own way
        try:
            status = child.wait()
        finally:
            signal.signal(signal.SIGINT, previous)
        if status >= 0:
            return status
        console.print(f"[yellow]a set of constants ended the process (signal {-status}); the search goes on without it[/yellow]")
    return 1


def tune_command(
    budget: Annotated[float, typer.Option(help="seconds for everything", min=1)] = 60,
    kernel: Annotated[list[str] | None, typer.Option(help="only these kernels")] = None,
    sizes: Annotated[str | None, typer.Option(help="square sizes, with commas between them")] = None,
    shapes: Annotated[
        Path | None, typer.Option(help="exactly the shapes of a file like bench/shapes.toml", exists=True, dir_okay=False)
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="only these groups of --shapes")] = None,
    from_trace: Annotated[
        Path | None, typer.Option(help="the problems of a program that ran with SYCL_MAT_TRACE=FILE", exists=True)
    ] = None,
    dtype: Annotated[str, typer.Option(help="element types, with commas between them")] = "float32",
    device: Annotated[str | None, typer.Option(help="'cpu', 'gpu', 'gpu:1', 'level_zero:0'")] = None,
    strategy: Annotated[str, typer.Option(help="guided, exhaustive, random or annealing")] = "guided",
    seed: Annotated[int, typer.Option(help="of the search's random numbers")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="values a constant may take: kc=256,512 (repeatable)")] = None,
    most: Annotated[int, typer.Option(help="sets of constants for each kernel at most, 0: as many as there is time for", min=0)] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget what earlier runs tried")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="write no records")] = False,
    file: Annotated[Path | None, typer.Option(help="write the records there instead of the user's tuning file")] = None,
    compare: Annotated[bool, typer.Option(help="measure NumPy and oneMKL too, on a CPU device")] = True,
    plot: Annotated[Path | None, typer.Option(help="draw pictures: FILE.png or FILE.svg")] = None,
    html: Annotated[Path | None, typer.Option(help="write a report with pictures in one file")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all measurements there")] = None,
    record_sweep: Annotated[Path | None, typer.Option(help="record all measurements of the first problem, to replay searches on")] = None,
) -> None:
    """Find the constants that are fastest on this device, and keep them.

    Every set is proven on shapes with edges before it counts; the best take turns with the present choice, and win only beyond the
    noise. Ctrl-C keeps what was found. A later run begins where this one ended.
    """
    restrict = _restrictions(only)
    if _WORKER not in os.environ:
        # Whatever cannot work is told now, not when the time is spent.
        for path in (json_file, html, record_sweep):
            check_output(path)
        check_picture(plot)
        if html:
            check_plotting()
        known = sizes or shapes or from_trace  # else they depend on the device, which the child looks at
        _wanted(sizes if known else "1", shapes, group, from_trace, dtype, device)
        if not dry_run:
            check_tuning_file(file)
        if fresh:
            Path(_core.tuning_journal()).unlink(missing_ok=True)
        raise typer.Exit(_supervise(budget))
    budget = float(os.environ[_WORKER])
    problems = _wanted(sizes, shapes, group, from_trace, dtype, device)
    unwritten: Error | None = None
    try:
        chosen = _core.current_device(device)
        console.print(f"{chosen.name}, {chosen.compute_units} units, driver {chosen.driver_version}", style="dim", highlight=False)
        start = time.perf_counter()
        peers = _peer_gflops(problems, min(5.0, budget / 10)) if compare and chosen.type == "cpu" else {}
        bar = _Bar(budget, peers, problems)
        with bar.progress:
            report = tune(
                problems,
                budget=max(1.0, budget - (time.perf_counter() - start)),
                device=device,
                kernels=kernel,
                strategy=strategy,
                seed=seed,
                write=not dry_run,
                file=file,
                resume=not fresh,
                progress=bar,
                record_sweep=record_sweep,
                most_evaluations=most,
                restrict=restrict,
            )
    except NotWrittenError as error:
        report, unwritten = error.report, error
    except Error as error:
        raise fail(error) from None
    console.print(_table(report, peers))
    if unwritten is None:
        _summary(report)
    if json_file:
        json_file.write_text(json.dumps(report_as_dict(report)) + "\n")
        console.print(f"measurements: {json_file}")
    _draw(report, plot, html)
    if unwritten:
        raise fail(unwritten)


def _draw(report: TuneReport, plot: Path | None, html: Path | None) -> None:
    from . import tune_report

    if plot:
        drawn = ", ".join(map(str, tune_report.write_plots(report, plot)))
        console.print(f"pictures: {drawn or 'none, for fewer than three sets of constants'}", markup=False)
    if html:
        tune_report.write_html(report, html)
        console.print(f"report: {html}")


def _measurements(file: Path) -> TuneReport:
    try:
        return report_from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, LookupError, TypeError, AttributeError):  # not JSON, or other JSON than ours
        raise typer.BadParameter(f"{file} holds no measurements of a run; sycl-mat tune --json FILE writes such a file") from None


def redraw_command(
    measurements: Annotated[Path, typer.Argument(help="what `sycl-mat tune --json FILE` wrote", exists=True, dir_okay=False)],
    plot: Annotated[Path | None, typer.Option(help="draw pictures: FILE.png or FILE.svg")] = None,
    html: Annotated[Path | None, typer.Option(help="write a report with pictures in one file")] = None,
) -> None:
    """Draw the pictures of an earlier run again."""
    report = _measurements(measurements)
    check_picture(plot)
    check_output(html)
    if html:
        check_plotting()
    _draw(report, plot, html)
    if not plot and not html:
        console.print(_table(report, {}))


def register(app: typer.Typer) -> None:
    """Adds the commands of this file to the program."""
    app.command(
        name="tune",
        epilog="Examples:\n\nsycl-mat tune --budget 60 --html build/tune.html\n\nsycl-mat tune --sizes 512,1024 --kernel packed",
    )(tune_command)
    app.command(name="try", epilog="Example: sycl-mat try --tile 16,16,8 --batch 8,4 --chunk 8 --sizes 512,1024")(try_command)
    app.command(name="tune-report", epilog="Example: sycl-mat tune-report build/tune.json --html build/tune.html")(redraw_command)
    app.add_typer(tuned_app, name="tuned")
