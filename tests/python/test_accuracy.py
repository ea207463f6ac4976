"""The error of products on hard inputs: never beyond error_bound, no worse than NumPy's, and the same bits run after run."""

import hashlib
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import sycl_mat

Matrix = NDArray[Any]
Maker = Callable[[np.random.Generator, int, int, int, Any], tuple[Matrix, Matrix]]

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
#: exponents of the smallest normal number, and the first power of two that is too large
EXPONENTS = {"float32": (-126, 128), "float64": (-1022, 1024), "float16": (-14, 16), "bfloat16": (-126, 128)}
DOUBLE_EXTENDED = np.finfo(np.longdouble).nmant >= 63


def exact(a: Matrix, b: Matrix) -> Matrix:
    """The product with an error far below any bound: in twice the precision or more, float64 in 64 bits of mantissa."""
    if a.dtype != np.float64:
        # Products of two float32 are exact in float64, and fsum adds without error.
        columns = b.astype(np.float64).T
        return np.array([[math.fsum(row * column) for column in columns] for row in a.astype(np.float64)])
    if not DOUBLE_EXTENDED:
        pytest.skip("no type here is wider than float64")
    product: Matrix = np.matmul(a.astype(np.longdouble), b.astype(np.longdouble))
    return product


def largest_exponent(dtype: Any, depth: int) -> int:
    """So that sums of products of two such powers of two do not overflow."""
    return (EXPONENTS[np.dtype(dtype).name][1] - 8 - math.ceil(math.log2(depth))) // 2


def normal(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    return random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)


def positive(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    """All roundings in one direction add up."""
    return random.random((m, k)).astype(dtype), random.random((k, n)).astype(dtype)


def cancelling(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    """Two halves that nearly are each other's negative: what is left is made of what was rounded."""
    a, b = normal(random, m, n, k, dtype)
    half = k // 2
    a[:, half : 2 * half] = -a[:, :half]
    b[half : 2 * half] = (b[:half].astype(np.float64) * (1 + 1e-3 * random.standard_normal((half, 1)))).astype(dtype)
    return a, b


def wide(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    """Exponents over most of the type's range in one sum."""
    most = largest_exponent(dtype, k)
    a, b = (
        random.standard_normal(shape).clip(-4, 4) * 2.0 ** random.uniform(-max(most, 8), max(most - 2, 0), shape)
        for shape in ((m, k), (k, n))
    )
    return a.astype(dtype), b.astype(dtype)


def absorbed(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    """One product so large that the others vanish beside it, and its negative at the end."""
    a, b = np.ones((m, k)), random.random((k, n))
    big = 2.0 ** min(largest_exponent(dtype, k), 26)
    a[:, 0], a[:, -1] = big, -big
    b[0], b[-1] = 1, 1
    return a.astype(dtype), b.astype(dtype)


def denormal(random: np.random.Generator, m: int, n: int, k: int, dtype: Any) -> tuple[Matrix, Matrix]:
    """Operands, products or sums below the smallest normal number."""
    smallest = EXPONENTS[np.dtype(dtype).name][0]
    a = random.standard_normal((m, k)) * 2.0 ** (smallest + random.integers(-6, 3, (m, k)).astype(np.float64))
    b = random.standard_normal((k, n)) * 2.0 ** random.integers(-4, 5, (k, n)).astype(np.float64)
    return a.astype(dtype), b.astype(dtype)


MAKERS: list[Maker] = [normal, positive, cancelling, wide, absorbed, denormal]


def check(c: Any, a: Matrix, b: Matrix) -> Matrix:
    """The errors, in units of the bound; they are within it."""
    reference = exact(a, b)
    error = np.abs(np.asarray(c).astype(reference.dtype) - reference).astype(np.float64)
    limit = sycl_mat.error_bound(a, b)
    assert np.all(error <= limit), f"error {np.max(error / limit):.3g} times the bound"  # a NaN fails
    shares: Matrix = error / limit
    return shares


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 2, 5), (17, 33, 100), (5, 40, 3000), (1, 1, 20000)])
def test_never_beyond_the_bound_nor_worse_than_numpy(
    maker: Maker, dtype: Any, shape: tuple[int, int, int], random: np.random.Generator
) -> None:
    m, n, k = shape
    a, b = maker(random, m, n, k, dtype)
    with np.errstate(all="ignore"):
        mine = check(sycl_mat.matmul(a, b), a, b)
        # NumPy computes the 16-bit types with sums of 16 bits, or not at all.
        theirs = np.abs((a.astype(np.float32) @ b.astype(np.float32) if dtype not in (np.float32, np.float64) else a @ b) - exact(a, b))
        limit = sycl_mat.error_bound(a, b)
    rounding = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8}.get(dtype, 0.0) * np.max(np.abs(exact(a, b)), initial=0)
    assert np.max(mine * limit) <= 4 * np.max(theirs) + 2 * rounding + np.max(limit) / 10


@pytest.mark.parametrize("kernel", [kernel.name for kernel in sycl_mat.kernels()])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("maker", MAKERS)
def test_every_kernel(kernel: str, maker: Maker, dtype: Any, random: np.random.Generator) -> None:
    a, b = maker(random, 7, 70, 1501, dtype)
    try:
        with np.errstate(all="ignore"):
            c = sycl_mat.matmul(a, b, kernel=kernel)
    except sycl_mat.UnsupportedError as error:
        pytest.skip(f"not on this device: {error}")
    assert sycl_mat.last_kernel() == kernel
    check(c, a, b)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3)])
@pytest.mark.parametrize("maker", [normal, positive])
def test_a_depth_of_ten_million(maker: Maker, shape: tuple[int, int], random: np.random.Generator) -> None:
    m, n = shape
    k = 10**7
    a, b = maker(random, m, n, k, np.float32)
    c = sycl_mat.matmul(a, b)
    reference = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    mine, theirs = (np.abs(x.astype(np.float64) - reference) for x in (c, a @ b))
    assert np.all(mine <= sycl_mat.error_bound(a, b))
    assert np.max(mine / size) <= 4 * np.max(theirs / size) + 1e-6


def test_float64_vectors_are_computed_in_float64(random: np.random.Generator) -> None:
    for m, n, k in ((1, 1, 5000), (1, 300, 5000), (300, 1, 5000), (1, 1, 10), (1, 9, 9), (9, 1, 9)):
        a, b = random.random((m, k)), random.random((k, n))
        check(sycl_mat.matmul(a, b), a, b)
        np.testing.assert_allclose(sycl_mat.matmul(a, b), a @ b, rtol=1e-13)
    v, w = random.random(5000), random.random(5000)
    assert abs(sycl_mat.matmul(v, w) - v @ w) <= 1e-13 * (v @ w)


class TestErrorBound:
    def test_shape_and_type(self, random: np.random.Generator) -> None:
        for left, right in (((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 5))):
            a, b = random.random(left), random.random(right)
            bound = sycl_mat.error_bound(a, b)
            assert np.shape(bound) == np.shape(a @ b)
            assert bound.dtype == np.float64

    def test_the_formula(self) -> None:
        a, b = np.full((1, 100), 2, np.float32), np.full((100, 1), -3, np.float32)
        u = 2.0**-24
        assert sycl_mat.error_bound(a, b) == pytest.approx(600 * 100 * u / (1 - 100 * u), rel=1e-9)
        wide = sycl_mat.error_bound(a.astype(np.float64), b)
        assert wide == pytest.approx(600 * 100 * 2.0**-53, rel=1e-9)
        half = sycl_mat.error_bound(a.astype(np.float16), b.astype(np.float16))
        assert half == pytest.approx(600 * (100 * u + 2.0**-11), rel=1e-2)
        assert sycl_mat.error_bound(a, b, precision="tf32") == pytest.approx(600 * (100 * u + 2.0**-10), rel=1e-2)

    def test_int8_is_exact(self, random: np.random.Generator) -> None:
        a = random.integers(-128, 128, (5, 6), np.int8)
        assert np.all(sycl_mat.error_bound(a, a.T) == 0)

    def test_arrays_and_errors(self, random: np.random.Generator) -> None:
        a = random.random((4, 4), np.float32)
        np.testing.assert_array_equal(sycl_mat.error_bound(sycl_mat.asarray(a), a), sycl_mat.error_bound(a, a))
        with pytest.raises(sycl_mat.UnsupportedError):
            sycl_mat.error_bound(np.ones((2, 2), np.int64), np.ones((2, 2), np.int64))

    def test_a_wrong_product_is_found(self, random: np.random.Generator) -> None:
        a, b = normal(random, 20, 20, 200, np.float32)
        c = a @ b
        c[3, 7] += np.float32(30 * 2.0**-24 * 200 * 200)
        with pytest.raises(AssertionError, match="times the bound"):
            check(c, a, b)


_HASHES = """
import hashlib
import numpy as np, sycl_mat
random = np.random.default_rng(3)
for m, n, k in [(5, 6, 7), (200, 300, 400), (64, 64, 20000), (1, 500, 500), (500, 1, 500), (1, 1, 100000)]:
    a, b = random.standard_normal((m, k)).astype("f4"), random.standard_normal((k, n)).astype("f4")
    print(hashlib.sha256(sycl_mat.matmul(a, b).tobytes()).hexdigest())
"""


class TestSameBits:
    def test_in_another_process(self) -> None:
        runs = {subprocess.run([sys.executable, "-c", _HASHES], check=True, capture_output=True, text=True).stdout for _ in range(3)}
        assert len(runs) == 1
        assert len(runs.pop().split()) == 6

    def test_while_other_threads_multiply(self, random: np.random.Generator) -> None:
        a, b = normal(random, 150, 200, 3000, np.float32)
        expected = hashlib.sha256(sycl_mat.matmul(a, b).tobytes()).digest()
        different = []

        def run() -> None:
            for _ in range(10):
                if hashlib.sha256(sycl_mat.matmul(a, b).tobytes()).digest() != expected:
                    different.append(1)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not different

    def test_wherever_the_operands_lie(self, random: np.random.Generator) -> None:
        """The same product with other alignments and in other memory."""
        a, b = normal(random, 130, 90, 700, np.float32)
        expected = sycl_mat.matmul(a, b)
        for offset in (1, 3, 15):
            shifted = [np.empty(x.size + offset, np.float32)[offset:].reshape(x.shape) for x in (a, b)]
            for target, source in zip(shifted, (a, b), strict=True):
                target[...] = source
            np.testing.assert_array_equal(sycl_mat.matmul(*shifted), expected)
        array = sycl_mat.asarray(a) @ sycl_mat.asarray(b)
        np.testing.assert_array_equal(array.numpy(), expected)
