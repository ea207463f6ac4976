"""sycl-mat bench: the measurements of bench.py as a table, JSON and a picture."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import _core, peers
from .bench import Row, dtype_from_name, geometric_mean, measure, settle_peaks
from .errors import Error
from .shapes import Shape, dtypes_of, read_shapes, sizes_of
from .tuning import reason_of

console = Console()

#: Set on some machines for old OpenBLAS builds; they slow a current one.
HAMPERING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


PICTURES = (".png", ".svg", ".pdf")


def check_output(path: Path | None) -> None:
    """Before a long run: can its results be written there? Makes the folder; leaves no file that was not there. Raises BadParameter."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        if there and not path.is_file() and not path.is_dir():
            return  # a pipe or a device: opening it may wait for a reader, or mean something
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {reason_of(error)}") from None


def check_picture(path: Path | None) -> None:
    """The same for a picture: its kind is known, and there is something to draw it with."""
    if path is None:
        return
    if path.suffix not in PICTURES:
        raise typer.BadParameter(f"a picture is a .png, .svg or .pdf file, not '{path.suffix or path.name}'")
    check_plotting()
    check_output(path)


def check_plotting() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise typer.BadParameter("pictures need matplotlib: pip install 'sycl-mat[bench]'")


def _unhampered() -> None:
    """Starts this command again without the variables that slow NumPy: it read them when it was imported."""
    if any(name in os.environ for name in HAMPERING):
        clean = {name: value for name, value in os.environ.items() if name not in HAMPERING}
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, "-m", "sycl_mat", *sys.argv[1:]], clean)


def _contenders(device: str | None, on_processor: bool, blog: bool, tuning: bool) -> list[peers.Contender]:
    chosen = [peers.numpy_contender()]
    # On the processor, oneMKL's C interface is its fastest; elsewhere there is only its SYCL interface.
    onemkl = peers.onemkl_contender() if on_processor else peers.ours(device, "oneMKL", backend="onemkl")
    if onemkl:
        chosen.append(onemkl)
    else:
        console.print("oneMKL is not installed, so not compared: pip install 'sycl-mat[onemkl]'", style="dim")
    if blog:
        first, tuned = peers.FIRST_CONSTANTS, peers.HAND_TUNED_CONSTANTS
        chosen.append(peers.ours(device, "blog, first", "tiled_double_buffered", first))
        chosen.append(peers.ours(device, "blog, tuned", "tiled_double_buffered", tuned))
    if tuning:
        chosen.append(peers.untuned(device, "defaults", shipped=False))
        chosen.append(peers.untuned(device, "shipped", shipped=True))
    chosen.append(peers.ours(device))
    return chosen


def _versions() -> dict[str, str]:
    found = {}
    for name in ("sycl-mat", "numpy", "intel-sycl-rt", "intel-opencl-rt", "mkl"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _environment(device: _core.Device) -> dict[str, Any]:
    record: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "device": device.name,
        "fingerprint": device.fingerprint,
        "driver": device.driver_version,
        "compute_units": device.compute_units,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": _versions(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    try:
        import threadpoolctl

        record["blas"] = threadpoolctl.threadpool_info()
    except ImportError:
        pass
    return record


def _peak(device: _core.Device, dtype: str) -> float | None:
    try:
        return _core.fma_peak(device, dtype)
    except Error:
        return None  # this device cannot run it: the other figures still count


def _peak_of(device: _core.Device, dtype: str) -> Callable[[float], float] | None:
    """For bench.measure. Products of other types have no such peak: the processor has instructions of their own for some of them."""
    return (lambda flops: _core.fma_peak(device, dtype, flops)) if dtype in ("float32", "float64") else None


def _undisturbed(peak: float | None, device: _core.Device, dtype: str, rows: Sequence[Row]) -> float | None:
    """The peak, measured once more and again while a product seems to exceed it: the machine's other users lower it, nothing can raise it.

    None, with a line that says so, where that does not help: a share of such a peak would mean nothing.
    """
    if peak is None or device.type != "cpu":  # a GPU's products may run on its tensor units, faster than multiply-adds
        return peak
    best = max((result.gflops for row in rows if row.dtype == dtype for result in row.results), default=0.0)
    for _ in range(4):
        peak = max(peak, _peak(device, dtype) or 0.0)
        if peak >= 0.98 * best:
            return peak
    console.print(
        f"the machine is too busy for a measurement of its multiply-add peak in {dtype} ({peak:.0f} GFLOP/s, a product reached {best:.0f}): "
        "left out",
        style="yellow",
    )
    return None


def _new_table(title: str) -> Table:
    """Fits 80 columns: no frame, no padding."""
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)


def _table(rows: Sequence[Row], names: Sequence[str], peaks: dict[str, float | None]) -> Table:
    several_types = len({row.dtype for row in rows}) > 1
    table = _new_table("GFLOP/s, best of quiet blocks")
    table.add_column("\nshape", no_wrap=True)
    if several_types:
        table.add_column("\ndtype", no_wrap=True)
    for name in names:
        table.add_column(_heading(name), justify="right", style="bold" if name == "sycl_mat" else "", no_wrap=True)
    table.add_column("\nspread", justify="right", no_wrap=True)
    table.add_column("× best\npeer", justify="right", no_wrap=True)
    table.add_column("% of\npeak", justify="right", no_wrap=True)
    table.add_column("\nkernel", no_wrap=True)
    table.add_column("\nright", no_wrap=True)
    for row in rows:
        mine = row.of("sycl_mat")
        ratio = row.ratio("sycl_mat")
        share = row.share_of_peak("sycl_mat", peaks.get(row.dtype))
        table.add_row(
            row.shape.label,
            *([row.dtype] if several_types else []),
            *("-" if (result := row.of(name)) is None else f"{result.gflops:.1f}" for name in names),
            "-" if mine is None else f"{mine.quiet.spread:.0%}",
            "-" if ratio is None else f"[{'green' if ratio >= 1 else 'yellow' if ratio >= 0.95 else 'red'}]{ratio:.2f}[/]",
            "-" if share is None else f"{share:.0%}",
            "-" if mine is None else mine.kernel,
            "[green]yes[/]" if all(result.verified for result in row.results) else "[red]NO[/]",
        )
    return table


def _heading(name: str) -> str:
    """On two lines, the lower one filled."""
    return name.replace(", ", "\n") if ", " in name else f"\n{name}"


def _interleaved_table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    table = _new_table("GFLOP/s, one call each in turn, median")
    table.add_column("\nshape", no_wrap=True)
    for name in names:
        table.add_column(_heading(name), justify="right", no_wrap=True)
    for row in rows:
        results = [row.of(name) for name in names]
        table.add_row(row.shape.label, *("-" if r is None or not r.interleaved.samples else f"{r.interleaved_gflops:.1f}" for r in results))
    return table


def _summary(rows: Sequence[Row]) -> str:
    ratios = [(ratio, row) for row in rows if (ratio := row.ratio("sycl_mat")) is not None]
    if not ratios:
        return ""
    worst, where = min(ratios, key=lambda pair: pair[0])
    mean = geometric_mean([ratio for ratio, _ in ratios])
    return f"geometric mean {mean:.3f} × the best peer over {len(ratios)} shapes; least {worst:.2f} × at {where.shape.label}"


def bench(
    sizes: Annotated[str, typer.Option(help="square sizes, with commas between them")] = "512,1024,2048,4096",
    shapes: Annotated[
        Path | None, typer.Option(help="a file like bench/shapes.toml instead of --sizes", exists=True, dir_okay=False)
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="only these groups of --shapes")] = None,
    device: Annotated[str | None, typer.Option(help="'cpu', 'gpu', 'gpu:1', 'level_zero:0'")] = None,
    dtype: Annotated[str, typer.Option(help="element types, with commas between them")] = "float32",
    rounds: Annotated[int, typer.Option(help="quiet blocks of each contender", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="length of a block", min=0.001)] = 0.25,
    blog: Annotated[bool, typer.Option(help="also the tiled kernel with the constants it began with, and with those tuned by hand")] = True,
    tuning: Annotated[
        bool, typer.Option(help="also ours with the constants from the device's properties, and with the shipped ones")
    ] = False,
    interleave: Annotated[bool, typer.Option(help="also the plain interleaving")] = True,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all figures there")] = None,
    plot: Annotated[Path | None, typer.Option(help="draw a picture: FILE.png or FILE.svg")] = None,
) -> None:
    """Compare with NumPy and oneMKL, and check every result.

    Each library runs in quiet blocks of its own, because NumPy's worker threads keep a core busy for a while after each call.
    """
    _unhampered()
    try:
        wanted = read_shapes(shapes) if shapes else sizes_of(sizes)
        dtypes = dtypes_of(dtype)
        for kind in dtypes:
            dtype_from_name(kind)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if group:
        wanted = [shape for shape in wanted if shape.group in group]
    if not any(not shape.dtypes or kind in shape.dtypes for shape in wanted for kind in dtypes):
        raise typer.BadParameter("there is no shape to measure")
    check_output(json_file)
    check_picture(plot)
    chosen = _core.current_device(device)
    contenders = _contenders(device, chosen.type == "cpu", blog, tuning)
    console.print(f"{chosen.name}, {chosen.compute_units} units, driver {chosen.driver_version}; NumPy {np.__version__}", style="dim")

    peaks = {kind: _peak(chosen, kind) for kind in dtypes}
    ceilings = {kind: _peak_of(chosen, kind) if peak else None for kind, peak in peaks.items()}
    rows = _measure_all(wanted, ceilings, contenders, rounds, seconds, interleave)
    settle_peaks(rows)
    peaks = {kind: _undisturbed(peak, chosen, kind, rows) for kind, peak in peaks.items()}

    names = [contender.name for contender in contenders if any(row.of(contender.name) for row in rows)]
    console.print(_table(rows, names, peaks))
    if any(peaks.values()):
        console.print(
            "peak: "
            + ", ".join(f"{kind} {peak:.0f} GFLOP/s" for kind, peak in peaks.items() if peak)
            + ", measured now in slices of 15 ms"
            + ("; longer products are compared with multiply-adds that took as long" if any(row.peak for row in rows) else ""),
            style="dim",
        )
    if interleave:
        console.print(_interleaved_table(rows, names))
        console.print(
            "Interleaved figures are lower for whoever runs after NumPy: its worker threads spin for up to 0.25 s after each call.",
            style="dim",
        )
    for row in rows:
        for name, reason in row.skipped.items():
            console.print(f"{row.shape.label}: {name} left out: {reason}", style="dim", highlight=False)
    console.print(_summary(rows))
    if json_file:
        content = {"environment": _environment(chosen), "peaks_gflops": peaks, "rows": [row.as_dict() for row in rows]}
        json_file.write_text(json.dumps(content, indent=1) + "\n")
        console.print(f"figures: {json_file}")
    if plot:
        from . import plots

        plots.plot(rows, peaks.get(dtypes[0]), chosen.name, plot)
        console.print(f"picture: {plot}")
    wrong = [f"{result.contender} at {row.shape.label} ({row.dtype})" for row in rows for result in row.results if not result.verified]
    if wrong:
        console.print(f"[red]wrong results: {', '.join(wrong)}[/red]")
        raise typer.Exit(1)


def _measure_all(
    wanted: Sequence[Shape],
    ceilings: Mapping[str, Callable[[float], float] | None],
    contenders: Sequence[peers.Contender],
    rounds: int,
    seconds: float,
    interleave: bool,
) -> list[Row]:
    """`ceilings`: for each type its `peak` for bench.measure."""
    rows = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(wanted) * len(ceilings))
        for kind, peak in ceilings.items():
            for shape in wanted:
                if shape.dtypes and kind not in shape.dtypes:
                    progress.advance(task)
                    continue

                def step(name: str, shape: Shape = shape, kind: str = kind) -> None:
                    progress.update(task, description=f"{shape.label} {kind}: {name}")

                rows.append(measure(shape, kind, contenders, rounds=rounds, seconds=seconds, interleave=interleave, step=step, peak=peak))
                progress.advance(task)
    return rows
