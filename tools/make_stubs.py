#!/usr/bin/env python3
"""Write the types of the native module, as the module itself tells them: python tools/make_stubs.py > python/sycl_mat/_core.pyi

The module has to be importable (installed, or PYTHONPATH=build/release/python).
"""

import importlib
import re

from nanobind.stubgen import StubGen

HEAD = '''"""Types of the native module. Written by tools/make_stubs.py; a test compares."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

__version__: str
'''

MATMUL = """def matmul(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: Any = None,
    *,
    device: Device | str | None = None,
    kernel: str | None = None,
    params: TileParams | PackParams | tuple[TileParams, TileOptions] | None = None,
    backend: str | None = None,
    precision: str | None = None,
    max_device_memory: int | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Any:"""


def stubs() -> str:
    generator = StubGen(importlib.import_module("sycl_mat._core"))
    generator.put(generator.module)
    text: str = generator.get()
    text = re.sub(r"^(from|import) [^\n]*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"def matmul\(.*?\):", MATMUL, text, flags=re.DOTALL)
    # Containers whose contents nanobind does not know.
    for bare, typed in (("dict", "dict[str, Any]"), ("list", "list[Any]"), ("tuple", "tuple[Any, ...]")):
        text = re.sub(rf"(-> |: ){bare}(?=[,:)\s])", rf"\1{typed}", text)
    text = text.replace("def __exit__(self, *args: Any) -> None", "def __exit__(self, *args: object) -> None")
    return HEAD + "\n\n" + text.strip() + "\n"


if __name__ == "__main__":
    print(stubs(), end="")
