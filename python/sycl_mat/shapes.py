"""The shapes that the benchmark and the tuner run: one description, one reader."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAYOUTS = ("NN", "NT", "TN", "TT")


@dataclass(frozen=True)
class Shape:
    """One product: C (m×n) = op(A) (m×k) · op(B) (k×n), `batch` of them in a stack."""

    m: int
    n: int
    k: int
    layout: str = "NN"
    batch: int = 1
    group: str = ""
    dtypes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k, self.batch) < 1:
            raise ValueError(f"a shape's sizes are whole numbers from 1 up: {self.m}, {self.n}, {self.k}, batch {self.batch}")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout {self.layout!r} is none of {', '.join(LAYOUTS)}")

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * self.batch

    @property
    def label(self) -> str:
        text = str(self.m) if self.m == self.n == self.k else f"{self.m}×{self.n}×{self.k}"
        if self.batch > 1:
            text = f"{self.batch} of {text}"
        return text if self.layout == "NN" else f"{text} {self.layout}"


def squares(sizes: list[int]) -> list[Shape]:
    return [Shape(n, n, n, group="square") for n in sizes]


def read_shapes(path: Path) -> list[Shape]:
    """The shapes of a file like bench/shapes.toml. Raises ValueError that names the file and the group."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    with path.open("rb") as file:
        try:
            content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from error
    groups = content.get("group")
    if not isinstance(groups, list) or not groups:
        raise ValueError(f"{path}: there is no [[group]]")
    return [shape for group in groups for shape in _shapes_of(group, path)]


def _shapes_of(group: dict[str, Any], path: Path) -> Iterator[Shape]:
    name = str(group.get("name", ""))
    unknown = set(group) - {"name", "shapes", "layouts", "batch", "dtypes"}
    if unknown:
        raise ValueError(f"{path}, group {name!r}: unknown entries {', '.join(sorted(unknown))}")
    for sizes in group.get("shapes", []):
        for layout in group.get("layouts", ["NN"]):
            try:
                m, n, k = (int(size) for size in sizes)
                yield Shape(m, n, k, layout, int(group.get("batch", 1)), name, tuple(group.get("dtypes", ())))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}, group {name!r}, shape {sizes!r}: {error}") from error
