#!/usr/bin/env python3
"""Put a benchmark's figures into the README: make bench && python tools/readme_figures.py"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURE = Path("docs/images/bench.png")


def table(content: dict[str, Any]) -> str:
    names = list(dict.fromkeys(result["contender"] for row in content["rows"] for result in row["results"]))
    peak = content["peaks_gflops"].get("float32")
    lines = ["| n | " + " | ".join(names) + " | × best peer | % of peak |", "| --- |" + " ---: |" * (len(names) + 2)]
    for row in content["rows"]:
        by_name = {result["contender"]: result for result in row["results"]}
        ours = by_name["sycl_mat"]["gflops"]
        best = max(result["gflops"] for result in row["results"] if result["peer"])
        cells = [f"{by_name[name]['gflops']:.0f}" if name in by_name else "" for name in names]
        measured = row.get("peak_gflops") or peak  # of long products over blocks as long
        share = f"{ours / measured:.0%}" if measured else ""
        lines.append(f"| {row['n']} | " + " | ".join(cells) + f" | {ours / best:.2f} | {share} |")
    return "\n".join(lines)


def text(content: dict[str, Any]) -> str:
    machine = content["environment"]
    versions = machine["versions"]
    peak = content["peaks_gflops"].get("float32")
    measured = f", peak {peak:.0f} GFLOP/s measured in the same run" if peak else ""
    return f"""![GFLOP/s by size]({PICTURE.as_posix()})

float32, GFLOP/s, best of quiet blocks (`make bench`; {machine["device"]}, {machine["cpus"]} cores{measured};
NumPy {versions.get("numpy", "-")} with its OpenBLAS, oneMKL {versions.get("mkl", "-")}, SYCL runtime {versions.get("intel-sycl-rt", "-")}, {machine["time"][:10]}):

{table(content)}"""


def main() -> None:
    content = json.loads((ROOT / "build" / "bench.json").read_text())
    (ROOT / PICTURE).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "build" / "bench.png", ROOT / PICTURE)
    readme = ROOT / "README.md"
    begin, end = "<!-- figures: begin -->", "<!-- figures: end -->"
    replaced = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text(content)}\n{end}", readme.read_text(), flags=re.DOTALL)
    readme.write_text(replaced)


if __name__ == "__main__":
    main()
