"""sycl-mat tune, try and tuned: find constants, try some by hand, look after what was found."""

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
from .errors import Error
from .shapes import Shape, read_shapes, squares
from .tuning import Problem, TuneReport, problems_of, read_trace, report_as_dict, report_from_dict, tune

console = Console()

#: a set of constants may bring the process down; what it had found is in the journal, so the search goes on in a new one
MOST_RESTARTS = 5
_WORKER = "SYCL_MAT_TUNE_WORKER"


def _fail(message: object) -> typer.Exit:
    console.print(f"[red]{message}[/red]", highlight=False)
    return typer.Exit(1)


def _wanted(
    sizes: str | None, shapes: Path | None, group: list[str] | None, from_trace: Path | None, dtypes: Sequence[str], device: str | None
) -> list[Problem]:
    if sum(given is not None for given in (sizes, shapes, from_trace)) > 1:
        raise typer.BadParameter("give one of --sizes, --shapes and --from-trace")
    try:
        if from_trace:
            found = read_trace(from_trace)
            if not found:
                raise typer.BadParameter(f"{from_trace} holds no problem")
            return found
        if shapes:
            chosen = [shape for shape in read_shapes(shapes) if not group or shape.group in group]
        elif sizes:
            chosen = squares([int(size) for size in sizes.split(",")])
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
            o.kernel,
            f"{o.default_gflops:.1f}",
            f"{o.present_gflops:.1f}",
            f"{o.best_gflops:.1f}",
            f"{o.over_defaults:.2f}",
        ]
        if peers:
            peer = peers.get(o.problem)
            cells.append(f"{o.best_gflops / peer:.2f}" if peer else "-")
        table.add_row(*cells, o.best_text, f"[green]{o.verdict}[/]" if o.improved else o.verdict)
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
    if _WORKER not in os.environ:
        if fresh:
            Path(_core.tuning_journal()).unlink(missing_ok=True)
        raise typer.Exit(_supervise(budget))
    budget = float(os.environ[_WORKER])
    problems = _wanted(sizes, shapes, group, from_trace, dtype.split(","), device)
    restrict = _restrictions(only)
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
    except Error as error:
        raise _fail(error) from None
    console.print(_table(report, peers))
    _summary(report)
    if json_file:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(report_as_dict(report)) + "\n")
        console.print(f"measurements: {json_file}")
    if plot or html:
        from . import tune_report

        if plot:
            console.print("pictures: " + ", ".join(map(str, tune_report.write_plots(report, plot))))
        if html:
            tune_report.write_html(report, html)
            console.print(f"report: {html}")


def redraw_command(
    measurements: Annotated[Path, typer.Argument(help="what `sycl-mat tune --json FILE` wrote", exists=True, dir_okay=False)],
    plot: Annotated[Path | None, typer.Option(help="draw pictures: FILE.png or FILE.svg")] = None,
    html: Annotated[Path | None, typer.Option(help="write a report with pictures in one file")] = None,
) -> None:
    """Draw the pictures of an earlier run again."""
    from . import tune_report

    report = report_from_dict(json.loads(measurements.read_text()))
    if plot:
        console.print("pictures: " + ", ".join(map(str, tune_report.write_plots(report, plot))))
    if html:
        tune_report.write_html(report, html)
        console.print(f"report: {html}")
    if not plot and not html:
        console.print(_table(report, {}))


def _integers(text: str, count: int, option: str) -> list[int]:
    try:
        values = [int(value) for value in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise typer.BadParameter(f"{option} takes {count} whole numbers with commas between them, not {text!r}")
    return values


def _options(text: str | None) -> _core.TileOptions:
    changes = {}
    for part in (text or "").replace(",", " ").split():
        name, _, value = part.partition("=")
        try:
            changes[name] = int(value)
        except ValueError:
            raise typer.BadParameter(f"--options {part!r}: something like pad=4 is wanted") from None
    try:
        return _core.TileOptions(**changes)
    except TypeError:
        known = ", ".join(_core.TileOptions().asdict())
        raise typer.BadParameter(f"--options: there are {known}") from None


def _trial_rows(t: dict[str, Any]) -> list[tuple[str, str]]:
    def known(value: int, unit: str = "") -> str:
        return f"{value}{unit}" if value >= 0 else "the driver does not say"

    rows = [("local memory", f"{t['local_memory']} bytes a work-group")]
    if t["work_items"] >= 0:
        rows += [
            ("work-group", f"{t['work_items']} work-items"),
            ("chunks a work-item", f"{t['chunks_a']} of A's tile, {t['chunks_b']} of B's"),
            ("idle while loading", f"{t['idle_a']} work-items for A, {t['idle_b']} for B"),
            ("registers", f"about {t['registers_estimate']} of 32 bits a work-item; reported: {known(t['registers'])}"),
        ]
    elif t["registers_estimate"] >= 0:
        rows.append(("vector registers", str(t["registers_estimate"])))
    rows += [("spilled", known(t["spills"], " bytes a work-item")), ("built in", f"{t['build_seconds']:.2f} s")]
    return rows


def try_command(
    tile: Annotated[str | None, typer.Option(help="tile_m,tile_n,tile_k of the tiled kernel")] = None,
    batch: Annotated[str, typer.Option(help="batch_m,batch_n: results a work-item computes")] = "4,4",
    chunk: Annotated[int, typer.Option(help="elements a load moves")] = 4,
    options: Annotated[str | None, typer.Option(help="the tiled kernel's other choices: pad=4,split_k=2")] = None,
    pack: Annotated[str | None, typer.Option(help="mr,nv,kc,mc,nc,pack of the packed kernel, instead of --tile")] = None,
    kernel: Annotated[str, typer.Option(help="run these constants in this kernel (one of the lessons, say)")] = "",
    sizes: Annotated[str, typer.Option(help="square sizes, with commas between them")] = "512,1024",
    dtype: Annotated[str, typer.Option(help="float32, float64, float16, bfloat16, int8")] = "float32",
    layout: Annotated[str, typer.Option(help="NN, NT, TN or TT: which operands are stored transposed")] = "NN",
    device: Annotated[str | None, typer.Option(help="'cpu', 'gpu', 'gpu:1', 'level_zero:0'")] = None,
) -> None:
    """Run one set of constants beside the present choice, and say what each constant costs."""
    if (tile is None) == (pack is None):
        raise typer.BadParameter("give either --tile M,N,K (with --batch and --chunk) or --pack MR,NV,KC,MC,NC,PACK")
    if tile is not None:
        (tile_m, tile_n, tile_k), (batch_m, batch_n) = _integers(tile, 3, "--tile"), _integers(batch, 2, "--batch")
        params: Any = (_core.TileParams(tile_m, tile_n, tile_k, batch_m, batch_n, chunk), _options(options))
    else:
        params = _core.PackParams(*_integers(str(pack), 6, "--pack"))
    table = Table()
    for name in ("n", "this set", "present choice", "ratio", "possible at most"):
        table.add_column(name, justify="right")
    table.add_column("limited by")
    table.add_column("right")
    trial: dict[str, Any] = {}
    try:
        for size in sizes.split(","):
            shape = Shape(int(size), int(size), int(size), layout.upper())
            trial = _core.try_params(Problem(shape, dtype).raw(), params, kernel, device)
            ratio = trial["gflops"] / trial["present_gflops"] if trial["present_gflops"] else 0.0
            verdict = "[green]yes[/]" if trial["correct"] else f"[red]NO: {trial['why']}[/]"
            table.add_row(
                size,
                f"{trial['gflops']:.1f}",
                f"{trial['present_gflops']:.1f}",
                f"{ratio:.2f}",
                f"{trial['bound_gflops']:.0f}",
                trial["limit"],
                verdict,
            )
    except (Error, ValueError) as error:
        raise _fail(error) from None
    console.print(f"{trial['kernel']}: {trial['params_text']}", highlight=False)
    for name, value in _trial_rows(trial):
        console.print(f"  {name:<20} {value}", highlight=False)
    console.print(f"present choice, {trial['present_kernel']}: {trial['present_text']}", highlight=False)
    console.print(table)
    console.print(
        "GFLOP/s; both ran in turns. The bound comes from the device's multiply-add rate and bandwidth, measured now.", style="dim"
    )


tuned_app = typer.Typer(no_args_is_help=True, help="Look after the constants that were measured.")


def _files(shipped: bool) -> list[tuple[str, str]]:
    files = [("yours", _core.user_tuning_file())]
    if shipped:
        files += [("shipped", name) for name in _core.shipped_tuning_files()]
    return files


@tuned_app.command(name="list", epilog="Example: sycl-mat tuned list --all")
def list_command(everything: Annotated[bool, typer.Option("--all", help="other devices too")] = False) -> None:
    """List the records, yours and those that came with the library."""
    mine = {device.fingerprint: device for device in _core.devices()}
    table = Table("from", "problem", "kernel", "GFLOP/s", "× defaults", "constants", "measured", "device")
    shown = hidden = 0
    for source, name in _files(True):
        content = _core.read_tuning_file(name)
        for warning in content["warnings"]:
            console.print(f"[yellow]{warning}[/yellow]", highlight=False)
        for r in content["records"]:
            if r["fingerprint"] not in mine and not everything:
                hidden += 1
                continue
            device = mine.get(r["fingerprint"])
            other = device is not None and device.driver_version != r["driver"]
            m, n, k, batch = r["shape"]
            shape = Shape(m, n, k, r["layout"].upper(), batch)
            gain = f"{r['gflops'] / r['default_gflops']:.2f}" if r["default_gflops"] else "-"
            note = r["measured"][:10] + (f"\n[yellow]driver {r['driver']}[/yellow]" if other else "")
            table.add_row(
                source, f"{shape.label} {r['dtype']}", r["kernel"], f"{r['gflops']:.4g}", gain, r["params_text"], note, r["device"]
            )
            shown += 1
    if shown:
        console.print(table)
    else:
        console.print("nothing was measured for the devices of this machine; [bold]sycl-mat tune[/bold] does")
    if hidden:
        console.print(f"{hidden} records of other devices (--all shows them)", style="dim")
    console.print(f"your file: {_core.user_tuning_file()}", style="dim", highlight=False)


@tuned_app.command(name="export", epilog="Example: sycl-mat tuned export my-gpu.json")
def export_command(
    file: Annotated[Path | None, typer.Argument(help="where to; default: <fingerprint>.json here")] = None,
    device: Annotated[str | None, typer.Option(help="whose records; default: all of them with FILE, else the default device's")] = None,
) -> None:
    """Write your records to a file, to share or to ship."""
    fingerprint = _core.current_device(device).fingerprint if device or file is None else ""
    target = file or Path(_core.tuning_file_name(fingerprint))
    text = _core.export_tuning([_core.user_tuning_file()], fingerprint)
    count = len(json.loads(text)["records"])
    if count == 0:
        raise _fail("there is no record to export; sycl-mat tune makes some")
    target.write_text(text)
    console.print(f"{count} records: {target}", highlight=False)


@tuned_app.command(name="import", epilog="Example: sycl-mat tuned import my-gpu.json")
def import_command(file: Annotated[Path, typer.Argument(help="a file of `tuned export`", exists=True, dir_okay=False)]) -> None:
    """Merge a file into your records; of two for the same problems the newer measurement stays."""
    try:
        changed, count, warnings = _core.merge_tuning_file(str(file), _core.user_tuning_file())
    except Error as error:
        raise _fail(error) from None
    for warning in warnings:
        console.print(f"[yellow]{warning}[/yellow]", highlight=False)
    if count == 0:
        raise typer.Exit(1)
    console.print(f"{changed} of {count} records are new: {_core.user_tuning_file()}", highlight=False)


@tuned_app.command(name="clear", epilog="Example: sycl-mat tuned clear --kernel packed")
def clear_command(
    device: Annotated[str | None, typer.Option(help="only this device's")] = None,
    kernel: Annotated[str, typer.Option(help="only this kernel's")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Remove your records, so that the shipped ones and the defaults decide again, and the journal of what was tried."""
    fingerprint = _core.current_device(device).fingerprint if device else ""
    if not yes:
        typer.confirm(f"Remove records from {_core.user_tuning_file()}?", abort=True)
    try:
        count = _core.clear_tuning(_core.user_tuning_file(), fingerprint, kernel)
    except Error as error:
        raise _fail(error) from None
    if not fingerprint and not kernel:
        Path(_core.tuning_journal()).unlink(missing_ok=True)
    console.print(f"{count} records removed")


@tuned_app.command(name="replay", epilog="Example: sycl-mat tuned replay tests/data/sweep_cpu_packed.json")
def replay_command(
    sweep: Annotated[Path, typer.Argument(help="what `sycl-mat tune --record-sweep FILE` wrote", exists=True, dir_okay=False)],
    runs: Annotated[int, typer.Option(help="repetitions with different random numbers", min=1)] = 9,
    most: Annotated[int, typer.Option(help="evaluations of a run", min=1)] = 200,
    plot: Annotated[Path | None, typer.Option(help="draw the convergence of each strategy")] = None,
) -> None:
    """Compare the search strategies on recorded measurements, without the device."""
    table = Table("strategy", title="evaluations until within …, median of the runs", title_justify="left")
    margins = (0.05, 0.03, 0.01)
    for margin in margins:
        table.add_column(f"{margin:.0%}", justify="right")
    curves: dict[str, list[list[float]]] = {}
    for label, strategy, model in (
        ("guided", "guided", True),
        ("guided, no model", "guided", False),
        ("annealing", "annealing", False),
        ("random", "random", False),
    ):
        counts: list[list[float]] = [[] for _ in margins]
        for seed in range(1, runs + 1):
            best, costs = _core.replay(str(sweep), strategy, seed, 2, most, model)
            so_far = float("inf")
            curve = []
            for cost in costs:
                so_far = min(so_far, cost)
                curve.append(best / so_far)
            curves.setdefault(label, []).append(curve)
            for i, margin in enumerate(margins):
                counts[i].append(next((n for n, share in enumerate(curve, 1) if share * (1 + margin) >= 1), float("inf")))
        table.add_row(label, *(f"{value:.0f}" if (value := sorted(c)[runs // 2]) != float("inf") else f"> {most}" for c in counts))
    console.print(table)
    if plot:
        from . import tune_report

        tune_report.write_replay(curves, plot)
        console.print(f"picture: {plot}")


def register(app: typer.Typer) -> None:
    """Adds the commands of this file to the program."""
    app.command(
        name="tune",
        epilog="Examples:\n\nsycl-mat tune --budget 60 --html build/tune.html\n\nsycl-mat tune --sizes 512,1024 --kernel packed",
    )(tune_command)
    app.command(name="try", epilog="Example: sycl-mat try --tile 16,16,8 --batch 8,4 --chunk 8 --sizes 512,1024")(try_command)
    app.command(name="tune-report", epilog="Example: sycl-mat tune-report build/tune.json --html build/tune.html")(redraw_command)
    app.add_typer(tuned_app, name="tuned")
