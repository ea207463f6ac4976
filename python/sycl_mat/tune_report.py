"""Pictures of a tuning run, and all of them in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import math
from pathlib import Path
from typing import Any

from .tuning import Candidate, Group, TuneReport

_INK, _GOOD, _QUIET = "#d1495b", "#66a182", "#8a8a8a"


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("a plot needs matplotlib: pip install 'sycl-mat[bench]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _gflops(group: Group, candidate: Candidate, problem: int) -> float | None:
    seconds = candidate.seconds[problem] if problem < len(candidate.seconds) else None
    return group.problems[problem].shape.flops / seconds / 1e9 if seconds else None


def _measured(group: Group, problem: int) -> list[tuple[Candidate, float]]:
    return [(c, speed) for c in group.candidates if (speed := _gflops(group, c, problem)) is not None]


def largest_problem(group: Group) -> int:
    return max(range(len(group.problems)), key=lambda i: group.problems[i].shape.flops)


def importance(group: Group, problem: int) -> list[tuple[str, float]]:
    """The constants by how much of the variance of log(speed) the mean at each of their values explains, most first.

    A constant with one value only explains nothing and is left out.
    """
    points = _measured(group, problem)
    if len(points) < 3:
        return []
    speeds = [math.log(speed) for _, speed in points]
    mean = sum(speeds) / len(speeds)
    total = sum((s - mean) ** 2 for s in speeds)
    result = []
    for name in points[0][0].constants:
        by_value: dict[int, list[float]] = {}
        for (candidate, _), speed in zip(points, speeds, strict=True):
            by_value.setdefault(candidate.constants[name], []).append(speed)
        if len(by_value) < 2:
            continue
        between = sum(len(v) * (sum(v) / len(v) - mean) ** 2 for v in by_value.values())
        # Corrected for the number of values: with many of them even chance explains something.
        chance = (len(by_value) - 1) / max(1, len(speeds) - 1)
        result.append((name, max(0.0, between / total - chance) if total else 0.0))
    return sorted(result, key=lambda pair: pair[1], reverse=True)


def draw_heat_map(axes: Any, group: Group, problem: int) -> bool:
    """The best speed at each pair of values of the two constants that matter most. False: there are not two."""
    ranked = [name for name, _ in importance(group, problem)][:2]
    if len(ranked) < 2:
        return False
    across, up = ranked
    points = _measured(group, problem)
    columns = sorted({c.constants[across] for c, _ in points})
    rows = sorted({c.constants[up] for c, _ in points})
    cells = [[math.nan] * len(columns) for _ in rows]
    for candidate, speed in points:
        i, j = rows.index(candidate.constants[up]), columns.index(candidate.constants[across])
        cells[i][j] = speed if math.isnan(cells[i][j]) else max(cells[i][j], speed)
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    best = max(speed for _, speed in points)
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            if not math.isnan(value):
                axes.annotate(
                    f"{value:.3g}", (j, i), ha="center", va="center", fontsize=7, color="black" if value > 0.7 * best else "white"
                )
    axes.set_xticks(range(len(columns)), [str(v) for v in columns])
    axes.set_yticks(range(len(rows)), [str(v) for v in rows])
    axes.set(xlabel=across, ylabel=up, title=f"best GFLOP/s, {group.problems[problem].label}")
    axes.figure.colorbar(image, ax=axes)
    return True


def draw_convergence(axes: Any, group: Group) -> None:
    """The best so far of every problem, relative to the defaults, over the time of the search."""
    for i, problem in enumerate(group.problems):
        steps = group.best_so_far(i)
        if not steps:
            continue
        first = steps[0][1]
        end = max(c.found_at for c in group.candidates)
        times = [t for t, _ in steps] + [end]
        ratios = [speed / first for _, speed in steps]
        axes.step(times, [*ratios, ratios[-1]], where="post", label=problem.label, linewidth=1.6)
    axes.axhline(1, color=_QUIET, linewidth=1, linestyle=":")
    axes.set(
        xlabel="seconds", ylabel="best so far ÷ defaults", title=f"{group.kernel}: convergence, {len(group.candidates)} sets of constants"
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7, ncols=2)


def draw_by_constant(figure: Any, group: Group, problem: int) -> None:
    """All candidates of one problem, against each constant in turn; the winner marked."""
    points = _measured(group, problem)
    ranked = importance(group, problem)
    names = [name for name, _ in ranked] or list(points[0][0].constants)[:1]
    share = dict(ranked)
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    winner = max(points, key=lambda pair: pair[1])
    for position, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, position + 1)
        values = sorted({c.constants[name] for c, _ in points})
        place = {value: i for i, value in enumerate(values)}
        axes.scatter([place[c.constants[name]] for c, _ in points], [s for _, s in points], s=9, color=_QUIET, alpha=0.6)
        axes.plot(
            range(len(values)),
            [max(s for c, s in points if c.constants[name] == v) for v in values],
            color=_GOOD,
            linewidth=1.2,
            marker=".",
        )
        axes.scatter([place[winner[0].constants[name]]], [winner[1]], s=36, color=_INK, zorder=3)
        axes.set_xticks(range(len(values)), [str(v) for v in values], fontsize=7, rotation=60 if len(values) > 6 else 0)
        axes.tick_params(axis="y", labelsize=7)
        axes.set_ylim(0, None)
        axes.set_title(f"{name}" + (f" ({share[name]:.0%} of the variance)" if name in share else ""), fontsize=8)
    figure.suptitle(f"{group.kernel}, {group.problems[problem].label}: all sets of constants, GFLOP/s", fontsize=10)


def figures(report: TuneReport) -> list[tuple[str, Any]]:
    """(title, figure) of every picture; the caller closes them."""
    pyplot = _pyplot()
    result = []
    for group in report.groups:
        if sum(c.state == "measured" for c in group.candidates) < 3:
            continue
        problem = largest_problem(group)
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
        if not draw_heat_map(left, group, problem):
            left.set_axis_off()
        draw_convergence(right, group)
        result.append((f"{group.kernel}: the two constants that matter most, and convergence", figure))
        if _measured(group, problem):
            rows = math.ceil(max(1, len(importance(group, problem))) / 4)
            figure = pyplot.figure(figsize=(12, 0.8 + 2.1 * rows), layout="constrained")
            draw_by_constant(figure, group, problem)
            result.append((f"{group.kernel}: by constant", figure))
    return result


def write_plots(report: TuneReport, path: Path) -> list[Path]:
    """The pictures as files: `tune.png` becomes tune-1.png, tune-2.png, … where there are several."""
    pyplot = _pyplot()
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    drawn = figures(report)
    for number, (_, figure) in enumerate(drawn, 1):
        target = path if len(drawn) == 1 else path.with_name(f"{path.stem}-{number}{path.suffix or '.png'}")
        figure.savefig(target, dpi=130)
        pyplot.close(figure)
        written.append(target)
    return written


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; } th, td { padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } tr.better td { background: #eef6f0; }
img { max-width: 100%; } code { font-size: 13px; } .quiet { color: #666; }
"""


def _sharing_table(group: Group) -> str:
    """How well the best constants of one problem (row) do at another (column)."""
    quote = html.escape
    head = "".join(f"<th>{quote(problem.label)}" for problem in group.problems)
    parts = [
        f"<h2>{quote(group.kernel)}: the best set of one problem, used for another</h2><table><tr><th>best at<th colspan=0>used at</tr><tr><th>{head}</tr>"
    ]
    for problem, row in zip(group.problems, group.sharing(), strict=True):
        cells = "".join(f"<td class=number>{'' if share is None else f'{share:.0%}'}" for share in row)
        parts.append(f"<tr><td>{quote(problem.label)}{cells}</tr>")
    parts.append("</table><p class=quiet>Share of the best speed found there; empty: given up early, as it was clearly slower.</p>")
    return "".join(parts)


def write_html(report: TuneReport, path: Path) -> None:
    """The report as one file: no script, nothing fetched, pictures inside."""
    pyplot = _pyplot()
    quote = html.escape
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>Tuning of {quote(report.device)}</title><style>{_STYLE}</style>"]
    parts.append(f"<h1>Tuning of {quote(report.device)}</h1>")
    tried = sum(len(g.candidates) for g in report.groups)
    ended = ", interrupted" if report.interrupted else ""
    parts.append(f"<p class=quiet>driver {quote(report.driver)}; {tried} sets of constants in {report.seconds:.0f} s{ended}</p>")
    parts.append("<table><tr><th>problem<th>kernel<th>defaults<th>before<th>now<th>× defaults<th>constants<th>verdict</tr>")
    for o in report.outcomes:
        parts.append(
            f"<tr{' class=better' if o.improved else ''}><td>{quote(o.problem.label)}<td>{quote(o.kernel)}"
            f"<td class=number>{o.default_gflops:.1f}<td class=number>{o.present_gflops:.1f}<td class=number>{o.best_gflops:.1f}"
            f"<td class=number>{o.over_defaults:.2f}<td><code>{quote(o.best_text)}</code><td>{quote(o.verdict)}</tr>"
        )
    parts.append("</table><p class=quiet>GFLOP/s, best of rounds in which all contenders took turns.</p>")
    for title, figure in figures(report):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        pyplot.close(figure)
        parts.append(
            f"<h2>{quote(title)}</h2><img alt='{quote(title)}' src='data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'>"
        )
    for group in report.groups:
        if len(group.problems) > 1 and len(group.candidates) > 2:
            parts.append(_sharing_table(group))
    failed = [(g.kernel, c) for g in report.groups for c in g.candidates if c.state != "measured"]
    if failed:
        parts.append(f"<h2>{len(failed)} sets that were not measured</h2><table><tr><th>kernel<th>constants<th>state<th>why</tr>")
        for kernel, c in failed:
            constants = " ".join(f"{name}={value}" for name, value in c.constants.items())
            parts.append(f"<tr><td>{quote(kernel)}<td><code>{quote(constants)}</code><td>{quote(c.state)}<td>{quote(c.why[:300])}</tr>")
        parts.append("</table>")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts) + "</html>\n", encoding="utf-8")


def write_replay(curves: dict[str, list[list[float]]], path: Path) -> None:
    """The share of the sweep's best speed after each evaluation, by strategy: the median over runs, and between which values most lie."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(8, 4.6), layout="constrained")
    for (label, runs), colour in zip(curves.items(), (_INK, "#edae49", "#2e4057", _QUIET), strict=False):
        length = min(map(len, runs))
        sorted_columns = [sorted(run[i] for run in runs) for i in range(length)]
        middle = len(runs) // 2
        steps = range(1, length + 1)
        axes.plot(steps, [column[middle] for column in sorted_columns], color=colour, label=label, linewidth=1.8)
        axes.fill_between(
            steps,
            [column[len(runs) // 4] for column in sorted_columns],
            [column[-1 - len(runs) // 4] for column in sorted_columns],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    axes.axhline(0.97, color=_QUIET, linewidth=1, linestyle=":")
    axes.set(xlabel="sets of constants tried", ylabel="share of the best speed of the sweep", ylim=(0.7, 1.005))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
