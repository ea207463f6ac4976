"""Pictures of a benchmark, for people who look before they read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .bench import Row

_COLOURS = {"NumPy": "#8a8a8a", "oneMKL": "#0068b5", "sycl_mat": "#d1495b"}
_OTHERS = ("#edae49", "#66a182", "#7768ae", "#2e4057")


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("a plot needs matplotlib: pip install 'sycl-mat[bench]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _names(rows: Sequence[Row]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(result.contender for result in row.results))
    return list(names)


def _colour(name: str, position: int) -> str:
    return _COLOURS.get(name, _OTHERS[position % len(_OTHERS)])


def plot_sizes(rows: Sequence[Row], peak: float | None, device: str, path: Path) -> None:
    """GFLOP/s against the size of square matrices, one line a contender; the device's peak above them."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8.5, 5), layout="constrained")
    for position, name in enumerate(_names(rows)):
        points = [(row.shape.n, result.gflops) for row in rows if (result := row.of(name))]
        ours = name == "sycl_mat"
        axes.plot(
            *zip(*sorted(points), strict=True),
            marker="o",
            label=name,
            color=_colour(name, position),
            linewidth=2.6 if ours else 1.5,
            zorder=3 if ours else 2,
        )
    sizes = sorted({row.shape.n for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes], rotation=0 if len(sizes) < 10 else 60)
    axes.minorticks_off()
    axes.set(xlabel="n (square matrices)", ylabel=f"GFLOP/s, {rows[0].dtype}", title=f"Matrix product on {device}")
    axes.set_ylim(0, 1.09 * max([peak or 0, *(result.gflops for row in rows for result in row.results)]))
    if peak:
        axes.axhline(peak, color="#444444", linestyle=":", linewidth=1)
        text = f"peak of fused multiply-adds, measured: {peak:.0f}"
        axes.text(0.01, peak, text, transform=axes.get_yaxis_transform(), va="bottom", fontsize=8, color="#444444")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def plot_ratios(rows: Sequence[Row], name: str, device: str, path: Path) -> None:
    """How many times as fast as the best peer, by shape, with the line of parity."""
    pyplot = _pyplot()
    pairs = [(row, ratio) for row in rows if (ratio := row.ratio(name)) is not None]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.2 * len(pairs)), layout="constrained")
    positions = range(len(pairs))
    colours = ["#d1495b" if ratio < 0.95 else "#edae49" if ratio < 1 else "#66a182" for _, ratio in pairs]
    axes.barh(positions, [ratio for _, ratio in pairs], color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(positions, [f"{row.shape.label}  ({row.shape.group})" for row, _ in pairs], fontsize=7)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    for position, (_, ratio) in zip(positions, pairs, strict=True):
        axes.annotate(f"{ratio:.2f}", (ratio, position), (3, 0), textcoords="offset points", va="center", fontsize=6)
    dtypes = ", ".join(dict.fromkeys(row.dtype for row, _ in pairs))
    axes.set(xlabel="times the better of the peers (1: parity)", title=f"{name} on {device}, {dtypes}")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def plot(rows: Sequence[Row], peak: float | None, device: str, path: Path) -> None:
    """The picture that suits the rows: lines for square sizes, ratio bars for mixed shapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    square = all(row.shape.m == row.shape.n == row.shape.k and row.shape.layout == "NN" and row.shape.batch == 1 for row in rows)
    if square and len({row.shape for row in rows}) == len(rows):
        plot_sizes(rows, peak, device, path)
    else:
        plot_ratios(rows, "sycl_mat", device, path)
