"""How arrays in memory of a device come to be: from NumPy's, from other libraries' without a copy, and empty ones."""

from __future__ import annotations

import operator
import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _core
from ._array import Array, Ndarray, upload
from ._core import Device
from .errors import InputError, UnsupportedError

DeviceLike = Device | str | None
MemoryName = Literal["device", "shared", "host"]

#: What arrays hold: the types of operands, and the results of int8 products.
_NAMES = ("float32", "float64", "float16", "bfloat16", "int8", "int32")
#: DLPack's numbers of memory that the processor reads: ordinary, and pinned by CUDA or ROCm.
_DLPACK_HOST = (1, 3, 11)
#: … and of memory that the runtime of a GPU knows: CUDA's, ROCm's, CUDA's managed, SYCL's.
_DLPACK_DEVICE = (2, 10, 13, 14)


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    checked: np.dtype[Any] = np.dtype(dtype)
    if checked.name not in _NAMES:
        raise UnsupportedError(f"arrays of {checked} are not supported: there are {', '.join(_NAMES)}")
    native: np.dtype[Any] = checked.newbyteorder("=")
    return native


def _import_dlpack(x: Any) -> Ndarray:
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter from before DLPack 1.0
        capsule = x.__dlpack__()
    array: Ndarray = _core.from_dlpack(capsule, None)
    return array


def _finish_work_on(x: Any) -> None:
    """Other libraries' queues, whose work on this array DLPack says nothing of that would help here."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(x, torch.Tensor):
        (torch.cuda if x.device.type == "cuda" else torch.xpu).current_stream(x.device).synchronize()
    elif cupy is not None and isinstance(x, cupy.ndarray):
        cupy.cuda.get_current_stream().synchronize()
    elif callable(wait := getattr(x, "block_until_ready", None)):  # JAX
        wait()


def _from_gpu(x: Any) -> Array:
    _finish_work_on(x)
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
    try:
        dtype = np.dtype(interface["typestr"])
        pointer, read_only = operator.index(interface["data"][0]), bool(interface["data"][1])
        pointer += operator.index(interface.get("offset", 0)) * dtype.itemsize
        shape = tuple(operator.index(extent) for extent in interface["shape"])
        given = interface.get("strides")
        strides = None if given is None else tuple(operator.index(stride) for stride in given)
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(f"the __sycl_usm_array_interface__ of this {type(x).__name__} is malformed ({error!r})") from error
    _check_dtype(dtype)
    if not dtype.isnative:
        raise UnsupportedError(f"arrays of {dtype} in another byte order are not supported")
    if min(shape, default=0) < 0 or pointer < 0 or (strides is not None and len(strides) != len(shape)):
        raise InputError(
            f"the __sycl_usm_array_interface__ of this {type(x).__name__} makes no sense: shape {shape}, strides {strides}, data {pointer}"
        )
    if pointer % dtype.itemsize:
        raise UnsupportedError(f"the memory of this {type(x).__name__} is not aligned for {dtype}")
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
        if kind in _DLPACK_DEVICE:
            return _from_gpu(x)
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
    elif kind in _DLPACK_DEVICE:
        array = _from_gpu(x)
    elif kind in _DLPACK_HOST:
        view = _import_dlpack(x)
        _check_dtype(view.dtype)
        target = _core.current_device(device)
        if not target.usm_system:
            if copy is False:
                raise BufferError(f"{target.name} does not read ordinary memory: a copy is needed")
            return Array._over(upload(view, target, "device"), target)
        _core.adopt(view, target)
        array = Array._over(view, target)
    else:
        raise BufferError(f"DLPack device type {kind} is neither the processor's nor one of a GPU that SYCL knows")
    _check_dtype(array.dtype)
    target = array.device if device is None else _core.current_device(device)
    if target.selector == array.device.selector and not copy:
        return array
    if copy is False:
        raise BufferError(f"from {array.device.selector} to {target.selector} there is no way without a copy")
    return Array._over(upload(array._view, target, "device", array.device), target)


def asarray(x: Any, dtype: DTypeLike | None = None, *, device: DeviceLike = None, memory: MemoryName | None = None) -> Array:
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
            return Array._over(upload(source._view, target, memory or "device", source.device), target)
        source = source.numpy()
    else:
        target = _core.current_device(device)
    host = np.asarray(source)
    host = np.asarray(host, _check_dtype(host.dtype) if wanted is None else wanted)
    return Array._over(upload(host, target, memory or "device"), target)


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
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    memory: MemoryName = "shared",
) -> Any:
    """`empty`, filled with a value. dtype: None means that of the value as NumPy sees it, float32 for Python's numbers."""
    if dtype is None:
        dtype = np.float32 if type(fill_value) in (int, float) else np.asarray(fill_value).dtype
    array = empty(shape, dtype, device=device, memory=memory)
    if isinstance(array, Array):
        _core.copy(array._view, np.broadcast_to(np.asarray(fill_value, array.dtype), array.shape), array._device)
    else:
        array[...] = fill_value
    return array


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, *, device: DeviceLike = None, memory: MemoryName = "shared") -> Any:
    """`empty`, filled with zeros."""
    return full(shape, 0, dtype, device=device, memory=memory)
