"""sycl-mat tuned: look after the constants that were measured, and replay searches on recorded measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import _core
from .cli_bench import check_output, check_picture
from .errors import Error
from .shapes import Shape

console = Console()


def printable(text: str) -> str:
    """With escapes for what would move the cursor, change colours or the direction of writing: \\x1b, \\n, \\u202e."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain(text: str) -> str:
    """Text from a file, for a table or a line: no control characters, no markup."""
    return escape(printable(text))


def fail(message: object) -> typer.Exit:
    """Says what is wrong; the caller raises what comes back."""
    console.print(f"[red]{plain(str(message))}[/red]", highlight=False, soft_wrap=True)
    return typer.Exit(1)


tuned_app = typer.Typer(no_args_is_help=True, help="Look after the constants that were measured.")


def _kernel(record: dict[str, Any]) -> str:
    """Its name, and whether it was the fastest for the problem."""
    name = plain(record["kernel"])
    if not record["fastest"]:
        return name
    return f"[green]{name}[/] (not {plain(record['instead_of'])})" if record["instead_of"] else f"[green]{name}[/]"


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
            console.print(f"[yellow]{plain(warning)}[/yellow]", highlight=False)
        for r in content["records"]:
            if r["fingerprint"] not in mine and not everything:
                hidden += 1
                continue
            device = mine.get(r["fingerprint"])
            m, n, k, batch = r["shape"]
            shape = Shape(m, n, k, r["layout"].upper(), batch)
            gain = f"{r['gflops'] / r['default_gflops']:.2f}" if r["default_gflops"] else "-"
            note = plain(r["measured"][:10])
            if device is not None and device.driver_version != r["driver"]:
                note += f"\n[yellow]driver {plain(r['driver'])}[/yellow]"
            if r["other_kernel"]:
                note += "\n[yellow]another version of the kernel[/yellow]"
            table.add_row(
                source,
                f"{shape.label} {plain(r['dtype'])}",
                _kernel(r),
                f"{r['gflops']:.4g}",
                gain,
                plain(r["params_text"]),
                note,
                plain(r["device"]),
            )
            shown += 1
    if shown:
        console.print(table)
        console.print("green: the fastest kernel for the problem, as far as they were measured beside each other", style="dim")
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
        raise fail("there is no record to export; sycl-mat tune makes some")
    check_output(target)
    target.write_text(text)
    console.print(f"{count} records: {target}", highlight=False)


@tuned_app.command(name="import", epilog="Example: sycl-mat tuned import my-gpu.json")
def import_command(file: Annotated[Path, typer.Argument(help="a file of `tuned export`", exists=True, dir_okay=False)]) -> None:
    """Merge a file into your records; of two for the same problems the newer measurement stays."""
    try:
        changed, count, warnings = _core.merge_tuning_file(str(file), _core.user_tuning_file())
    except Error as error:
        raise fail(error) from None
    for warning in warnings:
        console.print(f"[yellow]{plain(warning)}[/yellow]", highlight=False)
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
        raise fail(error) from None
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
    check_picture(plot)
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
