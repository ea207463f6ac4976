"""Arrays on a device: what they are, their views, products, order, and the exchange with other libraries."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sycl_mat
from oracle import assert_product, small_integers
from sycl_mat import _array

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
MEMORY = ["device", "shared", "host"]


@pytest.fixture
def values(random: np.random.Generator) -> Any:
    return random.random((40, 30), np.float32)


class TestAttributes:
    @pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int32])
    def test_those_of_numpy(self, dtype: Any, random: np.random.Generator) -> None:
        source = small_integers(random, (4, 3, 5), dtype)
        array = sycl_mat.asarray(source)
        for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
            assert getattr(array, name) == getattr(source, name), name
        assert len(array) == 4
        assert array.T.shape == (5, 3, 4)
        assert array.mT.shape == (4, 5, 3)
        assert array.device.selector == sycl_mat.devices()[0].selector
        np.testing.assert_array_equal(array.numpy(), source)

    @pytest.mark.parametrize("memory", MEMORY)
    def test_memory(self, memory: Any, values: Any) -> None:
        array = sycl_mat.asarray(values, memory=memory)
        assert array.memory == memory
        np.testing.assert_array_equal(array.numpy(), values)
        for word in ("(40, 30)", "float32", memory, array.device.selector):
            assert word in repr(array)

    def test_numpy_is_a_copy(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        array.numpy()[...] = 0
        values_before = values.copy()
        values[...] = 7
        np.testing.assert_array_equal(array.numpy(), values_before)

    def test_no_arithmetic(self, values: Any) -> None:
        array: Any = sycl_mat.asarray(values)
        for call in (lambda: array + array, lambda: values + array, lambda: np.add(array, values), lambda: bool(array), lambda: 2 * array):
            with pytest.raises(TypeError):
                call()

    def test_cannot_be_made_directly(self) -> None:
        with pytest.raises(TypeError, match="asarray"):
            sycl_mat.Array()

    @pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 0, 4)])
    def test_scalars_and_empty_ones(self, shape: tuple[int, ...]) -> None:
        array = sycl_mat.asarray(np.ones(shape, np.float32))
        assert array.shape == shape
        np.testing.assert_array_equal(array.numpy(), np.ones(shape, np.float32))
        if not shape:
            with pytest.raises(TypeError):
                len(array)


class TestViews:
    @pytest.mark.parametrize(
        "index",
        [
            3,
            -1,
            np.int64(2),
            slice(2, 9),
            slice(None, None, -1),
            slice(30, 2, -3),
            (slice(None), 4),
            (3, 5),
            (..., 2),
            (slice(1, 20, 2), slice(None, None, -2)),
            (None, 2),
            (..., None),
            slice(5, 5),
            (),
            ...,
        ],
    )
    def test_basic_indexing(self, index: Any, values: Any) -> None:
        array, expected = sycl_mat.asarray(values), np.asarray(values[index])
        view = array[index]
        assert isinstance(view, sycl_mat.Array)
        assert view.shape == expected.shape
        assert view.strides == expected.strides
        np.testing.assert_array_equal(view.numpy(), expected)

    @pytest.mark.parametrize("index", [[1, 2], np.array([1, 2]), np.array(1), np.ones(40, bool), True, 1.0, "a", (0, [1]), 40, (0, 0, 0)])
    def test_other_indices(self, index: Any, values: Any) -> None:
        if isinstance(index, np.ndarray) and index.ndim == 0:
            assert sycl_mat.asarray(values)[index].shape == (30,)
            return
        with pytest.raises(IndexError):
            sycl_mat.asarray(values)[index]

    def test_a_view_keeps_the_memory(self, values: Any) -> None:
        view = sycl_mat.asarray(values)[3:5].T
        gc.collect()
        others = [sycl_mat.asarray(np.zeros_like(values)) for _ in range(5)]
        np.testing.assert_array_equal(view.numpy(), values[3:5].T)
        del others

    def test_iteration(self, values: Any) -> None:
        rows = [row.numpy() for row in sycl_mat.asarray(values)]
        np.testing.assert_array_equal(np.array(rows), values)

    def test_copy_to(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        for out in (
            np.zeros((40, 30), np.float32),
            np.zeros((30, 40), np.float32).T,
            np.zeros((80, 90), np.float32)[::2, ::-3],
            np.zeros((40, 30)),
        ):
            assert array.copy_to(out) is out
            np.testing.assert_array_equal(out, values)
        swapped = np.zeros((40, 30), ">f4")
        array.copy_to(swapped)
        np.testing.assert_array_equal(swapped, values)
        store = sycl_mat.zeros((41, 60), memory="device")
        array.copy_to(store[1:, ::2])
        expected = np.zeros((41, 60), np.float32)
        expected[1:, ::2] = values
        np.testing.assert_array_equal(store.numpy(), expected)
        array.copy_to(array[::-1])
        np.testing.assert_array_equal(array.numpy(), values[::-1])

    def test_copy_to_what_does_not_fit(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        with pytest.raises(sycl_mat.SizeError, match="Size Error"):
            array.copy_to(np.zeros((30, 40), np.float32))
        with pytest.raises(sycl_mat.UnsupportedError, match="precision"):
            array.copy_to(np.zeros((40, 30), np.int32))
        frozen = np.zeros((40, 30), np.float32)
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            array.copy_to(frozen)


class TestCreation:
    @pytest.mark.parametrize("memory", ["shared", "host"])
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_numpy_arrays_in_shared_memory(self, memory: Any, dtype: Any, random: np.random.Generator) -> None:
        a = sycl_mat.empty((50, 60), dtype, memory=memory)
        assert type(a) is np.ndarray
        assert a.flags.c_contiguous
        assert a.flags.writeable
        assert a.ctypes.data % 64 == 0
        a[...] = small_integers(random, a.shape, dtype)
        b = small_integers(random, (60, 70), dtype)
        np.testing.assert_array_equal(sycl_mat.matmul(a, b).astype(float), a.astype(float) @ b.astype(float))

    @pytest.mark.parametrize("memory", ["shared", "host"])
    def test_views_of_shared_memory_are_not_copied(self, memory: Any) -> None:
        a, b, out = (sycl_mat.zeros((300, 300), memory=memory) for _ in range(3))
        for x, y in ((a, b), (a[1:, 2:], b[2:, 1:]), (a.T, b.T), (a[::-1], b[:, 5:])):
            n = min(x.shape[1], y.shape[0])
            explanation = sycl_mat.explain(x[:, :n], y[:n], out=out[: x.shape[0], : y.shape[1]], kernel="packed")
            assert explanation.memory == "zero copy"

    def test_zeros_and_full(self) -> None:
        for memory in MEMORY:
            zeros, full = sycl_mat.zeros((3, 4), memory=memory), sycl_mat.full(5, 2.5, memory=memory)  # type: ignore[arg-type]
            assert isinstance(zeros, sycl_mat.Array) == (memory == "device")
            for array in (zeros, full):
                assert array.dtype == np.float32
            if memory == "device":
                zeros, full = zeros.numpy(), full.numpy()
            np.testing.assert_array_equal(zeros, np.zeros((3, 4)))
            np.testing.assert_array_equal(full, np.full(5, 2.5))
        assert sycl_mat.full(3, np.float64(1)).dtype == np.float64

    def test_asarray_takes_what_numpy_takes(self, values: Any) -> None:
        np.testing.assert_array_equal(sycl_mat.asarray([[1.0, 2.0]]).numpy(), [[1.0, 2.0]])
        np.testing.assert_array_equal(sycl_mat.asarray(values.astype(">f4")).numpy(), values)
        np.testing.assert_array_equal(sycl_mat.asarray(values[::-1, ::3].T).numpy(), values[::-1, ::3].T)
        np.testing.assert_array_equal(sycl_mat.asarray([[1, 2]], np.float32).numpy(), [[1, 2]])
        unaligned = np.zeros(values.nbytes + 2, np.uint8)[2:].view(np.float32).reshape(values.shape)
        unaligned[...] = values
        np.testing.assert_array_equal(sycl_mat.asarray(unaligned).numpy(), values)

    def test_asarray_of_an_array_is_itself(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        assert sycl_mat.asarray(array) is array
        assert sycl_mat.asarray(array, device=array.device) is array
        assert sycl_mat.asarray(array, memory="host").memory == "host"
        wide = sycl_mat.asarray(array, np.float64)
        assert wide.dtype == np.float64
        np.testing.assert_array_equal(wide.numpy(), values)

    def test_what_cannot_be_made(self) -> None:
        with pytest.raises(sycl_mat.UnsupportedError, match="int64"):
            sycl_mat.asarray(np.ones(3, np.int64))
        with pytest.raises(sycl_mat.UnsupportedError, match="complex64"):
            sycl_mat.empty(3, np.complex64)
        with pytest.raises(ValueError, match="memory"):
            sycl_mat.empty(3, memory="far")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="negative"):
            sycl_mat.empty((3, -1))
        with pytest.raises(sycl_mat.DeviceError):
            sycl_mat.empty(3, device="gpu:17")
        for shape in ((1 << 62, 8), (1 << 40, 1 << 10)):
            for memory in MEMORY:
                with pytest.raises(MemoryError):
                    sycl_mat.empty(shape, memory=memory)  # type: ignore[arg-type]

    def test_memory_is_given_back(self) -> None:
        kept = weakref.ref(sycl_mat.empty((1000, 1000)))
        gc.collect()
        assert kept() is None
        for _ in range(300):  # 12 GB, were it not
            sycl_mat.empty((3162, 3162), memory="device")


class TestProducts:
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("n", [4, 150])
    def test_matmul(self, dtype: Any, n: int, random: np.random.Generator) -> None:
        a, b = random.standard_normal((n, n + 3)).astype(dtype), random.standard_normal((n + 3, n + 1)).astype(dtype)
        left, right = sycl_mat.asarray(a), sycl_mat.asarray(b)
        for product in (left @ right, left @ b, a @ right, sycl_mat.matmul(left, right), sycl_mat.gemm(left, right)):
            assert isinstance(product, sycl_mat.Array)
            assert product.dtype == dtype
            assert_product(product.numpy(), a, b)

    @pytest.mark.parametrize("n", [5, 120])
    def test_views_and_stacks(self, n: int, random: np.random.Generator) -> None:
        a = random.random((3, n, n), np.float32)
        array = sycl_mat.asarray(a)
        assert_product((array @ array.mT).numpy(), a, a.swapaxes(1, 2))
        assert_product((array[:, ::-1] @ array[0]).numpy(), a[:, ::-1], a[0])
        assert_product((array[1, ::2, 1:] @ array[2, 1:, ::-2]).numpy(), a[1, ::2, 1:], a[2, 1:, ::-2])
        assert_product((array[0] @ array[1, 2]).numpy(), a[0], a[1, 2])
        assert_product((array[0, 1] @ array[1, 2]).numpy(), a[0, 1], a[1, 2])

    @pytest.mark.parametrize("n", [5, 120])
    def test_out(self, n: int, random: np.random.Generator) -> None:
        a, b = random.random((n, n), np.float32), random.random((n, n), np.float32)
        left, right = sycl_mat.asarray(a), sycl_mat.asarray(b)
        out = np.zeros((n, n), np.float32)
        assert sycl_mat.matmul(left, right, out=out) is out
        assert_product(out, a, b)
        store = sycl_mat.zeros((2 * n, 3 * n), memory="device")
        for target in (store[:n, :n], store[:n, :n].T, store[::2, ::3], store[n - 1 :: -1, :n]):
            assert sycl_mat.matmul(a, right, out=target) is target
            assert_product(target.numpy(), a, b)
        assert sycl_mat.matmul(left, right, out=left) is left  # overlaps an operand
        assert_product(left.numpy(), a, b)
        wide = sycl_mat.empty((n, n), np.float64, memory="device")
        sycl_mat.matmul(sycl_mat.asarray(a), right, out=wide)
        assert_product(wide.numpy().astype(np.float32), a, b)
        with pytest.raises(sycl_mat.SizeError):
            sycl_mat.matmul(left, right, out=store)

    @pytest.mark.parametrize("n", [5, 120])
    def test_gemm(self, n: int, random: np.random.Generator) -> None:
        a, b, c = (random.random((n, n), np.float32) for _ in range(3))
        column, row = random.random(n, np.float32), random.random((n, 1), np.float32)
        left, right, add = (sycl_mat.asarray(x) for x in (a, b, c))
        expected = 2 * a.astype(float) @ b - 3 * c.astype(float)
        for bias in (column, row):
            for given in (bias, sycl_mat.asarray(bias), sycl_mat.asarray(bias.astype(np.float64))):
                product = sycl_mat.gemm(left, right, add, alpha=2, beta=-3, bias=given, activation="relu")
                np.testing.assert_allclose(product.numpy(), np.maximum(expected + bias, 0), rtol=1e-4, atol=1e-4)
        nothing = sycl_mat.full((n, n), np.nan, np.float32, memory="device")
        np.testing.assert_allclose(sycl_mat.gemm(left, right, nothing).numpy(), a @ b, rtol=1e-4)
        assert sycl_mat.gemm(left, right, add, beta=1, out=add) is add
        np.testing.assert_allclose(add.numpy(), a.astype(float) @ b + c, rtol=1e-5)

    def test_mixed_types_promote(self, values: Any) -> None:
        narrow, wide = sycl_mat.asarray(values), sycl_mat.asarray(values.T.astype(np.float64))
        product = narrow @ wide
        assert product.dtype == np.float64
        np.testing.assert_allclose(product.numpy(), values.astype(float) @ values.T)

    def test_chains_stay_on_the_device_and_in_order(self, random: np.random.Generator) -> None:
        a = random.integers(-1, 2, (200, 200)).astype(np.float32)
        array, expected = sycl_mat.asarray(a), a.astype(np.float64)
        product = array
        for _ in range(3):  # temporaries are freed while products that read them are under way
            product = (product @ array) @ sycl_mat.asarray(np.eye(200, dtype=np.float32))
            expected = expected @ a
        np.testing.assert_array_equal(product.numpy(), expected)

    def test_an_operand_is_overwritten_after_the_product_that_reads_it(self, random: np.random.Generator) -> None:
        a = random.random((300, 300), np.float32)
        array, one = sycl_mat.asarray(a), sycl_mat.asarray(np.ones_like(a))
        products = []
        for _ in range(5):
            products.append(array @ one)
            one.copy_to(array)
            sycl_mat.asarray(a).copy_to(array)
        for product in products:
            assert_product(product.numpy(), a, np.ones_like(a))

    def test_what_others_see_is_waited_for(self, random: np.random.Generator) -> None:
        a = random.random((400, 400), np.float32)
        array = sycl_mat.asarray(a)
        out = sycl_mat.zeros((400, 400), memory="device")
        if not array.device.unified_memory:
            pytest.skip("the processor does not see this memory")
        seen = np.asarray(out)
        for factor in range(1, 20):
            sycl_mat.gemm(array, array, alpha=factor, out=out)
            np.testing.assert_allclose(seen, factor * (a @ a), rtol=1e-4)

    def test_explain(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        explanation = sycl_mat.explain(array, array.T, kernel="tiled")
        assert explanation.kernel == "tiled"
        assert explanation.memory == "zero copy"

    def test_operands_on_different_devices(self, values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        here = sycl_mat.asarray(values)

        class Elsewhere:
            selector = "gpu:3"

        there = sycl_mat.Array._over(here._view, Elsewhere())  # type: ignore[arg-type]
        with pytest.raises(sycl_mat.InputError, match=r"different devices.*gpu:3"):
            here @ there.T

    def test_dimensions(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        with pytest.raises(sycl_mat.SizeError, match="Size Error"):
            array @ array
        with pytest.raises(sycl_mat.DimensionError, match="Dimension Error"):
            array @ 2.0

    def test_wait_returns_the_array(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        assert (array @ array.T).wait().shape == (40, 40)


class TestEvents:
    @pytest.mark.parametrize("n", [4, 300])
    def test_numpy_arrays(self, n: int, random: np.random.Generator) -> None:
        a = random.random((n, n), np.float32)
        event = sycl_mat.gemm(a, a, wait=False)
        assert isinstance(event, sycl_mat.Event)
        assert_product(event.wait(), a, a)
        assert event.done()
        assert "done" in repr(event)
        out = np.zeros((n, n))
        event = sycl_mat.gemm(a, a, out=out, wait=False)
        assert event.wait() is out
        assert event.wait() is out
        assert_product(out.astype(np.float32), a, a)

    def test_arrays(self, random: np.random.Generator) -> None:
        a = random.random((300, 300), np.float32)
        event = sycl_mat.gemm(sycl_mat.asarray(a), a, wait=False)
        assert_product(event.wait().numpy(), a, a)

    def test_operands_dropped_while_a_product_is_under_way(self, random: np.random.Generator) -> None:
        a = random.integers(-2, 3, (500, 500)).astype(np.float32)
        expected = a @ a
        for kind in ("numpy", "device", "host", "shared"):
            events = []
            for _ in range(4):
                left = a.copy() if kind == "numpy" else sycl_mat.asarray(a, memory=kind)  # type: ignore[arg-type]
                right = a.copy() if kind == "numpy" else sycl_mat.asarray(a, memory=kind)  # type: ignore[arg-type]
                events.append(sycl_mat.gemm(left, right, wait=False))
                del left, right
                gc.collect()
                np.full((500, 500), np.nan, np.float32)
                sycl_mat.full((500, 500), np.nan, np.float32, memory="host")
                sycl_mat.full((500, 500), np.nan, np.float32, memory="device")
            for event in events:
                result = event.wait()
                np.testing.assert_array_equal(result if kind == "numpy" else result.numpy(), expected)

    def test_events_that_nobody_waits_for(self, random: np.random.Generator) -> None:
        a = random.random((300, 300), np.float32)
        out = np.zeros((300, 300), np.float32)
        sycl_mat.gemm(a, a, out=out, wait=False)  # the event is dropped: its operands live until it is done
        sycl_mat.asarray(a).wait()
        assert_product(out, a, a)


class _Dlpack:
    """A library that has DLPack and nothing else, as old or new as `versions`."""

    def __init__(self, array: Any, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **rest: Any) -> Any:
        if not self.versioned and rest:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**rest)


#: As any operand: static types know nothing of libraries that only have a protocol.
Dlpack: Any = _Dlpack


class TestDlpack:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int32])
    def test_to_numpy_without_a_copy(self, dtype: Any, random: np.random.Generator) -> None:
        source = small_integers(random, (6, 5), dtype)
        array = sycl_mat.asarray(source)
        if array.__dlpack_device__()[0] != 1:
            pytest.skip("not the processor")
        seen = np.from_dlpack(array[::2, ::-1].T)
        np.testing.assert_array_equal(seen, source[::2, ::-1].T)
        assert seen.ctypes.data == array[::2, ::-1].__array__().ctypes.data
        del array
        gc.collect()
        np.testing.assert_array_equal(seen, source[::2, ::-1].T)

    def test_a_product_under_way_is_waited_for(self, random: np.random.Generator) -> None:
        a = random.random((700, 700), np.float32)
        array = sycl_mat.asarray(a)
        for _ in range(3):
            assert_product(np.asarray(array @ array), a, a)
            assert_product(sycl_mat.from_dlpack(Dlpack(array @ array)).numpy(), a, a)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("versioned", [True, False])
    def test_between_arrays(self, dtype: Any, versioned: bool, random: np.random.Generator) -> None:
        source = small_integers(random, (6, 5), dtype)
        array = sycl_mat.asarray(source)
        other = sycl_mat.from_dlpack(Dlpack(array.T, versioned))
        assert other.dtype == dtype
        assert other._view.ctypes.data == array._view.ctypes.data
        np.testing.assert_array_equal(other.numpy(), source.T)
        copied = sycl_mat.from_dlpack(Dlpack(array, versioned), copy=True)
        assert copied._view.ctypes.data != array._view.ctypes.data
        np.testing.assert_array_equal(copied.numpy(), source)

    @pytest.mark.parametrize("kind", [2, 10, 13, 14])
    def test_memory_of_a_gpu_is_known_by_its_pointer(self, kind: int, random: np.random.Generator) -> None:
        a = random.random((40, 30), np.float32)
        array = sycl_mat.asarray(a)

        class OnGpu(_Dlpack):
            waited = 0

            def __dlpack_device__(self) -> Any:
                return kind, 0

            def block_until_ready(self) -> None:
                self.waited += 1

        source: Any = OnGpu(array)
        other = sycl_mat.from_dlpack(source)
        assert other._view.ctypes.data == array._view.ctypes.data
        assert other.device.selector == array.device.selector
        assert source.waited == 1
        product = sycl_mat.matmul(Dlpack(array), array.T)
        assert_product(sycl_mat.matmul(source, array.T).numpy(), a, a.T)
        np.testing.assert_array_equal(np.asarray(product), sycl_mat.matmul(source, array.T).numpy())
        assert source.waited == 3

    def test_memory_of_a_gpu_that_nobody_knows(self, values: Any) -> None:
        class Elsewhere(_Dlpack):
            def __dlpack_device__(self) -> Any:
                return 2, 0

        with pytest.raises(sycl_mat.UnsupportedError, match="belongs to"):
            sycl_mat.from_dlpack(Elsewhere(values))

    def test_numbers_of_memory(self) -> None:
        assert [_array.dlpack_kind(2, memory) for memory in ("device", "shared", "host", "system")] == [2, 13, 3, 1]
        assert [_array.dlpack_kind(10, memory) for memory in ("device", "host")] == [10, 11]
        assert {_array.dlpack_kind(14, memory) for memory in ("device", "shared", "host")} == {14}
        assert _array.dlpack_kind(1, "shared") == 1

    def test_from_numpy_without_a_copy(self, values: Any) -> None:
        array = sycl_mat.from_dlpack(values)
        if not array.device.usm_system:
            pytest.skip("the device does not read ordinary memory")
        assert array.memory == "system"
        values[0, 0] = 7
        assert array.numpy()[0, 0] == 7
        assert_product((array @ array.T).numpy(), values, values.T)

    def test_read_only(self, values: Any) -> None:
        values.flags.writeable = False
        try:
            array = sycl_mat.from_dlpack(values)
        except BufferError:
            pytest.skip("this NumPy exports no read-only arrays")
        with pytest.raises(ValueError, match="read-only"):
            sycl_mat.matmul(array, array.T[:, :30], out=array)
        with pytest.raises(BufferError):
            array.__dlpack__()
        array.__dlpack__(max_version=(1, 0))

    @pytest.mark.parametrize("n", [4, 90])
    def test_operands_of_products(self, n: int, random: np.random.Generator) -> None:
        for dtype in FLOATS:
            a = random.standard_normal((n, n)).astype(dtype)
            source = a if dtype is not ml_dtypes.bfloat16 else sycl_mat.asarray(a)
            product = sycl_mat.matmul(Dlpack(source), Dlpack(source, versioned=False))
            assert type(product) is np.ndarray
            assert_product(product, a, a)
        b = random.random((n, n), np.float32)
        assert_product(sycl_mat.gemm(Dlpack(b), b), b, b)

    def test_capsules_that_nobody_takes(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        kept = weakref.ref(array._view)
        for _ in range(3):
            array.__dlpack__()
            array.__dlpack__(max_version=(1, 0))
        del array
        gc.collect()
        assert kept() is None

    def test_keywords(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        kind = array.__dlpack_device__()[0]
        assert kind == (1 if array.device.type == "cpu" else 14)
        array.__dlpack__(stream=None, max_version=(1, 1), dl_device=array.__dlpack_device__(), copy=True)
        array.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError):
            array.__dlpack__(dl_device=(2, 0))

    def test_types_and_devices_that_are_not_ours(self) -> None:
        with pytest.raises(sycl_mat.UnsupportedError, match="int64"):
            sycl_mat.from_dlpack(np.ones(3, np.int64))

        class OpenCl:
            def __dlpack_device__(self) -> tuple[int, int]:
                return 4, 0

            def __dlpack__(self, **rest: Any) -> Any:
                raise AssertionError

        with pytest.raises(BufferError, match="device type 4"):
            sycl_mat.from_dlpack(OpenCl())

    def test_torch(self, values: Any) -> None:
        torch = pytest.importorskip("torch")
        tensor = torch.from_numpy(values)
        assert_product(sycl_mat.matmul(tensor, tensor.T), values, values.T)
        back = torch.from_dlpack(sycl_mat.asarray(values) @ sycl_mat.asarray(values.T))
        assert_product(back.numpy(), values, values.T)
        half = tensor.to(torch.bfloat16)
        assert sycl_mat.matmul(half, half.T).dtype == ml_dtypes.bfloat16

    def test_jax(self, values: Any) -> None:
        jax = pytest.importorskip("jax")
        x = jax.numpy.asarray(values)
        assert_product(sycl_mat.matmul(x, x.T), values, values.T)
        back = jax.dlpack.from_dlpack(sycl_mat.asarray(values) @ sycl_mat.asarray(values.T))
        assert_product(np.asarray(back), values, values.T)
        half = x.astype(jax.numpy.bfloat16)
        assert sycl_mat.matmul(half, half.T).dtype == ml_dtypes.bfloat16


class _Usm:
    """What dpctl's arrays show of themselves."""

    def __init__(self, array: sycl_mat.Array, **changes: Any) -> None:
        self.array = array
        self.changes = changes

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__sycl_usm_array_interface__, **self.changes}


Usm: Any = _Usm


class TestUsmArrayInterface:
    def test_out(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        interface = array[::2, 1:].__sycl_usm_array_interface__
        assert interface["data"] == (array._view[::2, 1:].ctypes.data, False)
        assert interface["shape"] == (20, 29)
        assert interface["strides"] == (60, 1)
        assert interface["typestr"] == "<f4"
        assert interface["version"] == 1
        assert interface["offset"] == 0
        assert interface["syclobj"].split(":")[1:] == [array.device.type, "0"]
        assert array.__sycl_usm_array_interface__["strides"] is None

    def test_absent_where_it_cannot_be(self, values: Any) -> None:
        assert not hasattr(sycl_mat.asarray(values.astype(ml_dtypes.bfloat16)), "__sycl_usm_array_interface__")

    @pytest.mark.parametrize("memory", MEMORY)
    def test_in(self, memory: Any, values: Any) -> None:
        array = sycl_mat.asarray(values, memory=memory)
        product = sycl_mat.matmul(Usm(array), Usm(array[5:20, ::-1].T))
        assert isinstance(product, sycl_mat.Array)
        assert_product(product.numpy(), values, values[5:20, ::-1].T)
        taken = sycl_mat.asarray(Usm(array))
        assert taken._view.ctypes.data == array._view.ctypes.data

    def test_offset_and_strides_count_elements(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        view = sycl_mat.asarray(Usm(array, shape=(7, 5), strides=(60, -2), offset=42))
        np.testing.assert_array_equal(view.numpy(), np.lib.stride_tricks.as_strided(values.reshape(-1)[42:], (7, 5), (240, -8)))

    def test_read_only(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        frozen = sycl_mat.asarray(Usm(array, data=(array._view.ctypes.data, True)))
        with pytest.raises(ValueError, match="read-only"):
            array.copy_to(frozen)

    def test_the_other_queue_is_waited_for(self, values: Any) -> None:
        waits = []

        class Queue:
            def wait(self) -> None:
                waits.append(1)

        array = sycl_mat.asarray(values)
        sycl_mat.asarray(Usm(array, syclobj=Queue()))
        assert waits == [1]

    def test_memory_of_another_runtime(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        with pytest.raises(sycl_mat.UnsupportedError, match="context"):
            sycl_mat.asarray(Usm(array, data=(values.ctypes.data, False)))

    def test_dpctl(self, values: Any) -> None:
        memory = pytest.importorskip("dpctl.memory")
        dpctl = pytest.importorskip("dpctl")
        array = sycl_mat.asarray(values)
        theirs = memory.as_usm_memory(array)
        content = np.empty(theirs.nbytes, np.uint8)
        theirs.copy_to_host(content)
        np.testing.assert_array_equal(content.view(np.float32).reshape(values.shape), values)
        block = memory.MemoryUSMDevice(values.nbytes, queue=dpctl.SyclQueue(array.__sycl_usm_array_interface__["syclobj"]))
        block.copy_from_host(values.reshape(-1).view(np.uint8))

        class Typed:
            def __init__(self) -> None:
                self.__sycl_usm_array_interface__ = {**block.__sycl_usm_array_interface__, "typestr": "<f4", "shape": values.shape}

        operand: Any = Typed()
        product = sycl_mat.matmul(operand, array.T)
        assert isinstance(product, sycl_mat.Array)
        assert_product(product.numpy(), values, values.T)

    def test_keeps_its_source(self, values: Any) -> None:
        source = Usm(sycl_mat.asarray(values))
        kept = weakref.ref(source)
        array = sycl_mat.asarray(source)
        del source
        gc.collect()
        assert kept() is not None
        np.testing.assert_array_equal(array.numpy(), values)
        del array
        gc.collect()
        assert kept() is None


class TestBuffers:
    def test_the_buffer_protocol(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        if not array.device.unified_memory:
            with pytest.raises(BufferError):
                memoryview(array)  # type: ignore[arg-type]
            return
        view = memoryview(array.T)  # type: ignore[arg-type]
        assert view.shape == (30, 40)
        assert view.format == "f"
        assert view[3, 5] == values[5, 3]
        del array
        gc.collect()
        assert view[3, 5] == values[5, 3]

    def test_asarray_of_numpy(self, values: Any) -> None:
        array = sycl_mat.asarray(values)
        assert_product(np.asarray(array @ array.T), values, values.T)
        np.testing.assert_array_equal(np.array(array, np.float64), values)
        np.testing.assert_array_equal(array.__array__(np.float64), values)
        assert not np.shares_memory(array.__array__(copy=True), array._view)
        with pytest.raises(ValueError, match="copy"):
            array.__array__(np.float64, copy=False)
        half = sycl_mat.asarray(values.astype(ml_dtypes.bfloat16))
        np.testing.assert_array_equal(np.asarray(half), values.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    "changes",
    [{"strides": (0,)}, {"strides": ()}, {"shape": (-1, 3)}, {"shape": "x"}, {"data": (None, False)}, {"data": ()}, {"offset": 1.5}],
    ids=str,
)
def test_a_malformed_usm_interface_is_refused(values: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(sycl_mat.InputError):
        sycl_mat.asarray(Usm(sycl_mat.asarray(values), **changes))


@pytest.mark.parametrize("typestr", ["|O", "<c8", ">f4"])
def test_a_usm_interface_of_a_type_without_kernels_is_refused(values: Any, typestr: str) -> None:
    with pytest.raises(sycl_mat.UnsupportedError):
        sycl_mat.asarray(Usm(sycl_mat.asarray(values), typestr=typestr))
