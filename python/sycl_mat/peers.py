"""What the benchmark measures: NumPy, oneMKL and this library, each as a function that fills a given result array."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _runtime
from ._products import DeviceLike, ParamsLike

Array = NDArray[Any]
Product = Callable[[Array, Array, Array], object]

#: The constants that the tiled kernel began with, and those that were found for it by hand on an Intel integrated GPU.
FIRST_CONSTANTS = _core.TileParams(16, 16, 16, 4, 4, 4)
HAND_TUNED_CONSTANTS = _core.TileParams(16, 16, 8, 8, 4, 8)


@dataclass(frozen=True)
class Contender:
    """Something that multiplies. `run(a, b, out)`; a and b may be transposed views."""

    name: str
    run: Product
    #: a peer is what ours is compared with
    peer: bool = False
    #: its worker threads keep spinning after a call and disturb whatever runs then
    spins: bool = False
    dtypes: tuple[str, ...] = ("float32", "float64")
    stacks: bool = True


def numpy_contender() -> Contender:
    return Contender("NumPy", np.matmul, peer=True, spins=True, dtypes=("float32", "float64", "float16"))


def ours(
    device: DeviceLike = None,
    name: str = "sycl_mat",
    kernel: str | None = None,
    params: ParamsLike = None,
    backend: str | None = None,
) -> Contender:
    # Only what is given is passed on: parsing a keyword costs a tenth of a tiny product.
    forced: dict[str, Any] = {"device": device, "kernel": kernel, "params": params, "backend": backend}
    forced = {key: value for key, value in forced.items() if value is not None}
    run = functools.partial(_core.matmul, **forced) if forced else _core.matmul
    return Contender(name, run, dtypes=("float32", "float64", "float16", "bfloat16", "int8"), peer=backend == "onemkl")


def untuned(device: DeviceLike, name: str, shipped: bool) -> Contender:
    """Ours with the kernel and the constants it would have without the user's own records: the shipped ones, or what the device's properties say."""
    chosen: dict[tuple[Any, ...], dict[str, Any]] = {}

    def run(a: Array, b: Array, out: Array) -> object:
        key = (a.shape, b.shape, a.strides, b.strides)
        forced = chosen.get(key)
        if forced is None:
            m, k = a.shape[-2:]
            batch = out.size // max(1, out.shape[-1] * out.shape[-2])
            transposed = [x.ndim == 2 and x.strides[0] < x.strides[1] for x in (a, b)]
            choice: Any = _core.untuned_choice((m, b.shape[-1], k, batch, a.dtype.name, *transposed), device, shipped)
            forced = {"kernel": choice[0]} | ({} if choice[1] is None else {"params": choice[1]})
            if device is not None:
                forced["device"] = device
            chosen[key] = forced
        return _core.matmul(a, b, out, **forced)

    return Contender(name, run, dtypes=("float32", "float64", "float16", "bfloat16", "int8"))


_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112


def onemkl_contender() -> Contender | None:
    """oneMKL's cblas_?gemm, called as a C library; None where it is not installed."""
    path = _runtime.find_library("mkl", "libmkl_rt.so.3")
    if path is None:
        return None
    # Its default threading layer needs Intel's OpenMP, which the wheel brings; the runtime library finds it beside itself.
    omp = path.parent / "libiomp5.so"
    if omp.exists():
        ctypes.CDLL(str(omp), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.MKL_Set_Num_Threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    number = ctypes.c_int
    pointer = ctypes.c_void_p
    functions = {}
    for code, real in (("s", ctypes.c_float), ("d", ctypes.c_double)):
        function = getattr(library, f"cblas_{code}gemm")
        function.argtypes = [*(number,) * 6, real, pointer, number, pointer, number, real, pointer, number]
        function.restype = None
        functions[code] = function

    def layout(x: Array) -> tuple[int, int]:
        rows, cols = x.strides[0] // x.itemsize, x.strides[1] // x.itemsize
        return (_NO_TRANS, rows) if cols == 1 else (_TRANS, cols)

    def run(a: Array, b: Array, out: Array) -> None:
        function = functions["d" if out.dtype == np.float64 else "s"]
        trans_a, lda = layout(a)
        trans_b, ldb = layout(b)
        m, n, k = out.shape[0], out.shape[1], a.shape[1]
        function(
            *(
                _ROW_MAJOR,
                trans_a,
                trans_b,
                m,
                n,
                k,
                1.0,
                a.ctypes.data,
                lda,
                b.ctypes.data,
                ldb,
                0.0,
                out.ctypes.data,
                out.strides[0] // out.itemsize,
            )
        )

    return Contender("oneMKL", run, peer=True, stacks=False)
