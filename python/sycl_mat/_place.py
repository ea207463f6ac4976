"""Products whose operands are Arrays: where they run, and how operands and results come there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._array import Array, Ndarray, copy, download, upload
from ._core import Device
from .errors import InputError, SizeError

DeviceLike = Device | str | None


class Place:
    """Where the product of Arrays runs, and how its operands and its result come there."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def plain(self, array: Ndarray, dtype: np.dtype[Any]) -> Ndarray:
        """The operand in this type: itself where it is that already."""
        if array.dtype == dtype and array.dtype.isnative and array.flags.aligned and not any(s % array.itemsize for s in array.strides):
            return array
        return upload(self._on_host(array).astype(dtype), self.device, "device")

    def vector(self, array: Ndarray, dtype: np.dtype[Any]) -> Ndarray:
        """A dense vector of this type."""
        if array.dtype == dtype and array.flags.c_contiguous:
            return array
        return np.ascontiguousarray(self._on_host(array), dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Ndarray:
        array: Ndarray = _core.allocate(shape, dtype, self.device, "device")
        return array

    def store(self, out: Ndarray, result: Ndarray) -> None:
        try:
            result = np.broadcast_to(result, out.shape)
        except ValueError:
            raise SizeError(f"Size Error: the result is {result.shape}, out is {out.shape}.") from None
        copy(out, result, self.device, self.device)

    def _on_host(self, array: Ndarray) -> Ndarray:
        if _core.host_reachable(array, self.device):
            _core.wait(self.device)
            return array
        return download(array, self.device)


def place_of(operands: dict[str, Any], device: DeviceLike) -> Place | None:
    """The device of the Arrays among the operands; None: there is no Array. Raises InputError where they live on different ones."""
    arrays = {name: x for name, x in operands.items() if isinstance(x, Array)}
    if not arrays:
        return None
    where = next(iter(arrays.values())).device if device is None else _core.current_device(device)
    for name, x in arrays.items():
        if x.device.selector != where.selector:
            others = ", ".join(f"{other} on {y.device.selector}" for other, y in arrays.items())
            raise InputError(
                f"the operands live on different devices ({others}; the product would run on {where.selector}): "
                f"bring {name} there with sycl_mat.asarray({name}, device={where.selector!r})"
            )
    return Place(where)


class Event:
    """The end of a product that was started with ``wait=False``. Keeps the operands until then."""

    def __init__(self, pending: Any, finish: Callable[[], Any]) -> None:
        self._pending = pending
        self._finish: Callable[[], Any] | None = finish
        self._result: Any = None

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return bool(self._pending.done())

    def wait(self) -> Any:
        """Blocks until the result is in place and returns it: a new array, or `out`. Raises DeviceError."""
        self._pending.wait()
        if self._finish is not None:
            self._result = self._finish()
            self._finish = None
        return self._result

    def __repr__(self) -> str:
        return f"<sycl_mat.Event {'done' if self.done() else 'under way'}>"
