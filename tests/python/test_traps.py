"""Layouts at which matrix products have failed before, in this library or in others."""

import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

import sycl_mat
from oracle import small_integers

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
#: None: whatever the planner chooses
KERNELS = [None, *(kernel.name for kernel in sycl_mat.kernels())]


def multiply(a: Any, b: Any, kernel: str | None, **rest: Any) -> Any:
    try:
        product = sycl_mat.gemm(a, b, kernel=kernel, **rest)
    except sycl_mat.UnsupportedError as error:
        pytest.skip(f"not on this device, or not this shape: {error}")
    if kernel is not None:
        assert sycl_mat.last_kernel() == kernel
    return product


def expected(a: Any, b: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


class TestOneRow:
    """The stride of an axis of length one is arbitrary, and a kernel must never step by it."""

    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("stride", [0, 4, -4, 12, 1 << 40, -(1 << 40)])
    def test_of_each_operand(self, kernel: str | None, stride: int, random: np.random.Generator) -> None:
        for m, n, k in ((1, 6, 5), (1, 70, 90), (6, 1, 5), (70, 1, 90), (6, 5, 1), (70, 90, 1), (1, 1, 1), (1, 1, 70)):
            a, b, c = (small_integers(random, shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
            odd = [self.with_stride(x, stride) for x in (a, b, c)]
            out = self.with_stride(np.zeros((m, n), np.float32), stride)
            multiply(odd[0], odd[1], kernel, c=odd[2], beta=1, out=out)
            np.testing.assert_array_equal(out, expected(a, b) + c)

    @staticmethod
    def with_stride(x: NDArray[Any], stride: int) -> NDArray[Any]:
        return as_strided(x, strides=tuple(stride if extent == 1 else own for extent, own in zip(x.shape, x.strides, strict=True)))

    def test_in_a_stack(self, random: np.random.Generator) -> None:
        a, b = small_integers(random, (7, 1, 5), np.float32), small_integers(random, (7, 5, 1), np.float32)
        odd = as_strided(a, strides=(20, 1 << 30, 4)), as_strided(b, strides=(20, 4, 1 << 30))
        np.testing.assert_array_equal(sycl_mat.matmul(*odd), expected(a, b))


class TestAlignment:
    @pytest.mark.parametrize("dtype", [*FLOATS, np.int8])
    @pytest.mark.parametrize("offset", [1, 2, 4, 6])
    @pytest.mark.parametrize("n", [5, 70])
    def test_bytes_off(self, dtype: Any, offset: int, n: int, random: np.random.Generator) -> None:
        a, b = small_integers(random, (n, n + 1), dtype), small_integers(random, (n + 1, n + 2), dtype)
        shifted_a, shifted_b = self.shifted(a, offset), self.shifted(b, offset)
        out = self.shifted(np.zeros((n, n + 2), np.int32 if dtype is np.int8 else dtype), offset)
        assert sycl_mat.matmul(shifted_a, shifted_b, out=out) is out
        np.testing.assert_array_equal(out.astype(np.float64), expected(a, b))
        np.testing.assert_array_equal(sycl_mat.asarray(shifted_a).numpy(), a)

    @staticmethod
    def shifted(x: NDArray[Any], offset: int) -> NDArray[Any]:
        view = np.zeros(x.nbytes + offset, np.uint8)[offset:].view(x.dtype).reshape(x.shape)
        view[...] = x
        return view


class TestZeroStrides:
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize(("m", "n", "k"), [(4, 5, 6), (70, 90, 50), (3, 200, 150)])
    def test_repeated_rows_columns_and_values(self, kernel: str | None, m: int, n: int, k: int, random: np.random.Generator) -> None:
        a, b = small_integers(random, (m, k), np.float32), small_integers(random, (k, n), np.float32)
        for left in (a, np.broadcast_to(a[:1], (m, k)), np.broadcast_to(a[:, :1], (m, k)), np.broadcast_to(a[0, 0], (m, k))):
            for right in (b, np.broadcast_to(b[:1], (k, n)), np.broadcast_to(b[:, :1], (k, n)), np.broadcast_to(b[0, 0], (k, n))):
                np.testing.assert_array_equal(multiply(left, right, kernel), expected(left, right))

    def test_c_and_stacks(self, random: np.random.Generator) -> None:
        a, b = small_integers(random, (5, 6), np.float32), small_integers(random, (6, 7), np.float32)
        stacked = sycl_mat.matmul(np.broadcast_to(a, (3, 4, 5, 6)), np.broadcast_to(b, (4, 6, 7)))
        np.testing.assert_array_equal(stacked, np.broadcast_to(a @ b, (3, 4, 5, 7)))
        row = small_integers(random, (7,), np.float32)
        np.testing.assert_array_equal(sycl_mat.gemm(a, b, np.broadcast_to(row, (5, 7)), beta=1), a @ b + row)

    def test_no_result_can_have_one(self) -> None:
        out = np.broadcast_to(np.zeros((1, 4), np.float32), (4, 4))
        with pytest.raises(ValueError, match="read-only"):
            sycl_mat.matmul(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32), out=out)


@pytest.fixture(scope="module")
def vast() -> Any:
    """Thirteen gigabytes of addresses, of which only what is written takes memory."""
    bytes_ = 13 << 30
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    try:
        memory = mmap.mmap(-1, bytes_, flags=flags)
    except OSError:
        pytest.skip("so many addresses are not to be had")
    return np.frombuffer(memory, np.float32)


@pytest.mark.skipif(not hasattr(mmap, "MAP_PRIVATE"), reason="no sparse memory")
class TestBeyond32Bits:
    """Rows, columns and matrices so far apart that 32-bit offsets, in bytes or in elements, would meet other memory."""

    ROW = (1 << 30) + 3

    def spread(self, vast: Any, x: NDArray[Any], axis: int, at: int) -> NDArray[Any]:
        """`x` with 2³⁰ elements between its (three) parts along one axis."""
        rest = [extent for i, extent in enumerate(x.shape) if i != axis]
        strides, step = [0] * x.ndim, 1
        for i in reversed([i for i in range(x.ndim) if i != axis]):
            strides[i], step = step, step * x.shape[i]
        strides[axis] = self.ROW
        assert step == np.prod(rest)
        view = as_strided(vast[at:], x.shape, [4 * stride for stride in strides])
        view[...] = x
        return view

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_rows(self, kernel: str | None, vast: Any, random: np.random.Generator) -> None:
        for n in (5, 80):
            a, b, c = (small_integers(random, shape, np.float32) for shape in ((3, 3), (3, n), (3, n)))
            wide_a, wide_b = self.spread(vast, a, 0, 1000), self.spread(vast, b, 0, 2000)
            wide_c, out = self.spread(vast, c, 0, 3000), self.spread(vast, np.zeros((3, n), np.float32), 0, 4000)
            multiply(wide_a, wide_b, kernel, c=wide_c, beta=1, out=out)
            np.testing.assert_array_equal(out, a @ b + c)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_columns(self, kernel: str | None, vast: Any, random: np.random.Generator) -> None:
        for n in (5, 80):
            a, b = small_integers(random, (n, 3), np.float32), small_integers(random, (3, 3), np.float32)
            wide_a, wide_b = self.spread(vast, a, 1, 1000), self.spread(vast, b, 1, 2000)
            out = self.spread(vast, np.zeros((n, 3), np.float32), 1, 3000)
            multiply(wide_a, wide_b, kernel, out=out)
            np.testing.assert_array_equal(out, a @ b)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_matrices_of_a_stack(self, kernel: str | None, vast: Any, random: np.random.Generator) -> None:
        for n in (4, 40):
            a, b = small_integers(random, (3, n, n), np.float32), small_integers(random, (3, n, n), np.float32)
            wide_a, wide_b = self.spread(vast, a, 0, 10000), self.spread(vast, b, 0, 20000)
            out = self.spread(vast, np.zeros((3, n, n), np.float32), 0, 30000)
            multiply(wide_a, wide_b, kernel, out=out)
            np.testing.assert_array_equal(out, a @ b)

    def test_backwards(self, vast: Any, random: np.random.Generator) -> None:
        a, b = small_integers(random, (3, 70), np.float32), small_integers(random, (70, 90), np.float32)
        wide = self.spread(vast, a, 0, 1000)[::-1]
        np.testing.assert_array_equal(sycl_mat.matmul(wide, b), a[::-1] @ b)

    def test_more_elements_than_32_bits_count(self, random: np.random.Generator) -> None:
        row, b = small_integers(random, (1, 40), np.float32), small_integers(random, (40, 1), np.float32)
        many = np.broadcast_to(row, (60_000_000, 40))
        assert many.size > 1 << 31
        product = sycl_mat.matmul(many, b)
        assert product.shape == (60_000_000, 1)
        assert np.all(product == (row @ b)[0, 0])


class TestFortranOrder:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_out_with_everything(self, kernel: str | None, random: np.random.Generator) -> None:
        a, b, c = (small_integers(random, shape, np.float32) for shape in ((60, 40), (40, 70), (60, 70)))
        column, row = small_integers(random, (70,), np.float32), small_integers(random, (60, 1), np.float32)
        for add in (c, np.asfortranarray(c)):
            for bias in (column, row):
                for out in (np.zeros((60, 70), np.float32, order="F"), np.zeros((140, 60), np.float32)[::2].T):
                    multiply(a, b, kernel, c=add, beta=2, bias=bias, out=out)
                    np.testing.assert_array_equal(out, a @ b + 2 * c + bias)
