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
from ._operands import (
    Shape,
    accumulator,
    as_array,
    check_kernel_type,
    check_out,
    empty,
    matrices,
    overrides_ufuncs,
    plain,
    promote,
    result_type,
    store,
    transposed,
    usable,
    wrap,
)
from ._place import Event, Place, place_of
from .errors import SizeError, UnsupportedError

Array = NDArray[Any]
DeviceLike = Device | str | None
ParamsLike = TileParams | PackParams | tuple[TileParams, TileOptions] | None
ActivationName = Literal["relu", "gelu", "sigmoid", "tanh", "silu"]


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


def _vector(array: Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(array, dtype)


class _Host:
    """Where a product's result is made and its operands are converted, if no operand lives on a device."""

    plain = staticmethod(plain)
    vector = staticmethod(_vector)
    empty = staticmethod(empty)
    store = staticmethod(store)


_Place = _Host | Place


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
    if place is None and any(map(overrides_ufuncs, (a, b, out))):
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
    shape: Shape
    out: Array | None  # still to be filled from `result`; None: `result` is a view of the caller's array, or new
    place: _Place

    def arguments(self) -> tuple[Any, ...]:
        return (
            *(self.a, self.b, self.c, self.result, self.alpha, self.beta, self.bias, self.bias_axis, self.activation),
            *self.options,
        )


def _bias(bias: Array, shape: Shape, dtype: np.dtype[Any], place: _Place) -> tuple[Array, int]:
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
    if activation is not None and not isinstance(activation, str):
        raise TypeError(f"activation: 'relu', 'gelu', 'sigmoid', 'tanh', 'silu' or None is wanted, not {activation!r}")
    place: _Place = on or _Host()
    if on is not None:
        options = options._replace(device=on.device)
    if isinstance(out, DeviceArray):
        out = out._view
    c, bias = _optional(c), _optional(bias)
    a, b, shape = matrices(transposed(as_array(left, "a"), transpose_a), transposed(as_array(right, "b"), transpose_b))
    common = promote(a.dtype, b.dtype)
    check_kernel_type(common)
    read_c = c is not None and beta != 0
    if read_c or bias is not None:
        # C and the bias take part in the sum, so they take part in NumPy's choice of its type.
        wide = result_type(common)
        if read_c and c is not None:
            wide = promote(wide, c.dtype)
        if bias is not None and not np.can_cast(bias.dtype, accumulator(common)):
            wide = promote(wide, bias.dtype)
        if wide != result_type(common):
            common = wide
            check_kernel_type(common)
    dtype = result_type(common)
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
        bias, bias_axis = _bias(bias, shape, accumulator(common), place)

    target = None
    if out is not None:
        target = check_out(out, dtype)
        inputs = [a, b, *([bias] if bias is not None else [])]
        if expanded_c is not None and not _same_memory(expanded_c, shape, target):
            inputs.append(expanded_c)
        if usable(target, dtype, shape.reduced) and not any(np.may_share_memory(x, target) for x in inputs):
            direct = shape.expand(target.view(np.ndarray))
            return _Call(a, b, expanded_c, direct, alpha, beta, bias, bias_axis, activation or "none", options, shape, None, place)
    result = place.empty(shape.full, dtype)
    return _Call(a, b, expanded_c, result, alpha, beta, bias, bias_axis, activation or "none", options, shape, target, place)


def _same_memory(c: Array, shape: Shape, target: Array) -> bool:
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
    return wrap(result, a, b, out)


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
    max_device_memory: bytes that operands and copies of them may take on a device with memory of its own; larger ones are streamed in blocks.
    wait: False returns an ``Event`` at once; its ``wait()`` gives the result. Until then leave the operands and ``out`` alone.
    The other arguments, the result and the errors are those of ``matmul``.
    """
    wait = bool(wait)
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
