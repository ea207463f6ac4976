"""The many cases of a product: what is not two plain arrays of one dtype is brought into that form here, as NumPy would.

The native module's ``matmul`` calls ``matmul_any`` for everything that its quick path does not take.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._array import Array as DeviceArray
from ._core import Device, PackParams, TileOptions, TileParams
from ._creation import as_operand
from ._place import Event, Place, place_of
from .errors import DimensionError, SizeError, UnsupportedError

Array = NDArray[Any]
DeviceLike = Device | str | None
ParamsLike = TileParams | PackParams | tuple[TileParams, TileOptions] | None
ActivationName = Literal["relu", "gelu", "sigmoid", "tanh", "silu"]

_FLOATS = ("float32", "float64", "float16", "bfloat16")


class _Options(NamedTuple):
    """How to run a product: passed through to the library as the caller gave it."""

    device: DeviceLike = None
    kernel: str | None = None
    params: ParamsLike = None
    backend: str | None = None
    precision: str | None = None
    max_device_memory: int | None = None

    @property
    def nothing_forced(self) -> bool:
        return all(value is None for value in self)


def _overrides_ufuncs(x: object) -> bool:
    """Whether NumPy would hand the whole product to this operand."""
    method = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
    return method is not np.ndarray.__array_ufunc__


def _as_array(x: Any, name: str) -> Array:
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


def _result_type(common: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int32) if common == np.int8 else common


def _accumulator(common: np.dtype[Any]) -> np.dtype[Any]:
    if common == np.int8:
        return np.dtype(np.int32)
    return common if common == np.float64 else np.dtype(np.float32)


def _plain(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in this type, native, aligned, with strides of whole elements: itself where it is that already."""
    if array.dtype != dtype or not array.dtype.isnative:
        return array.astype(dtype)
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        copied: Array = array.copy()
        return copied
    return array


def _usable(out: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether kernels can write `out` as it is."""
    return (
        out.dtype == dtype
        and out.dtype.isnative
        and out.shape == shape
        and bool(out.flags.aligned)
        and not any(stride % out.itemsize for stride in out.strides)
        and not any(stride == 0 and extent > 1 for stride, extent in zip(out.strides, out.shape, strict=True))
    )


def _check_out(out: object, dtype: np.dtype[Any]) -> Array:
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if not out.flags.writeable:
        raise ValueError("output array is read-only")
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"Cannot cast ufunc 'matmul' output from {dtype!r} to {out.dtype!r} with casting rule 'same_kind'")
    return out


def _store(out: Array, result: Array) -> None:
    try:
        np.copyto(out, result, casting="same_kind")
    except ValueError:
        raise SizeError(f"Size Error: non-broadcastable output operand: the result is {result.shape}, out is {out.shape}.") from None


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    try:
        return np.empty(shape, dtype)
    except ValueError as error:
        raise SizeError(f"Size Error: a result of shape {shape} is larger than memory can be addressed ({error}).") from None


def _vector(array: Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(array, dtype)


class _Host:
    """Where a product's result is made and its operands are converted, if no operand lives on a device."""

    plain = staticmethod(_plain)
    vector = staticmethod(_vector)
    empty = staticmethod(_empty)
    store = staticmethod(_store)


_Place = _Host | Place


def _transposed(array: Array, wanted: bool) -> Array:
    return array.swapaxes(-1, -2) if wanted and array.ndim > 1 else array


class _Shape(NamedTuple):
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


def _matrices(a: Array, b: Array) -> tuple[Array, Array, _Shape]:
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
    return a, b, _Shape((*batch, a.shape[-2], b.shape[-1]), a_is_vector, b_is_vector)


def _wrap(result: Any, a: Any, b: Any, out: Any) -> Any:
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


def matmul_any(
    a: Any,
    b: Any,
    out: Any,
    device: DeviceLike,
    kernel: str | None,
    params: ParamsLike,
    backend: str | None,
    precision: str | None,
    max_device_memory: int | None,
    transpose_a: bool | None,
    transpose_b: bool | None,
) -> Any:
    """`sycl_mat.matmul` for operands that need looking at."""
    options = _Options(device, kernel, params, backend, precision, max_device_memory)
    a, b = as_operand(a), as_operand(b)
    place = place_of({"a": a, "b": b, "out": out}, device)
    if place is None and any(map(_overrides_ufuncs, (a, b, out))):
        if not options.nothing_forced or transpose_a or transpose_b:
            raise UnsupportedError("an operand that computes its own products takes no options")
        return np.matmul(a, b) if out is None else np.matmul(a, b, out=out)
    call = _prepare(a, b, options, place, out=out, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b))
    _core.product(*call.arguments())
    return _finish(call, a, b, out)


class _Call(NamedTuple):
    """Operands ready for the native module, and where the result is to go."""

    a: Array
    b: Array
    c: Array | None
    result: Array  # with the axes that vectors lack
    alpha: float
    beta: float
    bias: Array | None
    bias_axis: int
    activation: str
    options: _Options
    shape: _Shape
    out: Array | None  # still to be filled from `result`; None: `result` is a view of the caller's array, or new
    place: _Place

    def arguments(self) -> tuple[Any, ...]:
        return (
            *(self.a, self.b, self.c, self.result, self.alpha, self.beta, self.bias, self.bias_axis, self.activation),
            *self.options,
        )


def _bias(bias: Array, shape: _Shape, dtype: np.dtype[Any], place: _Place) -> tuple[Array, int]:
    """The bias as a dense vector, and the axis of the result along which it runs (0 rows, 1 columns)."""
    rows, cols = shape.full[-2:]
    full = shape.expand(bias) if bias.ndim > 0 else bias
    if full.ndim == 2 and full.shape == (rows, 1) and rows != 1:
        return place.vector(full[:, 0], dtype), 0
    if full.ndim <= 1 or (full.ndim == 2 and full.shape[0] == 1):
        vector = full.reshape(-1)
        if vector.size == cols or vector.size == 1:
            return place.vector(np.broadcast_to(vector, (cols,)), dtype), 1
    raise SizeError(
        f"Size Error: a bias of shape {bias.shape} fits neither the columns nor the rows of a result of shape {shape.reduced}: "
        f"({cols},) adds one value a column, ({rows}, 1) one value a row."
    )


def _prepare(
    left: Any,
    right: Any,
    options: _Options,
    on: Place | None,
    *,
    c: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str | None = None,
    out: Any = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> _Call:
    place: _Place = on or _Host()
    if on is not None:
        options = options._replace(device=on.device)
    if isinstance(out, DeviceArray):
        out = out._view
    c, bias = _optional(c), _optional(bias)
    a, b, shape = _matrices(_transposed(_as_array(left, "a"), transpose_a), _transposed(_as_array(right, "b"), transpose_b))
    common = promote(a.dtype, b.dtype)
    check_kernel_type(common)
    read_c = c is not None and beta != 0
    if read_c or bias is not None:
        # C and the bias take part in the sum, so they take part in NumPy's choice of its type.
        wide = _result_type(common)
        if read_c and c is not None:
            wide = promote(wide, c.dtype)
        if bias is not None and not np.can_cast(bias.dtype, _accumulator(common)):
            wide = promote(wide, bias.dtype)
        if wide != _result_type(common):
            common = wide
            check_kernel_type(common)
    dtype = _result_type(common)
    a, b = place.plain(a, common), place.plain(b, common)

    expanded_c = None
    if c is not None:
        try:
            expanded_c = np.broadcast_to(shape.expand(c) if c.ndim > 0 else c, shape.full)
        except ValueError:
            raise SizeError(f"Size Error: c of shape {c.shape} does not broadcast to the result's {shape.reduced}.") from None
        expanded_c = place.plain(expanded_c, dtype) if read_c else None
    bias_axis = 1
    if bias is not None:
        bias, bias_axis = _bias(bias, shape, _accumulator(common), place)

    target = None
    if out is not None:
        target = _check_out(out, dtype)
        inputs = [a, b, *([bias] if bias is not None else [])]
        if expanded_c is not None and not _same_memory(expanded_c, shape, target):
            inputs.append(expanded_c)
        if _usable(target, dtype, shape.reduced) and not any(np.may_share_memory(x, target) for x in inputs):
            direct = shape.expand(target.view(np.ndarray))
            return _Call(a, b, expanded_c, direct, alpha, beta, bias, bias_axis, activation or "none", options, shape, None, place)
    result = place.empty(shape.full, dtype)
    return _Call(a, b, expanded_c, result, alpha, beta, bias, bias_axis, activation or "none", options, shape, target, place)


def _same_memory(c: Array, shape: _Shape, target: Array) -> bool:
    """Whether C and the result are the same elements in the same places: then the kernel may update in place."""
    if target.shape != shape.reduced or target.dtype != c.dtype:
        return False
    view = shape.expand(target)
    return view.ctypes.data == c.ctypes.data and view.strides == c.strides


def _optional(x: Any) -> Array | None:
    if isinstance(x, DeviceArray):
        return x._view
    return None if x is None else np.asarray(x)


def _finish(call: _Call, a: Any, b: Any, out: Any) -> Any:
    """What the caller gets, once the product has run (or, for Arrays, is in their device's queue)."""
    result: Array = call.result.reshape(call.shape.reduced)
    if call.out is not None:
        call.place.store(call.out, result)
    if out is None and isinstance(call.place, Place):
        return DeviceArray._over(result, call.place.device)
    return _wrap(result, a, b, out)


def gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: ArrayLike | None = None,
    activation: ActivationName | None = None,
    out: Any = None,
    device: DeviceLike = None,
    kernel: str | None = None,
    params: ParamsLike = None,
    backend: str | None = None,
    precision: str | None = None,
    max_device_memory: int | None = None,
    wait: bool = True,
) -> Any:
    """activation(alpha · op(a) · op(b) + beta · c + bias), in one kernel.

    a, b: as for ``matmul``; op transposes the last two axes where ``transpose_a`` / ``transpose_b`` says so.
    c: broadcasts to the result's shape; never read where beta is 0. ``out=c`` updates in place.
    bias: shape (N,) adds one value a column, shape (M, 1) one value a row.
    activation: relu, gelu (by the error function), sigmoid, tanh or silu.
    max_device_memory: bytes that operands may take on a device with memory of its own; larger ones are streamed in blocks.
    wait: False returns an ``Event`` at once; its ``wait()`` gives the result. Until then leave the operands and ``out`` alone.
    The other arguments, the result and the errors are those of ``matmul``.
    """
    a, b, c, bias = (as_operand(x) for x in (a, b, c, bias))
    call = _prepare(
        a,
        b,
        _Options(device, kernel, params, backend, precision, max_device_memory),
        place_of({"a": a, "b": b, "c": c, "bias": bias, "out": out}, device),
        c=c,
        alpha=float(alpha),
        beta=float(beta),
        bias=bias,
        activation=activation,
        out=out,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    pending = _core.product(*(*call.arguments(), wait))
    if wait:
        return _finish(call, a, b, out)
    return Event(pending, lambda: _finish(call, a, b, out))


@dataclass(frozen=True)
class Explanation:
    """What would run, and why. Prints as a table."""

    device: str
    kernel: str
    #: as rendered into the kernel
    constants: str
    #: why this kernel and these constants
    reason: str
    #: zero copy, or what is copied and why
    memory: str
    #: compiled now, shipped, or from the cache
    program: str
    launch_range: str
    #: bytes a work-group holds
    local_memory: int
    #: bytes of device scratch
    scratch: int
    #: as the driver reports them; -1: it does not
    registers: int
    #: bytes a work-item spills; -1: the driver does not say
    spills: int

    def __str__(self) -> str:
        rows = []
        for field in fields(self):
            value = getattr(self, field.name)
            text = "not reported by the driver" if value == -1 else str(value)
            if field.name in ("local_memory", "scratch", "spills") and value != -1:
                text += " bytes"
            rows.append(f"{field.name.replace('_', ' '):<13} {text or '-'}")
        return "\n".join(rows)


def explain(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: ArrayLike | None = None,
    activation: ActivationName | None = None,
    out: Any = None,
    device: DeviceLike = None,
    kernel: str | None = None,
    params: ParamsLike = None,
    backend: str | None = None,
    precision: str | None = None,
    max_device_memory: int | None = None,
) -> Explanation:
    """What ``matmul`` or ``gemm`` would run for these arguments, and why. Computes nothing, but may compile the kernel."""
    a, b, c, bias = (as_operand(x) for x in (a, b, c, bias))
    call = _prepare(
        a,
        b,
        _Options(device, kernel, params, backend, precision, max_device_memory),
        place_of({"a": a, "b": b, "c": c, "bias": bias, "out": out}, device),
        c=c,
        alpha=float(alpha),
        beta=float(beta),
        bias=bias,
        activation=activation,
        out=out,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    return Explanation(**_core.explain_product(*call.arguments()))
