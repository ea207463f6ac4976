"""Measures the records that the library ships for the device of this machine: `make tuned`, or python tools/tune_shipped.py.

The groups of bench/shapes.toml (and vectors, which it lacks) are tuned one after the other, from the defaults: neither the user's records
nor the shipped ones lead the way. What decides something is kept in tuned/<fingerprint>.json: the fastest kernel of every problem, and the
constants of others where they are not the defaults. Run it on a quiet machine, with the kernels as they will be shipped: a record of
another version of its kernel is used only where there is none of the present one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sycl_mat.shapes import read_shapes

ROOT = Path(__file__).resolve().parents[1]

#: problems that the benchmark's file lacks, with room between kernels: vectors of sizes that caches hold, few rows or columns
VECTORS = """
[[group]]
name = "vectors"
shapes = [
  [5000, 1, 100], [1, 5000, 100], [1000, 1, 1000], [1, 1000, 1000], [300, 1, 300], [1, 300, 300], [5000, 1, 5000],
  [8, 512, 512], [512, 8, 512], [2000, 4, 100], [4, 2000, 100],
]
"""

#: seconds for each: in proportion to the problems' number, and to what there is to find
GROUPS = {
    "tiny": 15,
    "square": 110,
    "odd": 110,
    "skinny": 120,
    "network": 120,
    "weight gradient": 110,
    "input gradient": 90,
    "layout": 80,
    "stack": 40,
    "vectors": 60,
}


def tune(group: str, shapes: Path, seconds: float, records: Path, most_flops: float) -> None:
    chosen = [s for s in read_shapes(shapes) if s.group == group and s.flops <= most_flops]
    lines = [
        f'[[group]]\nname = "{group}"\nlayouts = ["{s.layout}"]\nbatch = {s.batch}\nshapes = [[{s.m}, {s.n}, {s.k}]]\n' for s in chosen
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("".join(lines))
        file.flush()
        command = [sys.executable, "-m", "sycl_mat", "tune", "--shapes", file.name, "--budget", str(seconds), "--no-compare", "--fresh"]
        environment = {**os.environ, "SYCL_MAT_TUNING_FILE": str(records), "SYCL_MAT_DATA_DIR": str(records.parent / "none")}
        subprocess.run(command, env=environment, check=True)


def worth_shipping(record: dict[str, object]) -> bool:
    return bool(record.get("fastest")) or record["params"] != {"family": "none"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", help="only these, with commas between them: " + ", ".join(GROUPS))
    parser.add_argument("--scale", type=float, default=1, help="times the usual seconds")
    parser.add_argument("--most-gflop", type=float, default=20, help="leave larger problems out: the defaults are at the ceiling there")
    parser.add_argument("--records", type=Path, help="collect there, and keep it (to go on later); default: a temporary file")
    options = parser.parse_args()
    wanted = options.groups.split(",") if options.groups else list(GROUPS)
    with tempfile.TemporaryDirectory() as folder:
        records = options.records or Path(folder) / "tuning.json"
        vectors = Path(folder) / "vectors.toml"
        vectors.write_text(VECTORS)
        for group in wanted:
            shapes = vectors if group == "vectors" else ROOT / "bench" / "shapes.toml"
            tune(group, shapes, GROUPS[group] * options.scale, records, options.most_gflop * 1e9)
        content = json.loads(records.read_text())
    by_device: dict[str, list[dict[str, object]]] = {}
    for record in filter(worth_shipping, content["records"]):
        by_device.setdefault(str(record["fingerprint"]), []).append(record)
    for fingerprint, kept in by_device.items():
        target = ROOT / "tuned" / f"{fingerprint}.json"
        lines = ",\n".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in kept)
        target.write_text(f'{{"format": "{content["format"]}", "version": {content["version"]},\n"records": [\n{lines}\n]}}\n')
        print(f"{len(kept)} records: {target}")


if __name__ == "__main__":
    main()
