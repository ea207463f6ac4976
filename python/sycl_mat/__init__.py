"""Matrix multiplication on whatever the machine has: an Intel integrated GPU, any SYCL device, or the processor.

>>> import numpy, sycl_mat
>>> a, b = numpy.ones((2, 3), "f4"), numpy.ones((3, 4), "f4")
>>> sycl_mat.matmul(a, b)
array([[3., 3., 3., 3.],
       [3., 3., 3., 3.]], dtype=float32)
"""

from typing import TYPE_CHECKING, Any

import numpy as _numpy  # first, so that where it is missing Python itself says so

from . import _runtime

_runtime.prepare()
try:
    from . import _core
except ImportError as error:
    raise _runtime.explain_import_failure(error) from error

from ._accuracy import error_bound
from ._array import Array
from ._core import (
    Device,
    Kernel,
    PackParams,
    TileOptions,
    TileParams,
    __version__,
    devices,
    get_num_threads,
    kernels,
    last_kernel,
    matmul,
    set_default_device,
    set_num_threads,
)
from ._creation import asarray, empty, from_dlpack, full, zeros
from ._place import Event
from ._products import Explanation, explain, gemm
from .errors import (
    CompileError,
    DeviceError,
    DimensionError,
    Error,
    InputError,
    OutOfMemoryError,
    ParamsError,
    SizeError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from .tuning import TuneReport, tune

__all__ = [
    "Array",
    "CompileError",
    "Device",
    "DeviceError",
    "DimensionError",
    "Error",
    "Event",
    "Explanation",
    "InputError",
    "Kernel",
    "OutOfMemoryError",
    "PackParams",
    "ParamsError",
    "SizeError",
    "TileOptions",
    "TileParams",
    "TuneReport",
    "UnsupportedError",
    "__version__",
    "asarray",
    "devices",
    "empty",
    "error_bound",
    "explain",
    "from_dlpack",
    "full",
    "gemm",
    "get_num_threads",
    "kernels",
    "last_kernel",
    "matmul",
    "set_default_device",
    "set_num_threads",
    "tune",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """The tuner is loaded when it is first asked for: few programs need it, all would wait for it."""
    if name in ("TuneReport", "tune"):
        from . import tuning

        return getattr(tuning, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
