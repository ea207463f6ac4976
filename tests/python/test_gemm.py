"""gemm: alpha, beta, C, bias, activation, against float64."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sycl_mat

erf = np.vectorize(math.erf, otypes=[float])
ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
}
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}


def close(mine: Any, expected: Any) -> None:
    tolerance = TOLERANCE[mine.dtype.name]
    np.testing.assert_allclose(mine.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(5, 6, 7), (70, 90, 50)])
def test_the_whole_formula(activation: Any, dtype: Any, shape: tuple[int, int, int], random: np.random.Generator) -> None:
    m, n, k = shape
    a, b = (random.uniform(-1, 1, s).astype(dtype) / 4 for s in ((m, k), (k, n)))
    c = random.uniform(-1, 1, (m, n)).astype(dtype)
    accumulator = np.float64 if dtype == np.float64 else np.float32
    bias = random.uniform(-1, 1, n).astype(accumulator)
    mine = sycl_mat.gemm(a, b, c, alpha=1.5, beta=-0.5, bias=bias, activation=activation)
    assert mine.dtype == dtype
    a64, b64, c64 = (x.astype(np.float64) for x in (a, b, c))
    close(mine, ACTIVATIONS[activation](1.5 * a64 @ b64 - 0.5 * c64 + bias))


@pytest.mark.parametrize("shape", [(3, 4, 5), (33, 65, 20)])
def test_bias_along_rows_and_columns(shape: tuple[int, int, int], random: np.random.Generator) -> None:
    m, n, k = shape
    a, b = random.random((m, k)), random.random((k, n))
    columns, rows = random.random(n), random.random((m, 1))
    close(sycl_mat.gemm(a, b, bias=columns), a @ b + columns)
    close(sycl_mat.gemm(a, b, bias=columns[np.newaxis]), a @ b + columns)
    close(sycl_mat.gemm(a, b, bias=rows), a @ b + rows)
    close(sycl_mat.gemm(a, b, bias=2.0), a @ b + 2)
    out = np.zeros((n, m)).T
    close(sycl_mat.gemm(a, b, bias=rows, out=out), a @ b + rows)
    close(sycl_mat.gemm(a, b, bias=columns, out=out), a @ b + columns)


def test_bias_of_the_wrong_length(random: np.random.Generator) -> None:
    a, b = random.random((3, 4)), random.random((4, 5))
    for bias in (np.ones(3), np.ones(4), np.ones((5, 1)), np.ones((3, 5)), np.ones((1, 1, 5)), np.ones((5, 0))):
        with pytest.raises(sycl_mat.SizeError, match="bias"):
            sycl_mat.gemm(a, b, bias=bias)


@pytest.mark.parametrize("n", [3, 70])
def test_with_beta_zero_c_is_never_read(n: int, random: np.random.Generator) -> None:
    a = random.random((n, n), np.float32)
    c = np.full((n, n), np.nan, np.float32)
    close(sycl_mat.gemm(a, a, c), a.astype(float) @ a)
    out = np.full((n, n), np.nan, np.float32)
    close(sycl_mat.gemm(a, a, out, out=out), a.astype(float) @ a)


@pytest.mark.parametrize("n", [3, 70])
def test_update_in_place(n: int, random: np.random.Generator) -> None:
    a = random.random((n, n), np.float32)
    for c in (random.random((n, n), np.float32), random.random((n, n), np.float32).T, random.random((2 * n, 2 * n), np.float32)[::2, ::2]):
        expected = a.astype(float) @ a + 2 * c.astype(float)
        assert sycl_mat.gemm(a, a, c, beta=2, out=c) is c
        close(c, expected)


def test_c_that_overlaps_out_otherwise(random: np.random.Generator) -> None:
    a = random.random((20, 20), np.float32)
    store = random.random((25, 20), np.float32)
    expected = a.astype(float) @ a + store[:20].astype(float)
    out = store[3:23]
    sycl_mat.gemm(a, a, store[:20], beta=1, out=out)
    close(out, expected)


def test_c_broadcasts(random: np.random.Generator) -> None:
    a, b = random.random((3, 6, 4)), random.random((4, 5))
    for shape in ((6, 5), (1, 5), (5,), (3, 1, 5), (3, 6, 5), (6, 1)):
        c = random.random(shape)
        close(sycl_mat.gemm(a, b, c, beta=3), a @ b + 3 * c)
    with pytest.raises(sycl_mat.SizeError, match="c of shape"):
        sycl_mat.gemm(a, b, np.ones((2, 5)), beta=1)


def test_depth_of_zero(random: np.random.Generator) -> None:
    a, b, c = np.ones((3, 0)), np.ones((0, 4)), random.random((3, 4))
    close(sycl_mat.gemm(a, b, c, beta=2, bias=np.ones(4), activation="relu"), np.maximum(2 * c + 1, 0))
    close(sycl_mat.gemm(a, b, alpha=2), np.zeros((3, 4)))


def test_types_of_c_and_bias_take_part_in_the_promotion(random: np.random.Generator) -> None:
    a = random.random((4, 4), np.float32)
    assert sycl_mat.gemm(a, a, random.random((4, 4)), beta=1).dtype == np.float64
    assert sycl_mat.gemm(a, a, bias=random.random(4)).dtype == np.float64
    assert sycl_mat.gemm(a, a, random.random((4, 4))).dtype == np.float32  # beta is 0: C is not read
    half = a.astype(np.float16)
    assert sycl_mat.gemm(half, half, bias=np.ones(4, np.float32)).dtype == np.float16


def test_transposes_and_stacks(random: np.random.Generator) -> None:
    a, b = random.random((3, 4, 6)), random.random((3, 5, 4))
    close(sycl_mat.gemm(a, b, transpose_a=True, transpose_b=True), a.swapaxes(1, 2) @ b.swapaxes(1, 2))


def test_int8(random: np.random.Generator) -> None:
    a, b = random.integers(-128, 128, (9, 300), np.int8), random.integers(-128, 128, (300, 11), np.int8)
    c, bias = random.integers(-1000, 1000, (9, 11), np.int32), random.integers(-1000, 1000, 11, np.int32)
    mine = sycl_mat.gemm(a, b, c, alpha=2, beta=3, bias=bias)
    assert mine.dtype == np.int32
    np.testing.assert_array_equal(mine, 2 * (a.astype(np.int64) @ b) + 3 * c + bias)
    with pytest.raises(sycl_mat.UnsupportedError):
        sycl_mat.gemm(a, b, alpha=0.5)
    with pytest.raises(sycl_mat.UnsupportedError):
        sycl_mat.gemm(a, b, activation="gelu")


def test_unknown_activation() -> None:
    with pytest.raises(ValueError, match="activation"):
        sycl_mat.gemm(np.ones((2, 2)), np.ones((2, 2)), activation="softmax")  # type: ignore[arg-type]


def test_vectors(random: np.random.Generator) -> None:
    a, v = random.random((6, 4)), random.random(4)
    close(sycl_mat.gemm(a, v, random.random(6) * 0, beta=1, bias=np.arange(6.0)), a @ v + np.arange(6.0))
    close(sycl_mat.gemm(v, a, transpose_b=True), a @ v)


def test_explain_names_what_runs(random: np.random.Generator) -> None:
    a = random.random((300, 300), np.float32)
    explanation = sycl_mat.explain(a, a, bias=np.ones(300, np.float32), activation="relu")
    sycl_mat.gemm(a, a, bias=np.ones(300, np.float32), activation="relu")
    assert explanation.kernel == sycl_mat.last_kernel()
    text = str(explanation)
    for word in ("kernel", "constants", "reason", "launch range", "local memory", "spills"):
        assert word in text


def test_max_device_memory_is_checked() -> None:
    a = np.ones((3, 3), np.float32)
    assert sycl_mat.gemm(a, a, max_device_memory=1 << 20)[0, 0] == 3
    assert sycl_mat.matmul(a, a, max_device_memory=1 << 20)[0, 0] == 3
    for function in (sycl_mat.gemm, sycl_mat.matmul):
        with pytest.raises(ValueError, match="positive"):
            function(a, a, max_device_memory=0)
        with pytest.raises(TypeError, match="bytes"):
            function(a, a, max_device_memory="lots")
