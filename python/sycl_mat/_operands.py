"""What NumPy makes of a product's arguments: types, shapes, strides, where results go, what they become."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._array import Array as DeviceArray
from .errors import DimensionError, SizeError, UnsupportedError

Array = NDArray[Any]

_FLOATS = ("float32", "float64", "float16", "bfloat16")


def overrides_ufuncs(x: object) -> bool:
    """Whether NumPy would hand the whole product to this operand."""
    method = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
    return method is not np.ndarray.__array_ufunc__


def as_array(x: Any, name: str) -> Array:
    array: Array = x._view if isinstance(x, DeviceArray) else np.asarray(x)
    if array.dtype == object:
        raise UnsupportedError(f"{name} is an array of Python objects, for which there is no kernel")
    if array.ndim == 0:
        raise DimensionError(f"Dimension Error: {name} is a scalar; a product wants at least one dimension (use * for scalars).")
    return array


def promote(*types: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's common type, in native byte order. Raises UnsupportedError where there is none or no kernel has it."""
    try:
        common: np.dtype[Any] = np.result_type(*types).newbyteorder("=")
    except TypeError as error:
        raise UnsupportedError(f"there is no common type of {', '.join(map(str, types))}") from error
    return common


def check_kernel_type(common: np.dtype[Any]) -> None:
    if common.name in _FLOATS or common.name == "int8":
        return
    hint = ""
    if common.kind in "iub":
        hint = ": convert the operands, for example with .astype(numpy.float64), exact for integers below 2**53"
    elif common.kind == "c":
        hint = ": multiply real and imaginary parts"
    raise UnsupportedError(f"there is no kernel for {common}{hint}")


def result_type(common: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int32) if common == np.int8 else common


def accumulator(common: np.dtype[Any]) -> np.dtype[Any]:
    if common == np.int8:
        return np.dtype(np.int32)
    return common if common == np.float64 else np.dtype(np.float32)


def plain(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in this type, native, aligned, with strides of whole elements: itself where it is that already."""
    if array.dtype != dtype or not array.dtype.isnative:
        return array.astype(dtype)
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        copied: Array = array.copy(order="K")  # the layout decides which kernel runs, and so the last bits
        return copied
    return array


def usable(out: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether kernels can write `out` as it is."""
    return (
        out.dtype == dtype
        and out.dtype.isnative
        and out.shape == shape
        and bool(out.flags.aligned)
        and not any(stride % out.itemsize for stride in out.strides)
        and not any(stride == 0 and extent > 1 for stride, extent in zip(out.strides, out.shape, strict=True))
    )


def check_out(out: object, dtype: np.dtype[Any]) -> Array:
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if not out.flags.writeable:
        raise ValueError("output array is read-only")
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"Cannot cast ufunc 'matmul' output from {dtype!r} to {out.dtype!r} with casting rule 'same_kind'")
    return out


def store(out: Array, result: Array) -> None:
    try:
        np.copyto(out, result, casting="same_kind")
    except ValueError:
        raise SizeError(f"Size Error: non-broadcastable output operand: the result is {result.shape}, out is {out.shape}.") from None


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    try:
        return np.empty(shape, dtype)
    except ValueError as error:
        raise SizeError(f"Size Error: a result of shape {shape} is larger than memory can be addressed ({error}).") from None


def transposed(array: Array, wanted: bool) -> Array:
    return array.swapaxes(-1, -2) if wanted and array.ndim > 1 else array


class Shape(NamedTuple):
    """The result's shape as matrices, and which of its last two axes the caller's vectors do not have."""

    full: tuple[int, ...]
    a_is_vector: bool
    b_is_vector: bool

    @property
    def reduced(self) -> tuple[int, ...]:
        batch, (rows, cols) = self.full[:-2], self.full[-2:]
        return (*batch, *(() if self.a_is_vector else (rows,)), *(() if self.b_is_vector else (cols,)))

    def expand(self, array: Array) -> Array:
        """A view of an array of the reduced shape (or one that broadcasts to it) with the missing axes put in."""
        if self.b_is_vector:
            array = array[..., np.newaxis]
        if self.a_is_vector:
            array = array[..., np.newaxis, :]
        return array


def matrices(a: Array, b: Array) -> tuple[Array, Array, Shape]:
    a_is_vector, b_is_vector = a.ndim == 1, b.ndim == 1
    if a_is_vector:
        a = a[np.newaxis, :]
    if b_is_vector:
        b = b[:, np.newaxis]
    if a.shape[-1] != b.shape[-2]:
        raise SizeError(
            f"Size Error: the columns of a and the rows of b differ: {a.shape} and {b.shape} ({b.shape[-2]} is not {a.shape[-1]})."
        )
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise SizeError(f"Size Error: the stacks {a.shape} and {b.shape} could not be broadcast together.") from None
    return a, b, Shape((*batch, a.shape[-2], b.shape[-1]), a_is_vector, b_is_vector)


def wrap(result: Any, a: Any, b: Any, out: Any) -> Any:
    """What NumPy's ufuncs do for subclasses: the operand of the highest priority decides what the result becomes."""
    if out is not None:
        return out[0] if isinstance(out, tuple) else out
    scalar = result.ndim == 0
    candidates = [x for x in (a, b) if type(x) is not np.ndarray and hasattr(x, "__array_wrap__") and not isinstance(x, np.generic)]
    if not candidates:
        return result[()] if scalar else result
    best = max(candidates, key=lambda x: float(getattr(x, "__array_priority__", 0.0)))
    context = (np.matmul, (a, b), 0)
    if int(np.__version__.split(".")[0]) >= 2:
        try:
            return best.__array_wrap__(result, context, scalar)
        except TypeError:
            pass
    return best.__array_wrap__(result, context)
