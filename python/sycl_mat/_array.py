"""Arrays that stay on a device from one product to the next, and NumPy arrays in memory that a device shares.

An Array holds an ndarray object over the device's memory: NumPy does all arithmetic of shapes, strides and views, which touches no
element. Nothing here lets anyone follow its pointer where the processor does not reach the memory.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from ._core import Device
from .errors import InputError, SizeError, UnsupportedError

Ndarray = NDArray[Any]
DeviceLike = Device | str | None
MemoryName = Literal["device", "shared", "host"]

#: What arrays hold: the types of operands, and the results of int8 products.
_NAMES = ("float32", "float64", "float16", "bfloat16", "int8", "int32")
#: DLPack's numbers of memory that the processor reads: ordinary, and pinned by CUDA or ROCm.
_DLPACK_HOST = (1, 3, 11)
_DLPACK_ONEAPI = 14


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    checked = np.dtype(dtype)
    if checked.name not in _NAMES:
        raise UnsupportedError(f"arrays of {checked} are not supported: there are {', '.join(_NAMES)}")
    return checked.newbyteorder("=")


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
            if isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__") or getattr(part, "ndim", 0):
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
        return _download(self._view, self._device)

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
        _copy(target, self._view, self._device, out._device if isinstance(out, Array) else self._device)
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

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> Ndarray:
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        if not copy and wanted == self.dtype and _core.host_reachable(self._view, self._device):
            return self._visible("")
        if copy is False:
            raise ValueError("an array of device memory, or of another type, cannot be had without a copy")
        return self.numpy().astype(wanted, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = _core.dlpack_device(self._device)
        return int(kind), int(number)

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
            view = _upload(self._view, self._device, "device", self._device)
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


def _download(view: Ndarray, device: Device) -> Ndarray:
    out = np.empty(view.shape, view.dtype)
    _core.copy(out, view, device)
    return out


def _upload(source: Ndarray, device: Device, memory: str, of: Device | None = None) -> Ndarray:
    """A dense copy in the device's memory. `of`: the device whose memory the source may be."""
    target: Ndarray = _core.allocate(source.shape, source.dtype, device, memory)
    if of is not None and of.selector != device.selector:
        source = _download(source, of)
    elif not source.flags.aligned or not source.dtype.isnative or any(stride % source.itemsize for stride in source.strides):
        source = np.ascontiguousarray(source, source.dtype.newbyteorder("="))
    _core.copy(target, source, device)
    return target


def _copy(target: Ndarray, source: Ndarray, source_device: Device, target_device: Device) -> None:
    """Between any two arrays; each device is that of its side, where that side is an Array's."""
    direct = source.dtype == target.dtype and target.dtype.isnative and target.flags.aligned
    direct = direct and not any(stride % target.itemsize for stride in target.strides)
    if direct and source_device.selector == target_device.selector:
        _core.copy(target, source, source_device)
        return
    if not np.can_cast(source.dtype, target.dtype, "same_kind"):
        raise UnsupportedError(f"an array of {source.dtype} is not copied to one of {target.dtype}: that would lose precision")
    on_host = _download(source, source_device)
    if _core.host_reachable(target, target_device):
        _core.wait(target_device)
        np.copyto(target, on_host, casting="same_kind")
    else:
        _core.copy(target, np.ascontiguousarray(on_host, target.dtype), target_device)


# ---- the way in --------------------------------------------------------------------------------------------------------------------


def _import_dlpack(x: Any) -> Ndarray:
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter from before DLPack 1.0
        capsule = x.__dlpack__()
    array: Ndarray = _core.from_dlpack(capsule, None)
    return array


def _finish_torch(x: Any) -> None:
    """PyTorch's queue, whose work on this tensor DLPack says nothing of."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        torch.xpu.current_stream(x.device).synchronize()


def _from_oneapi(x: Any) -> Array:
    _finish_torch(x)
    view = _import_dlpack(x)
    device = _core.device_of_pointer(view.ctypes.data) if view.size else _core.current_device(None)
    if device is None:
        raise UnsupportedError("DLPack: this memory belongs to a SYCL context that the runtime of sycl_mat does not know")
    _core.adopt(view, device)
    return Array._over(view, device)


def _from_usm(x: Any) -> Array:
    """An Array over the memory of an object with __sycl_usm_array_interface__, after the work of its queue."""
    interface = x.__sycl_usm_array_interface__
    if interface.get("version", 1) != 1:
        raise UnsupportedError(f"__sycl_usm_array_interface__ of version {interface['version']} is not known")
    dtype = np.dtype(interface["typestr"])
    pointer, read_only = interface["data"]
    pointer += interface.get("offset", 0) * dtype.itemsize
    strides = interface.get("strides")
    shape = tuple(interface["shape"])
    queue = interface.get("syclobj")
    for candidate in (queue, getattr(x, "sycl_queue", None)):
        wait = getattr(candidate, "wait", None)
        if callable(wait):
            wait()
            break
    device = _core.device_of_pointer(pointer) if 0 not in shape else _core.current_device(None)
    if device is None:
        raise UnsupportedError(
            f"the memory of this {type(x).__name__} belongs to a SYCL context that the runtime of sycl_mat does not know "
            "(two SYCL runtimes in one process?); pass it through DLPack or NumPy"
        )
    steps = None if strides is None else tuple(stride * dtype.itemsize for stride in strides)
    view: Ndarray = _core.wrap(pointer, shape, steps, dtype, device, x, not read_only)
    return Array._over(view, device)


def as_operand(x: Any) -> Any:
    """An Array for what lies on a device, an ndarray for memory that is shared without a copy; anything else as it is."""
    if isinstance(x, (np.ndarray, np.generic, Array)) or x is None:
        return x
    if hasattr(x, "__sycl_usm_array_interface__"):
        return _from_usm(x)
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        kind = int(x.__dlpack_device__()[0])
        if kind == _DLPACK_ONEAPI:
            return _from_oneapi(x)
        if kind in _DLPACK_HOST:
            try:
                return _import_dlpack(x)
            except (BufferError, RuntimeError, TypeError):
                return x  # it may know another way to become an array
    return x


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """An Array over the memory of any object with ``__dlpack__``, without a copy where the device reads it.

    device: None means where the memory is, and the default device for ordinary memory.
    copy: True always copies, False never does (BufferError where that is impossible), None copies where it must.
    """
    kind = int(x.__dlpack_device__()[0])
    if isinstance(x, Array):
        array = x
    elif kind == _DLPACK_ONEAPI:
        array = _from_oneapi(x)
    elif kind in _DLPACK_HOST:
        view = _import_dlpack(x)
        _check_dtype(view.dtype)
        target = _core.current_device(device)
        if not target.usm_system:
            if copy is False:
                raise BufferError(f"{target.name} does not read ordinary memory: a copy is needed")
            return Array._over(_upload(view, target, "device"), target)
        _core.adopt(view, target)
        array = Array._over(view, target)
    else:
        raise BufferError(f"DLPack device type {kind} is neither the processor's nor SYCL's")
    _check_dtype(array.dtype)
    target = array.device if device is None else _core.current_device(device)
    if target.selector == array.device.selector and not copy:
        return array
    if copy is False:
        raise BufferError(f"from {array.device.selector} to {target.selector} there is no way without a copy")
    return Array._over(_upload(array._view, target, "device", array.device), target)


def asarray(x: Any, dtype: DTypeLike = None, *, device: DeviceLike = None, memory: MemoryName | None = None) -> Array:
    """`x` as an Array: a copy in memory of the device, or `x` itself where it is an Array there already.

    x: anything that NumPy takes as an array, an Array, an object with __sycl_usm_array_interface__ or __dlpack__.
    dtype: None keeps that of `x`. float32, float64, float16, bfloat16, int8, int32.
    device: None means where `x` is, and the default device for what is on the host.
    memory: 'device' (default), 'shared' or 'host'.
    Raises UnsupportedError for other types, OutOfMemoryError, DeviceError.
    """
    source = as_operand(x)
    wanted = None if dtype is None else _check_dtype(dtype)
    if isinstance(source, Array):
        target = source.device if device is None else _core.current_device(device)
        same = wanted is None or wanted == source.dtype
        if same and target.selector == source.device.selector and memory in (None, source.memory):
            return source
        if same:
            return Array._over(_upload(source._view, target, memory or "device", source.device), target)
        source = source.numpy()
    else:
        target = _core.current_device(device)
    host = np.asarray(source)
    host = np.asarray(host, _check_dtype(host.dtype) if wanted is None else wanted)
    return Array._over(_upload(host, target, memory or "device"), target)


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, *, device: DeviceLike = None, memory: MemoryName = "shared") -> Any:
    """An uninitialised array in memory of the device.

    memory: 'shared' and 'host' give a NumPy array, which products on this device read and write in place, views of it too;
        'device' gives an Array.
    device: None means the default device.
    Raises UnsupportedError for types without a kernel or a device without such memory, OutOfMemoryError.
    """
    sizes = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(operator.index(extent) for extent in shape)
    target = _core.current_device(device)
    view: Ndarray = _core.allocate(sizes, _check_dtype(dtype), target, memory)
    if memory == "device":
        return Array._over(view, target)
    _core.shown(view)
    return view


def full(
    shape: int | tuple[int, ...],
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
    memory: MemoryName = "shared",
) -> Any:
    """`empty`, filled with a value. dtype: None means that of the value as NumPy sees it, float32 for Python's numbers."""
    if dtype is None:
        dtype = np.float32 if isinstance(fill_value, (int, float)) else np.asarray(fill_value).dtype
    array = empty(shape, dtype, device=device, memory=memory)
    if isinstance(array, Array):
        _core.copy(array._view, np.broadcast_to(np.asarray(fill_value, array.dtype), array.shape), array._device)
    else:
        array[...] = fill_value
    return array


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, *, device: DeviceLike = None, memory: MemoryName = "shared") -> Any:
    """`empty`, filled with zeros."""
    return full(shape, 0, dtype, device=device, memory=memory)


# ---- products ----------------------------------------------------------------------------------------------------------------------


class Place:
    """Where the product of Arrays runs, and how its operands and its result come there."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def plain(self, array: Ndarray, dtype: np.dtype[Any]) -> Ndarray:
        """The operand in this type: itself where it is that already."""
        if array.dtype == dtype and array.dtype.isnative and array.flags.aligned and not any(s % array.itemsize for s in array.strides):
            return array
        return _upload(self._on_host(array).astype(dtype), self.device, "device")

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
        _copy(out, result, self.device, self.device)

    def _on_host(self, array: Ndarray) -> Ndarray:
        if _core.host_reachable(array, self.device):
            _core.wait(self.device)
            return array
        return _download(array, self.device)


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
