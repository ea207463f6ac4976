"""Arrays that stay on a device from one product to the next, and NumPy arrays in memory that a device shares.

An Array holds an ndarray object over the device's memory: NumPy does all arithmetic of shapes, strides and views, which touches no
element. Nothing here lets anyone follow its pointer where the processor does not reach the memory.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _core
from ._core import Device
from .errors import SizeError, UnsupportedError

Ndarray = NDArray[Any]


class Array(_core.ArrayBase):
    """A matrix, vector or stack in memory of one device. Made by `asarray`, `empty`, `zeros`, `full`, `from_dlpack`, and by products.

    Indexing with integers, slices, ``...`` and ``None`` gives views. ``@`` multiplies; there is no other arithmetic. Products of arrays
    return at once and run in order; whatever looks at the elements waits for them by itself.
    """

    __slots__ = ("__weakref__", "_device", "_view")
    _view: Ndarray
    _device: Device

    # NumPy's operators leave products with an Array to __rmatmul__, and its functions refuse it.
    __array_ufunc__ = None

    def __init__(self) -> None:
        raise TypeError("an Array is made by sycl_mat.asarray, empty, zeros, full or from_dlpack")

    @classmethod
    def _over(cls, view: Ndarray, device: Device) -> Array:
        self = cls.__new__(cls)
        self._view = view
        self._device = device
        return self

    # ---- what it is ----------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._view.dtype

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def itemsize(self) -> int:
        return self._view.itemsize

    @property
    def nbytes(self) -> int:
        return self._view.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as NumPy's."""
        return self._view.strides

    @property
    def device(self) -> Device:
        return self._device

    @property
    def memory(self) -> str:
        """'device', 'shared' or 'host'; 'system': ordinary memory of the process, which came by DLPack."""
        return str(_core.memory_kind(self._view, self._device))

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("the truth of an Array is not defined; use len() or .numpy()")

    def __repr__(self) -> str:
        return f"<sycl_mat.Array {self.shape} {self.dtype} in {self.memory} memory of {self._device.selector}>"

    # ---- views ---------------------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Array:
        """The array with its axes reversed. A view."""
        return Array._over(self._view.T, self._device)

    @property
    def mT(self) -> Array:
        """Each matrix of a stack transposed. A view."""
        if self.ndim < 2:
            raise ValueError("mT wants at least two dimensions")
        return Array._over(self._view.swapaxes(-1, -2), self._device)

    def __getitem__(self, index: Any) -> Array:
        """A view. Raises IndexError for what would need a copy (arrays of indices, masks)."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if part is None or part is Ellipsis or isinstance(part, slice):
                continue
            if isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__") or getattr(part, "ndim", 0) != 0:
                raise IndexError("only integers, slices, ... and None are valid indices of an Array")
        plain = tuple(part if part is None or part is Ellipsis or isinstance(part, slice) else operator.index(part) for part in parts)
        # With an ellipsis NumPy never reads an element to make a scalar of it.
        return Array._over(self._view[plain if Ellipsis in plain else (*plain, ...)], self._device)

    # ---- products ------------------------------------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        return _core.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _core.matmul(other, self)

    def wait(self) -> Array:
        """Blocks until everything that was submitted to its device has run. Raises DeviceError. Returns the array itself."""
        _core.wait(self._device)
        return self

    # ---- the way out ---------------------------------------------------------------------------------------------------------------

    def numpy(self) -> Ndarray:
        """A copy as a NumPy array, in C order."""
        return download(self._view, self._device)

    def copy_to(self, out: Any) -> Any:
        """Copies the elements into `out`, a NumPy array or an Array of this shape; NumPy arrays of a wider type too. Returns `out`.

        Raises SizeError for another shape, UnsupportedError for another type, ValueError where `out` is read-only.
        """
        if out.shape != self.shape:
            raise SizeError(f"Size Error: an array of shape {self.shape} cannot be copied to one of shape {out.shape}.")
        target = out._view if isinstance(out, Array) else out
        if not isinstance(target, np.ndarray):
            raise TypeError(f"copy_to wants a NumPy array or an Array, not {type(out).__name__}")
        if not target.flags.writeable:
            raise ValueError("the array to copy to is read-only")
        copy(target, self._view, self._device, out._device if isinstance(out, Array) else self._device)
        return out

    def _visible(self, why: str) -> Ndarray:
        """The ndarray itself, for others to look into."""
        if not _core.host_reachable(self._view, self._device):
            raise BufferError(f"the memory of {self._device.name} cannot be reached by the processor{why}")
        _core.shown(self._view)
        _core.wait(self._device)
        return self._view

    def _buffer(self) -> Ndarray:
        return self._visible(": use .numpy()")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Ndarray:
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        if not copy and wanted == self.dtype and _core.host_reachable(self._view, self._device):
            return self._visible("")
        if copy is False:
            raise ValueError("an array of device memory, or of another type, cannot be had without a copy")
        return self.numpy().astype(wanted, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = _core.dlpack_device(self._device)
        return dlpack_kind(int(kind), self.memory), int(number)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of this memory, once all work on it is done, so any `stream` is right. See the array API standard."""
        own = self.__dlpack_device__()
        versioned = max_version is not None and max_version[0] >= 1
        if dl_device is not None and tuple(dl_device) != own:
            if dl_device[0] != 1:
                raise BufferError(f"an Array of DLPack device {own} is not exported to device {tuple(dl_device)}")
            if copy is False:
                raise BufferError("an Array of a GPU is not exported to the processor without a copy")
            return _core.to_dlpack(self.numpy(), (1, 0), versioned, True)
        view = self._view
        if copy:
            view = upload(self._view, self._device, "device", self._device)
        else:
            _core.shown(view)
        _core.wait(self._device)
        return _core.to_dlpack(view, own, versioned, bool(copy))

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """dpctl's protocol; the work on the array is done. Absent for bfloat16, which has no type string, and ordinary memory."""
        if self.dtype.name == "bfloat16" or self.memory == "system":
            raise AttributeError("__sycl_usm_array_interface__")
        _core.shown(self._view)
        _core.wait(self._device)
        return {
            "data": (self._view.ctypes.data, not self._view.flags.writeable),
            "shape": self.shape,
            "strides": None if self._view.flags.c_contiguous else tuple(stride // self.itemsize for stride in self.strides),
            "typestr": self.dtype.str,
            "version": 1,
            "syclobj": _core.device_filter(self._device),
            "offset": 0,
        }


# ---- copies ------------------------------------------------------------------------------------------------------------------------


def dlpack_kind(device: int, memory: str) -> int:
    """DLPack's number of memory of a device whose own number is `device`."""
    if memory == "system":
        return 1
    return {(2, "host"): 3, (2, "shared"): 13, (10, "host"): 11}.get((device, memory), device)


def download(view: Ndarray, device: Device) -> Ndarray:
    out = np.empty(view.shape, view.dtype)
    _core.copy(out, view, device)
    return out


def upload(source: Ndarray, device: Device, memory: str, of: Device | None = None) -> Ndarray:
    """A dense copy in the device's memory. `of`: the device whose memory the source may be."""
    target: Ndarray = _core.allocate(source.shape, source.dtype, device, memory)
    if of is not None and of.selector != device.selector:
        source = download(source, of)
    elif not source.flags.aligned or not source.dtype.isnative or any(stride % source.itemsize for stride in source.strides):
        source = source.astype(source.dtype.newbyteorder("="), order="C")
    _core.copy(target, source, device)
    return target


def copy(target: Ndarray, source: Ndarray, source_device: Device, target_device: Device) -> None:
    """Between any two arrays; each device is that of its side, where that side is an Array's."""
    direct = source.dtype == target.dtype and target.dtype.isnative and target.flags.aligned
    direct = direct and not any(stride % target.itemsize for stride in target.strides)
    if direct and source_device.selector == target_device.selector:
        _core.copy(target, source, source_device)
        return
    if not np.can_cast(source.dtype, target.dtype, "same_kind"):
        raise UnsupportedError(f"an array of {source.dtype} is not copied to one of {target.dtype}: that would lose precision")
    on_host = download(source, source_device)
    if _core.host_reachable(target, target_device):
        _core.wait(target_device)
        np.copyto(target, on_host, casting="same_kind")
    else:
        _core.copy(target, np.ascontiguousarray(on_host, target.dtype), target_device)
