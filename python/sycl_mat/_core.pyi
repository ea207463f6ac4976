"""Types of the native module. Written by tools/make_stubs.py; a test compares."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

__version__: str


class TileParams:
    """
    The six constants of the tiled kernels. A work-group of tile_m × tile_n work-items computes a block of
    (tile_m·batch_m) × (tile_n·batch_n) results, walking K in steps of tile_k; every load moves `chunk` elements.
    """

    def __init__(self, tile_m: int = 16, tile_n: int = 16, tile_k: int = 16, batch_m: int = 4, batch_n: int = 4, chunk: int = 4) -> None: ...

    @property
    def tile_m(self) -> int:
        """work-items of a group along M"""

    @property
    def tile_n(self) -> int:
        """work-items of a group along N"""

    @property
    def tile_k(self) -> int:
        """depth of a tile"""

    @property
    def batch_m(self) -> int:
        """rows a work-item computes"""

    @property
    def batch_n(self) -> int:
        """columns a work-item computes"""

    @property
    def chunk(self) -> int:
        """elements a load moves"""

    def asdict(self) -> dict[str, int]:
        """The constants by name."""

    def replace(self, **changes: int) -> TileParams:
        """A copy with some constants changed."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[type[TileParams], tuple[int, ...]]: ...

class TileOptions:
    """
    The other choices inside the tiled kernel; pass `params=(TileParams(...), TileOptions(...))`.
    """

    def __init__(self, a_transposed: int = 1, pad: int = 4, strided: int = 1, order: int = 1, ahead: int = 1, local: int = 1, sub_group: int = 0, split_k: int = 1, swizzle: int = 0, share: int = 0) -> None: ...

    @property
    def a_transposed(self) -> int:
        """local copy of A stored [k][m]"""

    @property
    def pad(self) -> int:
        """elements added to a row of local memory"""

    @property
    def strided(self) -> int:
        """
        rows and columns of a work-item: 0 contiguous, 1 strided in chunks of 4
        """

    @property
    def order(self) -> int:
        """products of a k: 0 row by row, 1 serpentine"""

    @property
    def ahead(self) -> int:
        """
        when the next k's fragments are read: 0 as needed, 1 before the present products, 2 also across the barrier
        """

    @property
    def local(self) -> int:
        """
        operands: 0 straight from global memory, 1 through local memory, 2 with A's read once a sub-group
        """

    @property
    def sub_group(self) -> int:
        """required sub-group size, 0: the compiler's choice"""

    @property
    def split_k(self) -> int:
        """groups that share one block of C along K"""

    @property
    def swizzle(self) -> int:
        """block rows walked together, 0: row by row"""

    @property
    def share(self) -> int:
        """
        groups among which blocks that do not come out even are shared out along K, 0: none
        """

    def asdict(self) -> dict[str, int]:
        """The constants by name."""

    def replace(self, **changes: int) -> TileOptions:
        """A copy with some constants changed."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[type[TileOptions], tuple[int, ...]]: ...

class PackParams:
    """The constants of the packed (CPU) kernel."""

    def __init__(self, mr: int = 6, nv: int = 4, kc: int = 512, mc: int = 0, nc: int = 2048, pack: int = 2) -> None: ...

    @property
    def mr(self) -> int:
        """rows of the micro-kernel"""

    @property
    def nv(self) -> int:
        """vectors of the micro-kernel's row"""

    @property
    def kc(self) -> int:
        """depth of a packed block of B"""

    @property
    def mc(self) -> int:
        """rows of A a core walks before the next block of B, 0: all of its rows"""

    @property
    def nc(self) -> int:
        """columns of a packed block of B"""

    @property
    def pack(self) -> int:
        """0: B read in place, 1: packed before use, 2: packed on the way"""

    def asdict(self) -> dict[str, int]:
        """The constants by name."""

    def replace(self, **changes: int) -> PackParams:
        """A copy with some constants changed."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[type[PackParams], tuple[int, ...]]: ...

class Device:
    """
    What matters of a device for a matrix product. Sizes are in bytes; 0 means unknown.
    """

    @property
    def name(self) -> str: ...

    @property
    def vendor(self) -> str: ...

    @property
    def platform(self) -> str: ...

    @property
    def backend(self) -> str:
        """opencl, level_zero, cuda or hip"""

    @property
    def type(self) -> str:
        """cpu, gpu or accelerator"""

    @property
    def selector(self) -> str:
        """what to pass as `device=`"""

    @property
    def driver_version(self) -> str: ...

    @property
    def architecture(self) -> str:
        """tuning family"""

    @property
    def fingerprint(self) -> str:
        """stable identity of this model of device"""

    @property
    def compute_units(self) -> int: ...

    @property
    def max_work_group_size(self) -> int: ...

    @property
    def local_memory(self) -> int: ...

    @property
    def global_memory(self) -> int: ...

    @property
    def max_allocation(self) -> int: ...

    @property
    def vector_width(self) -> int:
        """float32 elements of the native or preferred vector"""

    @property
    def has_bfloat16_dots(self) -> bool:
        """a processor with AVX512_BF16"""

    @property
    def sub_group_sizes(self) -> list[int]: ...

    @property
    def l1_cache(self) -> int: ...

    @property
    def l2_cache(self) -> int: ...

    @property
    def l3_cache(self) -> int: ...

    @property
    def clock_mhz(self) -> int: ...

    @property
    def has_fp64(self) -> bool: ...

    @property
    def has_fp16(self) -> bool: ...

    @property
    def usm_device(self) -> bool: ...

    @property
    def usm_host(self) -> bool: ...

    @property
    def usm_shared(self) -> bool: ...

    @property
    def usm_system(self) -> bool:
        """ordinary arrays go to kernels as they are"""

    @property
    def unified_memory(self) -> bool:
        """the device shares the host's physical memory"""

    def __repr__(self) -> str: ...

class Kernel:
    """A kernel that `kernel=` can force."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def params(self) -> str:
        """the constants it has: none, tile or pack"""

    def __repr__(self) -> str: ...

def devices() -> list[Device]:
    """
    Every SYCL device that ONEAPI_DEVICE_SELECTOR lets through, GPUs first. Empty: none was found.
    """

def kernels() -> list[Kernel]:
    """
    Every kernel, in the order of the lessons; each can be forced by `kernel=name`.
    """

def last_kernel() -> str:
    """
    Name of the kernel that this thread's last product ran; empty before the first.
    """

def set_default_device(device: Device | str | None) -> None:
    """
    Which device `device=None` means from now on. Raises DeviceError, and changes nothing, where there is no such device.
    """

def set_num_threads(count: int, device: Device | str | None = None) -> None:
    """
    How many of a CPU device's cores a product is shared among; 0: all. Raises UnsupportedError on other devices.
    """

def get_num_threads(device: Device | str | None = None) -> int:
    """How many cores (or compute units) a product is shared among."""

def current_device(device: Device | str | None = None) -> Device:
    """The device that a product with this `device=` runs on."""

class Memory:
    """What keeps the memory of an array."""

class ArrayBase:
    pass

def allocate(shape: tuple[int, ...], dtype: Any, device: Device | str | None, memory: str) -> NDArray[Any]:
    """An uninitialised ndarray in memory of the device."""

def wrap(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: Any, device: Device | str | None, owner: object, writeable: bool) -> NDArray[Any]:
    """An ndarray over somebody else's memory. Strides in bytes."""

def copy(dst: NDArray[Any], src: NDArray[Any], device: Device | str | None) -> None:
    """
    dst ← src, in the order of the device's queue; host memory is free for use afterwards.
    """

def memory_kind(array: NDArray[Any], device: Device | str | None) -> str:
    """
    'device', 'shared', 'host'; 'system': ordinary memory, or another device's.
    """

def host_reachable(array: NDArray[Any], device: Device | str | None) -> bool:
    """Whether the processor may read and write there."""

def shown(array: NDArray[Any]) -> None:
    """
    Others can see this memory from now on: products that use it are waited for.
    """

def adopt(array: NDArray[Any], device: Device | str | None) -> None:
    """
    Work of this device may use the array's memory: it is not given back before.
    """

def wait(device: Device | str | None) -> None:
    """
    Blocks until everything that was submitted to the device has run. Raises DeviceError.
    """

def dlpack_device(device: Device | str | None) -> tuple[int, int]:
    """
    (1, 0) for the processor, whose memory every library reads; (2, number) for CUDA's devices, (10, number) for ROCm's; (14, position among SYCL's devices) for others
    """

def to_dlpack(array: NDArray[Any], device: tuple[int, int], versioned: bool, copied: bool) -> Any:
    """A DLPack capsule of the array's memory."""

def from_dlpack(capsule: Any, device: Device | str | None) -> NDArray[Any]:
    """An ndarray over the tensor's memory; `device`: whose queue may use it."""

def device_filter(device: Device | str | None) -> str:
    """The device's name as dpctl has it."""

def device_of_pointer(pointer: int) -> Device | None:
    """The device whose memory a pointer leads to; None for ordinary memory."""

class Pending:
    def wait(self) -> None: ...

    def done(self) -> bool: ...

def product(a: object, b: object, c: object, out: object, alpha: float, beta: float, bias: object, bias_axis: int, activation: str, device: Device | str | None, kernel: object, params: object, backend: object, precision: object, max_device_memory: int | None, wait: bool = True) -> Pending | None: ...

def explain_product(a: object, b: object, c: object | None, out: object, alpha: float, beta: float, bias: object | None, bias_axis: int, activation: str, device: object | None, kernel: object | None, params: object | None, backend: object | None, precision: object | None, max_device_memory: object | None) -> dict[str, Any]: ...

def matmul(
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
) -> Any:
    """
    The matrix product of two arrays, with the semantics of numpy.matmul.

    a, b: array-likes of one or two dimensions, or stacks of matrices (…, M, K) and (…, K, N) whose leading axes broadcast.
        float32, float64, float16, bfloat16 (ml_dtypes); int8 × int8 gives int32; mixed types promote as in NumPy.
        Never modified; strided and transposed views are read in place where one axis has unit stride.
    out: array for the result, of any strides; may overlap an input.
    device: a selector ('cpu', 'gpu', 'gpu:1', 'level_zero:0') or one of devices(); None: the default device.
    kernel: force a kernel by name, see kernels().
    params: force its constants: TileParams, (TileParams, TileOptions) or PackParams.
    backend: 'sycl' (default), 'onemkl', or 'auto'.
    precision: None, 'highest' (never below IEEE arithmetic of the accumulator), 'tf32'.
    max_device_memory: bytes that operands and copies of them may take on a device with memory of its own; larger ones are streamed in blocks.
    transpose_a, transpose_b: multiply by the transpose of the last two axes; costs no copy.

    Returns a new C-ordered array (a scalar for two vectors), or out.
    Raises DimensionError, SizeError (both ValueError and RuntimeError), UnsupportedError (TypeError), ParamsError (ValueError),
    DeviceError, CompileError, MemoryError.
    """

def cache_folder() -> str:
    """The folder of the disk cache of compiled kernels. May not exist."""

def tune(problems: list[Any], device: object | None, progress: object | None, budget: float, kernels: Sequence[str], strategy: str, seed: int, write: bool, file: str, resume: bool, record_sweep: str, most_evaluations: int, restrict: dict[str, Any]) -> dict[str, Any]: ...

def try_params(problem: object, params: object | None, kernel: str, device: object | None) -> dict[str, Any]: ...

def roofline(device: object | None, dtype: str) -> dict[str, Any]: ...

def bound(problem: object, device: object | None) -> dict[str, Any]: ...

def fma_peak(device: Device | str | None, dtype: str, flops: float = 0.0) -> float:
    """
    The device's rate of multiply-adds in GFLOP/s, measured now; with `flops` that of one launch of about so many operations.
    """

def representative_problems(device: object | None) -> list[Any]: ...

def user_tuning_file() -> str: ...

def tuning_journal() -> str: ...

def shipped_tuning_files() -> list[str]: ...

def tuning_file_name(fingerprint: str) -> str: ...

def read_tuning_file(file: str) -> dict[str, Any]: ...

def merge_tuning_file(from_file: str, into: str) -> tuple[Any, ...]: ...

def export_tuning(files: Sequence[str], fingerprint: str) -> str: ...

def clear_tuning(file: str, fingerprint: str, kernel: str) -> int: ...

def untuned_choice(problem: object, device: object | None, shipped: bool) -> object:
    """
    Kernel and constants without the user's records, with or without the shipped ones.
    """

def tuned_for(problem: object, device: object | None, kernel: str) -> object: ...

def replay(file: str, strategy: str, seed: int, batch: int, most: int, use_model: bool) -> tuple[Any, ...]: ...
