"""The oneMKL backend as Python calls it; its numbers in every layout are tested in tests/device/onemkl_test.cpp."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sycl_mat
from oracle import assert_product, bound
from sycl_mat import _core, _runtime

ml_dtypes = pytest.importorskip("ml_dtypes")

installed = pytest.mark.skipif(not _runtime.onemkl_folders(), reason="oneMKL is not installed: pip install 'sycl-mat[onemkl]'")
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The code in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


def assert_nearly(c: Any, a: Any, b: Any) -> None:
    """As for our kernels, but twice the bound: oneMKL does not round its 16-bit results to the nearest, and, depending on where the
    operands lie, rounds their products to 16 bits before it adds them; and float16 results below the smallest normal number can be anything
    below it."""
    difference = np.abs(c.astype(np.float64) - a.astype(np.float64) @ b.astype(np.float64))
    limit = 2 * bound(a, b)
    if a.dtype.itemsize == 2:
        limit = limit + float(ml_dtypes.finfo(a.dtype).eps) * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
        limit = limit + float(ml_dtypes.finfo(a.dtype).smallest_normal)
    assert np.all(difference <= limit), f"{a.shape} {b.shape} {a.dtype}"


@installed
@pytest.mark.parametrize("dtype", DTYPES)
@given(m=st.integers(1, 40), n=st.integers(1, 40), k=st.integers(1, 60), layout=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_any_shape(dtype: Any, m: int, n: int, k: int, layout: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a = random.standard_normal((k, m) if layout & 1 else (m, k)).astype(dtype)
    b = random.standard_normal((n, k) if layout & 2 else (k, n)).astype(dtype)
    a, b = a.T if layout & 1 else a, b.T if layout & 2 else b
    c = sycl_mat.matmul(a, b, backend="onemkl")
    assert sycl_mat.last_kernel() == "onemkl"
    assert_nearly(c, a, b)


@installed
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_broadcast(dtype: Any, random: np.random.Generator) -> None:
    for sa, sb in (((7, 5, 6), (6, 4)), ((5, 6), (3, 6, 4)), ((2, 3, 5, 6), (3, 6, 4)), ((4, 1, 5, 6), (1, 3, 6, 4))):
        a, b = random.standard_normal(sa).astype(dtype), random.standard_normal(sb).astype(dtype)
        c = sycl_mat.matmul(a, b, backend="onemkl")
        assert sycl_mat.last_kernel() == "onemkl"
        assert_nearly(c, a, b)


@installed
def test_int8_is_exact(random: np.random.Generator) -> None:
    a, b = random.integers(-128, 128, (30, 3000)).astype(np.int8), random.integers(-128, 128, (3000, 20)).astype(np.int8)
    c = sycl_mat.matmul(a, b, backend="onemkl")
    assert sycl_mat.last_kernel() == "onemkl"
    assert c.dtype == np.int32
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


@installed
def test_gemm_adds_to_c(random: np.random.Generator) -> None:
    a, b, c = (random.standard_normal((40, 40)).astype(np.float32) for _ in range(3))
    d = sycl_mat.gemm(a, b, c, alpha=0.5, beta=-2.0, transpose_a=True, backend="onemkl")
    assert sycl_mat.last_kernel() == "onemkl"
    np.testing.assert_allclose(d, 0.5 * (a.T.astype(np.float64) @ b) - 2.0 * c, atol=1e-4)


@installed
def test_what_it_cannot_do_is_ours_and_explained(random: np.random.Generator) -> None:
    a, b = random.standard_normal((60, 50)).astype(np.float32), random.standard_normal((50, 70)).astype(np.float32)
    bias = random.standard_normal(70).astype(np.float32)
    d = sycl_mat.gemm(a, b, bias=bias, activation="relu", backend="onemkl")
    assert sycl_mat.last_kernel() != "onemkl"
    np.testing.assert_allclose(d, np.maximum(a.astype(np.float64) @ b + bias, 0), atol=1e-4)
    reason = sycl_mat.explain(a[::-1], b, backend="onemkl").reason
    assert "not by oneMKL" in reason
    assert "leading dimension" in reason
    assert sycl_mat.explain(a, b, backend="onemkl").kernel == "onemkl"


def test_unknown_backends_are_refused() -> None:
    a = np.ones((2, 2), np.float32)
    with pytest.raises(sycl_mat.UnsupportedError, match="sycl, onemkl, auto"):
        sycl_mat.matmul(a, a, backend="cublas")
    with pytest.raises(sycl_mat.UnsupportedError, match="kernel"):
        sycl_mat.matmul(a, a, backend="onemkl", kernel="naive")


def test_auto_computes_it() -> None:
    a = np.ones((70, 70), np.float32)
    assert (sycl_mat.matmul(a, a, backend="auto") == 70).all()


def test_a_missing_one_says_what_to_install(tmp_path: Path) -> None:
    code = """
import numpy as np, sycl_mat
a = np.ones((100, 100), "f4")
try:
    sycl_mat.matmul(a, a, backend="onemkl")
except sycl_mat.UnsupportedError as error:
    print(error)
assert (sycl_mat.matmul(a, a) == 100).all()
"""
    done = run(code, SYCL_MAT_ONEMKL_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "pip install sycl-mat[onemkl]" in done.stdout


@installed
def test_nothing_is_loaded_before_it_is_asked_for_and_its_names_stay_inside() -> None:
    code = """
import ctypes, numpy as np, sycl_mat
def loaded():
    return "libmkl" in open("/proc/self/maps").read()
a = np.ones((100, 100), "f4")
sycl_mat.matmul(a, a)
assert not loaded()
assert (sycl_mat.matmul(a, a, backend="onemkl") == 100).all() and sycl_mat.last_kernel() == "onemkl"
assert loaded()
for name in ("cblas_sgemm", "sgemm_", "dgemm_", "dgesv_"):
    assert not hasattr(ctypes.CDLL(None), name), name
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


@installed
def test_beside_another_mkl(random: np.random.Generator) -> None:
    """A process that has MKL's own runtime library with 32-bit integers, visible to all, keeps both right."""
    code = """
import ctypes, numpy as np, sycl_mat
from sycl_mat import _runtime, peers
other = peers.onemkl_contender()
a, b = np.random.rand(150, 160).astype("f4"), np.random.rand(160, 170).astype("f4")
for _ in range(3):
    out = np.full((150, 170), np.nan, "f4")
    if other: other.run(a, b, out)
    np.testing.assert_allclose(out, a.astype("f8") @ b, rtol=1e-5)
    np.testing.assert_allclose(sycl_mat.matmul(a, b, backend="onemkl"), a.astype("f8") @ b, rtol=1e-5)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


# ---- the BLAS names ------------------------------------------------------------------------------------------------------------------


def _blas() -> ctypes.CDLL:
    # beside the native module, or in the build folder above it
    for folder in list(Path(_core.__file__).resolve().parents)[:3]:
        path = folder / "libsycl_mat_blas.so"
        if path.exists():
            return ctypes.CDLL(str(path))
    pytest.skip("this build has no libsycl_mat_blas.so")


@pytest.mark.parametrize(
    ("name", "dtype", "real"), [("cblas_sgemm", np.float32, ctypes.c_float), ("cblas_dgemm", np.float64, ctypes.c_double)]
)
def test_cblas_names(name: str, dtype: Any, real: Any, random: np.random.Generator) -> None:
    a, b = random.standard_normal((120, 130)).astype(dtype), random.standard_normal((130, 140)).astype(dtype)
    c = np.full((120, 140), np.nan, dtype)
    number, pointer = ctypes.c_int, ctypes.c_void_p
    function = getattr(_blas(), name)
    function.argtypes = [*(number,) * 6, real, pointer, number, pointer, number, real, pointer, number]
    function(101, 111, 111, 120, 140, 130, 1, a.ctypes.data, 130, b.ctypes.data, 140, 0, c.ctypes.data, 140)
    assert_product(c, a, b)
