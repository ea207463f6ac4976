"""matmul against NumPy: shapes, strides, dtypes, out, and what NumPy does with unusual operands."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sycl_mat
from oracle import assert_product, small_integers

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SIZES = [0, 1, 2, 3, 7, 16, 17, 31, 64, 65]


@pytest.mark.parametrize(("m", "n", "k"), [*itertools.product([1, 2, 5, 33], repeat=3), (127, 257, 61), (300, 1, 300), (1, 300, 7)])
def test_products_of_small_integers_are_exact(m: int, n: int, k: int, random: np.random.Generator) -> None:
    a, b = small_integers(random, (m, k), np.float32), small_integers(random, (k, n), np.float32)
    c = sycl_mat.matmul(a, b)
    assert c.dtype == np.float32
    assert c.flags.c_contiguous
    assert c.flags.owndata
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 4, 5), (64, 64, 64), (130, 67, 258), (1, 100, 1000), (500, 300, 1), (40, 40, 5000)])
def test_error_is_within_the_bound(dtype: Any, shape: tuple[int, int, int], random: np.random.Generator) -> None:
    m, n, k = shape
    a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    c = sycl_mat.matmul(a, b)
    assert c.dtype == dtype
    assert_product(c, a, b)


@pytest.mark.parametrize("shape", [(3, 4, 5), (65, 130, 200)])
def test_int8_gives_int32(shape: tuple[int, int, int], random: np.random.Generator) -> None:
    m, n, k = shape
    a, b = random.integers(-128, 128, (m, k), np.int8), random.integers(-128, 128, (k, n), np.int8)
    c = sycl_mat.matmul(a, b)
    assert c.dtype == np.int32
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((2, 1, 1, 2, 3), (3, 4, 3, 4)),
        ((0, 2, 3), (3, 4)),
        ((5, 0, 3), (3, 4)),
        ((5, 2, 0), (0, 4)),
        ((2, 0), (0,)),
        ((0,), (0,)),
        ((1, 2, 3, 4, 5, 6), (2, 1, 1, 6, 7)),
        ((40, 30, 20), (40, 20, 10)),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_shapes_of_numpy(left: tuple[int, ...], right: tuple[int, ...], dtype: Any, random: np.random.Generator) -> None:
    a, b = small_integers(random, left, dtype), small_integers(random, right, dtype)
    mine, theirs = sycl_mat.matmul(a, b), np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
    assert np.shape(mine) == np.shape(theirs)
    assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(mine, theirs)


def views(array: np.ndarray[Any, Any], how: int) -> np.ndarray[Any, Any]:
    """The same values laid out in another way."""
    rows, cols = array.shape[-2:]
    if how == 0:
        return array
    if how == 1:
        return np.asfortranarray(array)
    big = np.full((*array.shape[:-2], 2 * rows + 3, 3 * cols + 2), np.nan, array.dtype)
    if how == 2:
        view = big[..., 1 : rows + 1, 2 : cols + 2]
    elif how == 3:
        view = big[..., 1 : 2 * rows + 1 : 2, 1 : 3 * cols + 1 : 3]
    elif how == 4:
        view = big[..., rows::-1, cols::-1][..., :rows, :cols]
    else:
        view = big.swapaxes(-1, -2)[..., :rows, :cols] if 3 * cols + 2 >= rows and 2 * rows + 3 >= cols else big[..., :rows, :cols]
    view[...] = array
    return view


@given(
    m=st.sampled_from(SIZES),
    n=st.sampled_from(SIZES),
    k=st.sampled_from(SIZES),
    batch=st.sampled_from([(), (1,), (3,), (2, 3)]),
    layouts=st.tuples(*[st.integers(0, 5)] * 3),
    dtype=st.sampled_from(FLOATS),
    with_out=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_shape_and_stride(
    m: int, n: int, k: int, batch: tuple[int, ...], layouts: tuple[int, int, int], dtype: Any, with_out: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    plain_a, plain_b = small_integers(random, (*batch, m, k), dtype), small_integers(random, (*batch, k, n), dtype)
    a, b = views(plain_a, layouts[0]), views(plain_b, layouts[1])
    expected = (plain_a.astype(np.float64) @ plain_b.astype(np.float64)).astype(dtype)
    if with_out:
        out = views(np.zeros((*batch, m, n), dtype), layouts[2])
        assert sycl_mat.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, expected)
    else:
        np.testing.assert_array_equal(sycl_mat.matmul(a, b), expected)
    np.testing.assert_array_equal(a, plain_a)
    np.testing.assert_array_equal(b, plain_b)


def test_writes_nothing_beside_out(random: np.random.Generator) -> None:
    a, b = random.random((37, 29), np.float32), random.random((29, 41), np.float32)
    for row_step, col_step in [(1, 1), (2, 1), (1, 3), (-1, 1), (1, -1)]:
        frame = np.full((100, 150), 123.0, np.float32)
        window = frame[20:95, 10:140][:: abs(row_step), :: abs(col_step)][:37, :41]
        window = window[:: 1 if row_step > 0 else -1, :: 1 if col_step > 0 else -1]
        sycl_mat.matmul(a, b, out=window)
        assert_product(window, a, b)
        window[...] = 123.0
        assert np.all(frame == 123.0)


@pytest.mark.parametrize("transposes", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("batch", [(), (3,)])
def test_transpose_flags(transposes: tuple[bool, bool], batch: tuple[int, ...], random: np.random.Generator) -> None:
    trans_a, trans_b = transposes
    a = random.random((*batch, 20, 30) if not trans_a else (*batch, 30, 20), np.float32)
    b = random.random((*batch, 30, 40) if not trans_b else (*batch, 40, 30), np.float32)
    c = sycl_mat.matmul(a, b, transpose_a=trans_a, transpose_b=trans_b)
    assert_product(c, a.swapaxes(-1, -2) if trans_a else a, b.swapaxes(-1, -2) if trans_b else b)


def test_broadcast_views_of_stride_zero(random: np.random.Generator) -> None:
    row = random.random(50, np.float32)
    a = np.broadcast_to(row, (40, 50))
    b = np.broadcast_to(random.random((50, 1), np.float32), (50, 30))
    assert_product(sycl_mat.matmul(a, b), np.array(a), np.array(b))


class TestConversions:
    def test_lists(self) -> None:
        c = sycl_mat.matmul([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]])
        assert c.dtype == np.float64
        np.testing.assert_array_equal(c, [[19, 22], [43, 50]])

    @pytest.mark.parametrize(
        ("left", "right", "result"),
        [
            (np.float32, np.float64, np.float64),
            (np.float16, np.float32, np.float32),
            (np.float32, np.int16, np.float32),
            (np.float32, np.int32, np.float64),
            (np.float64, np.bool_, np.float64),
            (np.int8, np.float16, np.float16),
            (ml_dtypes.bfloat16, np.float32, np.float32),
        ],
    )
    def test_mixed_types_promote_as_in_numpy(self, left: Any, right: Any, result: Any, random: np.random.Generator) -> None:
        a, b = random.integers(0, 2, (5, 6)).astype(left), random.integers(0, 2, (6, 7)).astype(right)
        c = sycl_mat.matmul(a, b)
        assert c.dtype == result
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))

    @pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.complex64, np.longdouble, np.int32, "U3", "datetime64[s]", object])
    def test_types_without_a_kernel(self, dtype: Any) -> None:
        a = np.ones((2, 2)).astype(dtype)
        with pytest.raises(TypeError):
            sycl_mat.matmul(a, a)

    def test_the_error_for_integers_says_what_to_do(self) -> None:
        with pytest.raises(sycl_mat.UnsupportedError, match=r"no kernel for int64.*astype"):
            sycl_mat.matmul([[1]], [[1]])

    def test_other_byte_order(self, random: np.random.Generator) -> None:
        a, b = random.random((9, 8), np.float32), random.random((8, 7), np.float32)
        c = sycl_mat.matmul(a.astype(">f4"), b)
        assert c.dtype.isnative
        assert_product(c, a, b)
        out = np.zeros((9, 7), ">f4")
        assert sycl_mat.matmul(a, b.astype(">f4"), out=out) is out
        assert_product(out.astype("=f4"), a, b)

    def test_unaligned(self, random: np.random.Generator) -> None:
        a, b = random.random((9, 8), np.float32), random.random((8, 7), np.float32)
        for offset in (1, 2, 3):
            shifted = np.zeros(a.nbytes + 4, np.uint8)[offset : offset + a.nbytes].view(np.float32).reshape(a.shape)
            shifted[...] = a
            assert_product(sycl_mat.matmul(shifted, b), a, b)
            out = np.zeros(9 * 7 * 4 + 4, np.uint8)[offset : offset + 9 * 7 * 4].view(np.float32).reshape(9, 7)
            sycl_mat.matmul(a, b, out=out)
            assert_product(out, a, b)

    def test_strides_that_are_no_whole_elements(self, random: np.random.Generator) -> None:
        records = np.zeros(12, np.dtype([("x", "<f4", 5), ("y", "u1", 2)]))
        records["x"] = random.random((12, 5))
        a, b = records["x"], random.random((5, 4), np.float32)
        assert a.strides[0] == 22
        assert_product(sycl_mat.matmul(a, b), np.array(a), b)

    def test_read_only_inputs(self, random: np.random.Generator) -> None:
        a = random.random((9, 9), np.float32)
        a.flags.writeable = False
        assert_product(sycl_mat.matmul(a, a), a, a)
        assert_product(sycl_mat.matmul(np.frombuffer(a.tobytes(), np.float32).reshape(9, 9), a), a, a)

    def test_buffers_and_objects_with_array_interfaces(self, random: np.random.Generator) -> None:
        values = random.random((4, 4), np.float32)

        class Lazy:
            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return values

        assert_product(sycl_mat.matmul(Lazy(), memoryview(values)), values, values)


class TestOut:
    def test_positional_and_keyword(self, random: np.random.Generator) -> None:
        a, b = random.random((3, 4), np.float32), random.random((4, 5), np.float32)
        for out in (np.zeros((3, 5), np.float32), np.zeros((5, 3), np.float32).T):
            assert sycl_mat.matmul(a, b, out) is out
            assert_product(out, a, b)
            out[...] = 0
            assert sycl_mat.matmul(a, b, out=out) is out
            assert_product(out, a, b)

    @pytest.mark.parametrize("where", ["a", "b", "transposed", "shifted", "reversed"])
    @pytest.mark.parametrize("n", [4, 70])
    def test_overlap_with_an_input(self, where: str, n: int, random: np.random.Generator) -> None:
        store = random.random((2 * n, n), np.float32)
        a, b = store[:n], random.random((n, n), np.float32)
        outs = {"a": a, "b": b, "transposed": a.T, "shifted": store[n // 2 : n // 2 + n], "reversed": a[::-1]}
        out = outs[where]
        kept_a, kept_b = a.copy(), b.copy()
        sycl_mat.matmul(a, b, out=out)
        assert_product(out, kept_a, kept_b)

    def test_the_same_array_three_times(self, random: np.random.Generator) -> None:
        a = random.random((50, 50), np.float32)
        kept = a.copy()
        sycl_mat.matmul(a, a, out=a)
        assert_product(a, kept, kept)

    def test_wider_type_and_more_axes_as_numpy_allows(self, random: np.random.Generator) -> None:
        a, b = small_integers(random, (3, 4), np.float32), small_integers(random, (4, 5), np.float32)
        wide = np.zeros((3, 5), np.complex128)
        assert sycl_mat.matmul(a, b, out=wide) is wide
        np.testing.assert_array_equal(wide, a @ b)
        stack = np.zeros((2, 3, 5), np.float32)
        sycl_mat.matmul(a, b, out=stack)
        np.testing.assert_array_equal(stack, np.broadcast_to(a @ b, (2, 3, 5)))

    def test_what_cannot_be_out(self, random: np.random.Generator) -> None:
        a, b = random.random((3, 4)), random.random((4, 5))
        with pytest.raises(TypeError, match="Cannot cast ufunc 'matmul' output"):
            sycl_mat.matmul(a, b, out=np.zeros((3, 5), np.int32))
        with pytest.raises(sycl_mat.SizeError, match=r"^Size Error: non-broadcastable"):
            sycl_mat.matmul(a, b, out=np.zeros((4, 5)))
        with pytest.raises(TypeError):
            sycl_mat.matmul(a, b, out=[[0.0] * 5] * 3)  # type: ignore[call-overload]
        frozen = np.zeros((3, 5))
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            sycl_mat.matmul(a, b, out=frozen)
        assert np.all(frozen == 0)

    def test_out_of_a_scalar_product(self, random: np.random.Generator) -> None:
        a = random.random(9, np.float32)
        out = np.zeros((), np.float32)
        assert sycl_mat.matmul(a, a, out=out) is out
        assert_product(out, a, a)


class TestErrors:
    @pytest.mark.parametrize(("left", "right"), [((), (2, 2)), ((2, 2), ()), ((), ())])
    def test_scalars(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        with pytest.raises(sycl_mat.DimensionError, match=r"^Dimension Error: ") as caught:
            sycl_mat.matmul(np.ones(left, np.float32), np.ones(right, np.float32))
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, RuntimeError)

    @pytest.mark.parametrize(
        ("left", "right"), [((2, 3), (4, 5)), ((3,), (4,)), ((2, 3), (4,)), ((3,), (4, 5)), ((2, 2, 3), (3, 3, 4)), ((2, 0), (1, 2))]
    )
    def test_sizes(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        with pytest.raises(sycl_mat.SizeError, match=r"^Size Error: ") as caught:
            sycl_mat.matmul(np.ones(left, np.float32), np.ones(right, np.float32))
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, RuntimeError)

    def test_arguments(self) -> None:
        a = np.ones((2, 2), np.float32)
        for call in (
            lambda: sycl_mat.matmul(),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, a, a),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, nonsense=1),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, None, out=a),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, device=3),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, kernel=3),  # type: ignore[call-overload]
            lambda: sycl_mat.matmul(a, a, params=(1, 2)),  # type: ignore[call-overload]
        ):
            with pytest.raises(TypeError):
                call()
        with pytest.raises(ValueError, match="precision"):
            sycl_mat.matmul(a, a, precision="lowest")

    def test_unknown_kernel_and_device(self) -> None:
        a = np.ones((2, 2), np.float32)
        with pytest.raises(sycl_mat.UnsupportedError, match="tiled"):
            sycl_mat.matmul(a, a, kernel="nonsense")
        with pytest.raises(sycl_mat.DeviceError):
            sycl_mat.matmul(a, a, device="gpu:17")

    def test_a_failed_call_changes_nothing(self) -> None:
        a, out = np.ones((2, 3), np.float32), np.full((2, 2), 7.0, np.float32)
        with pytest.raises(sycl_mat.SizeError):
            sycl_mat.matmul(a, a, out=out)
        assert np.all(out == 7)


class TestSubclasses:
    def test_matrix(self, random: np.random.Generator) -> None:
        a, b = random.random((3, 4)), random.random((4, 5))
        with pytest.warns(PendingDeprecationWarning):
            left = np.matrix(a)
        c = sycl_mat.matmul(left, b)
        assert type(c) is np.matrix
        np.testing.assert_allclose(c, a @ b)

    def test_masked_arrays(self) -> None:
        a = np.ma.masked_array(np.arange(9.0).reshape(3, 3), mask=np.eye(3, dtype=bool))
        mine, theirs = sycl_mat.matmul(a, a), np.matmul(a, a)
        assert type(mine) is type(theirs)
        np.testing.assert_array_equal(np.ma.getmaskarray(mine), np.ma.getmaskarray(theirs))
        np.testing.assert_array_equal(mine.data, theirs.data)

    def test_memmap(self, tmp_path: Any, random: np.random.Generator) -> None:
        a = np.memmap(tmp_path / "a", np.float32, "w+", shape=(5, 5))
        a[...] = random.random((5, 5))
        c = sycl_mat.matmul(a, a)
        assert type(c) is type(np.matmul(a, a))
        assert_product(c, np.array(a), np.array(a))

    def test_a_type_that_computes_its_own_products(self) -> None:
        class Own:
            def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **rest: Any) -> str:
                return ufunc.__name__

        assert sycl_mat.matmul(Own(), np.ones((2, 2))) == "matmul"

    def test_a_type_that_wants_no_ufuncs(self) -> None:
        class Never:
            __array_ufunc__ = None

        with pytest.raises(TypeError):
            sycl_mat.matmul(Never(), np.ones((2, 2)))


class TestNumbers:
    def test_nan_and_infinity_go_through(self) -> None:
        for n in (3, 40):
            a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
            a[0, 1], a[1, 0], b[2, 2] = np.nan, np.inf, -np.inf
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(sycl_mat.matmul(a, b), a @ b)

    def test_depth_of_zero_gives_zeros(self) -> None:
        out = np.full((3, 4), np.nan, np.float32)
        sycl_mat.matmul(np.ones((3, 0), np.float32), np.ones((0, 4), np.float32), out=out)
        assert np.all(out == 0)

    def test_the_same_bits_run_after_run(self, random: np.random.Generator) -> None:
        for shape in ((200, 300, 400), (64, 64, 20000), (1, 500, 500)):
            m, n, k = shape
            a, b = random.standard_normal((m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)
            first = sycl_mat.matmul(a, b)
            for _ in range(5):
                assert np.array_equal(first, sycl_mat.matmul(a, b))


@pytest.mark.parametrize("kernel", [kernel.name for kernel in sycl_mat.kernels()])
def test_every_kernel_can_be_forced_and_says_so(kernel: str, random: np.random.Generator) -> None:
    a, b = random.random((70, 50), np.float32), random.random((50, 90), np.float32)
    try:
        c = sycl_mat.matmul(a, b, kernel=kernel)
    except sycl_mat.UnsupportedError as error:
        pytest.skip(f"not on this device: {error}")
    assert sycl_mat.last_kernel() == kernel
    assert_product(c, a, b)


def test_device_by_selector_and_by_value(random: np.random.Generator) -> None:
    a = random.random((8, 8), np.float32)
    for device in sycl_mat.devices():
        assert_product(sycl_mat.matmul(a, a, device=device), a, a)
        assert_product(sycl_mat.matmul(a, a, device=device.selector), a, a)
        assert_product(sycl_mat.matmul(a, a, device=device.type), a, a)


def test_default_device_can_be_set_and_reset() -> None:
    first = sycl_mat.devices()[0]
    sycl_mat.set_default_device(first)
    sycl_mat.set_default_device(first.selector)
    with pytest.raises(sycl_mat.DeviceError):
        sycl_mat.set_default_device("gpu:17")
    sycl_mat.set_default_device(None)


def test_kernel_constants(random: np.random.Generator) -> None:
    a, b = random.random((100, 70), np.float32), random.random((70, 130), np.float32)
    for params in (sycl_mat.TileParams(16, 16, 16, 4, 4, 4), sycl_mat.TileParams(16, 16, 8, 8, 4, 8)):
        assert_product(sycl_mat.matmul(a, b, kernel="tiled", params=params), a, b)
        assert sycl_mat.last_kernel() == "tiled"
    assert_product(sycl_mat.matmul(a, b, kernel="packed", params=sycl_mat.PackParams(mr=4, nv=2)), a, b)
    with pytest.raises(sycl_mat.ParamsError, match="chunk"):
        sycl_mat.matmul(a, b, kernel="tiled", params=sycl_mat.TileParams(16, 16, 6, 4, 4, 4))


def test_number_of_threads() -> None:
    everything = sycl_mat.get_num_threads("cpu")
    a = np.random.default_rng(1).standard_normal((500, 500), np.float32)
    try:
        sycl_mat.set_num_threads(1, "cpu")
        assert sycl_mat.get_num_threads("cpu") == 1
        alone = sycl_mat.matmul(a, a, device="cpu", kernel="packed")
        assert "1×1×1" in str(sycl_mat.explain(a, a, device="cpu", kernel="packed"))
    finally:
        sycl_mat.set_num_threads(0, "cpu")
    assert sycl_mat.get_num_threads("cpu") == everything
    np.testing.assert_allclose(alone, a.astype(float) @ a, atol=1e-3)
    with pytest.raises(ValueError, match="threads"):
        sycl_mat.set_num_threads(-1, "cpu")


def test_out_whose_elements_share_places() -> None:
    storage = np.zeros(100, np.float32)
    out = np.lib.stride_tricks.as_strided(storage, (4, 4), (16, 0))
    a = np.eye(4, dtype=np.float32)
    for product in (sycl_mat.matmul, sycl_mat.gemm):
        storage[:] = 0
        assert product(a, a, out=out) is out
        assert storage[4:].any()


def test_layout_of_unaligned_operands_is_kept() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((4, 300)), random.standard_normal((5, 300)).T
    unaligned = np.empty(b.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(5, 300)
    unaligned[...] = b.T
    np.testing.assert_array_equal(sycl_mat.matmul(a, unaligned.T), sycl_mat.matmul(a, b))


def test_result_larger_than_memory_can_be_addressed() -> None:
    long = np.broadcast_to(np.float32(1), (2**40, 1))
    with pytest.raises(sycl_mat.SizeError, match="larger than memory"):
        sycl_mat.matmul(long, long.T)


@pytest.mark.parametrize("arguments", [{"kernel": "packed\0"}, {"device": "cpu\0x"}, {"backend": "\0"}])
def test_text_with_nul(arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}: the text holds a NUL"):
        sycl_mat.matmul(np.ones((2, 2), "f4"), np.ones((2, 2), "f4"), **arguments)  # type: ignore[arg-type]


def test_unknown_kernels_are_told_of_every_kernel() -> None:
    with pytest.raises(sycl_mat.UnsupportedError, match="there are: ") as error:
        sycl_mat.matmul(np.ones((2, 2), "f4"), np.ones((2, 2), "f4"), kernel="foo")
    for kernel in sycl_mat.kernels():
        assert kernel.name in str(error.value)


def test_default_device_is_a_name() -> None:
    with pytest.raises(TypeError, match="device: a string is wanted"):
        sycl_mat.set_default_device(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="activation: 'relu'"):
        sycl_mat.gemm(np.ones((2, 2), "f4"), np.ones((2, 2), "f4"), activation=3)  # type: ignore[call-overload]


def test_large_stack_into_a_padded_view() -> None:
    big = np.zeros((2, 40000 * 256 + 1), np.float32)
    out = big[:, :-1].reshape(2, 40000, 16, 16)
    assert np.shares_memory(big, out)
    sycl_mat.matmul(np.ones((2, 40000, 16, 8), np.float32), np.ones((8, 16), np.float32), out=out)
    assert (big[:, :-1] == 8).all()
    assert (big[:, -1] == 0).all()
