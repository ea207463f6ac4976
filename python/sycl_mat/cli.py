"""The command sycl-mat."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import sys
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import _core, doctor
from ._products import explain
from .bench import dtype_from_name
from .cli_bench import bench
from .cli_tuned import fail, printable
from .errors import Error
from .first_call import measure_first_calls
from .shapes import check_dtype, check_layout

app = typer.Typer(
    name="sycl-mat",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    help="Matrix products on whatever the machine has.\n\n"
    "Begin with [bold]sycl-mat devices[/bold]; where it finds none, [bold]sycl-mat doctor[/bold] says why.",
)
console = Console()


def _size(count: int) -> str:
    if count <= 0:
        return "-"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


@app.command(epilog="Example: sycl-mat devices --all")
def devices(everything: Annotated[bool, typer.Option("--all", help="Every property, one a line.")] = False) -> None:
    """List the SYCL devices, with what matters for a matrix product."""
    found = _core.devices()
    if not found:
        console.print("No SYCL device was found. [bold]sycl-mat doctor[/bold] says why and what to do.")
        raise typer.Exit(1)
    if everything:
        for device in found:
            console.rule(device.selector)
            for name in (n for n in dir(device) if not n.startswith("_")):
                console.print(f"{name:<20} {getattr(device, name)}", highlight=False)
        return
    table = Table("device=", "name", "units", "group", "local\nmemory", "vector or\nsub-groups", "reads\nin place", box=box.SIMPLE_HEAD)
    for device in found:
        width = (
            str(device.vector_width) if device.type == "cpu" else ", ".join(map(str, device.sub_group_sizes)) or str(device.vector_width)
        )
        shares = "any array" if device.usm_system else "shared" if device.unified_memory else "no"
        table.add_row(
            device.selector,
            f"{device.name}\n[dim]{device.type}, {device.architecture}[/dim]",
            str(device.compute_units),
            str(device.max_work_group_size),
            _size(device.local_memory),
            width,
            shares,
        )
    console.print(table)
    console.print(f"default: [bold]{_core.current_device().selector}[/bold]; device= and ONEAPI_DEVICE_SELECTOR change it")
    console.print("driver, caches, fingerprint and more: sycl-mat devices --all", style="dim")


@app.command(name="doctor", epilog="Example: sycl-mat doctor")
def doctor_command() -> None:
    """Find out why a device is missing or slow, and say what to do about it."""
    findings = doctor.examine()
    marks = {"ok": "[green]ok[/green]", "note": "[yellow]note[/yellow]", "problem": "[red]problem[/red]"}
    for finding in findings:
        console.print(f"{marks[finding.verdict]:<24} {finding.what}", highlight=False)
        if finding.mend:
            console.print(f"          [bold]→ {finding.mend}[/bold]", highlight=False)
    if any(finding.verdict == "problem" for finding in findings):
        raise typer.Exit(1)


@app.command(epilog="Example: sycl-mat kernels")
def kernels() -> None:
    """List the kernels; each can be forced by matmul(..., kernel=name)."""
    table = Table("kernel", "constants", "what it is", box=box.SIMPLE_HEAD)
    for kernel in _core.kernels():
        table.add_row(kernel.name, kernel.params, kernel.summary)
    console.print(table)


@app.command(name="explain", epilog="Example: sycl-mat explain 1024 1024 1024 --dtype float32")
def explain_command(
    m: Annotated[int, typer.Argument(help="rows of A and of the result", min=0)],
    n: Annotated[int, typer.Argument(help="columns of B and of the result", min=0)],
    k: Annotated[int, typer.Argument(help="columns of A, rows of B", min=0)],
    device: Annotated[str | None, typer.Option(help="'cpu', 'gpu', 'gpu:1', 'level_zero:0'")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float64, float16, bfloat16, int8")] = "float32",
    layout: Annotated[str, typer.Option(help="NN, NT, TN or TT: which operands are stored transposed")] = "NN",
    kernel: Annotated[str | None, typer.Option(help="force a kernel")] = None,
    backend: Annotated[str | None, typer.Option(help="sycl, onemkl or auto")] = None,
    bound: Annotated[bool, typer.Option("--bound", help="also what the device could do at best, measured now (a second)")] = False,
) -> None:
    """Say what would run for a product of these sizes, and why."""
    try:
        dtype, layout = check_dtype(dtype), check_layout(layout)
        kind = dtype_from_name(dtype)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        # Never touched: memory that nobody writes costs nothing.
        a = np.empty((k, m) if layout[:1] == "T" else (m, k), kind)
        b = np.empty((n, k) if layout[1:] == "T" else (k, n), kind)
        explanation = explain(
            a, b, transpose_a=layout[:1] == "T", transpose_b=layout[1:] == "T", device=device, kernel=kernel, backend=backend
        )
    except Error as error:
        raise fail(error) from None
    except (ValueError, MemoryError) as error:  # NumPy's: such operands cannot be made
        raise typer.BadParameter(f"operands of these sizes do not fit into memory ({error})") from None
    # Names in it come from drivers and from files of records.
    texts: dict[str, Any] = {name: printable(value) for name, value in vars(explanation).items() if isinstance(value, str)}
    console.print(str(dataclasses.replace(explanation, **texts)), highlight=False, markup=False)
    if bound and min(m, n, k) > 0:
        limit = _core.bound((m, n, k, 1, dtype, layout[:1] == "T", layout[1:] == "T"), device)
        console.print(
            f"at most       {limit['gflops']:.0f} GFLOP/s, limited by the {limit['limit']} ({limit['intensity']:.0f} operations a byte)",
            highlight=False,
        )


@app.command(name="first-call", epilog="Example: sycl-mat first-call --device cpu")
def first_call(
    device: Annotated[str | None, typer.Option(help="'cpu', 'gpu', 'gpu:1', 'level_zero:0'")] = None,
    repeats: Annotated[int, typer.Option(help="new processes a case; the best counts", min=1)] = 3,
) -> None:
    """Measure how long a new process waits for its first product (1024 × 1024, NumPy's import aside)."""
    table = Table("the kernel was", "import", "product", "together", "goal", box=box.SIMPLE_HEAD)
    for case in measure_first_calls(device, _core.current_device(device).type == "cpu", repeats):
        colour = "green" if case.total <= case.goal else "yellow"
        table.add_row(
            case.what, f"{case.importing:.3f} s", f"{case.product:.3f} s", f"[{colour}]{case.total:.3f} s[/]", f"{case.goal:.2f} s"
        )
    console.print(table)


app.command(
    name="bench",
    epilog="Examples:\n\n"
    "sycl-mat bench --sizes 512,1024,2048,4096 --plot build/bench.png\n\n"
    "sycl-mat bench --shapes bench/shapes.toml --dtype float32,float64 --json build/bench.json",
)(bench)


def main() -> None:
    """The command: a fault of the caller's or of the machine's is one line, not a traceback."""
    try:
        app(prog_name="sycl-mat")
    except BrokenPipeError:  # whoever read the output has seen enough
        _give_up_output()
        raise SystemExit(1) from None
    except OSError as error:
        _give_up_output()
        said = error.strerror or str(error)
        _complain(f"{error.filename}: {said}" if error.filename else f"the output cannot be written: {said}")
        raise SystemExit(1) from None
    except (Error, MemoryError) as error:
        _complain(str(error))
        raise SystemExit(1) from None


def _complain(message: str) -> None:
    Console(stderr=True).print(f"[red]{escape(printable(message))}[/red]", highlight=False, soft_wrap=True)


def _give_up_output() -> None:
    """Where standard output takes no more, what is left in its buffer would fail once more when the interpreter ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


for _module in ("cli_tune",):  # commands that live in files of their own: each has register(app)
    if importlib.util.find_spec(f"sycl_mat.{_module}"):
        importlib.import_module(f"sycl_mat.{_module}").register(app)
