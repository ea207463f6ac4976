"""sycl-mat try: one set of constants by hand, beside the present choice."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from . import _core
from .cli_tuned import fail, plain
from .errors import Error
from .shapes import Shape, sizes_of
from .tuning import Problem

console = Console()


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
        for n in (square.m for square in sizes_of(sizes)):
            shape = Shape(n, n, n, layout.upper())
            trial = _core.try_params(Problem(shape, dtype).raw(), params, kernel, device)
            ratio = trial["gflops"] / trial["present_gflops"] if trial["present_gflops"] else 0.0
            verdict = "[green]yes[/]" if trial["correct"] else f"[red]NO: {plain(trial['why'])}[/]"
            table.add_row(
                str(n),
                f"{trial['gflops']:.1f}",
                f"{trial['present_gflops']:.1f}",
                f"{ratio:.2f}",
                f"{trial['bound_gflops']:.0f}",
                trial["limit"],
                verdict,
            )
    except (Error, ValueError) as error:
        raise fail(error) from None
    console.print(f"{trial['kernel']}: {plain(trial['params_text'])}", highlight=False)
    for name, value in _trial_rows(trial):
        console.print(f"  {name:<20} {value}", highlight=False)
    console.print(f"present choice, {trial['present_kernel']}: {plain(trial['present_text'])}", highlight=False)
    console.print(table)
    console.print(
        "GFLOP/s; both ran in turns. The bound comes from the device's multiply-add rate and bandwidth, measured now.", style="dim"
    )
