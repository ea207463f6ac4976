"""The shapes that the benchmark and the tuner run: one description, one reader."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAYOUTS = ("NN", "NT", "TN", "TT")
#: what the kernels multiply, by NumPy's names
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8")


def _none_of(what: str, name: str, known: tuple[str, ...]) -> str:
    return f"{what} {name!r} is none of {', '.join(known)}"


def check_layout(layout: str) -> str:
    """A layout in capitals. Raises ValueError that names those there are."""
    if (checked := layout.upper()) not in LAYOUTS:
        raise ValueError(_none_of("layout", layout, LAYOUTS))
    return checked


def check_dtype(name: str) -> str:
    """The name of an element type. Raises ValueError that names those there are."""
    if (checked := name.strip().lower()) not in DTYPES:
        raise ValueError(_none_of("dtype", name, DTYPES))
    return checked


def dtypes_of(text: str) -> list[str]:
    """Names of element types with commas between them, each once. Raises ValueError as check_dtype()."""
    return list(dict.fromkeys(check_dtype(name) for name in text.split(",")))


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
            raise ValueError(_none_of("layout", self.layout, LAYOUTS))

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


def sizes_of(text: str) -> list[Shape]:
    """Squares, as the command line takes them. Raises ValueError that says what is wanted."""
    try:
        return squares([int(size) for size in text.split(",")])
    except ValueError:
        raise ValueError(
            f"--sizes takes square sizes, whole numbers from 1 up with commas between them, not {text!r}: --sizes 512,1024 "
            "(other shapes: --shapes with a file like bench/shapes.toml)"
        ) from None


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
                dtypes = tuple(check_dtype(str(dtype)) for dtype in group.get("dtypes", ()))
                yield Shape(m, n, k, layout, int(group.get("batch", 1)), name, dtypes)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}, group {name!r}, shape {sizes!r}: {error}") from error
