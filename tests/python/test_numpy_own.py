"""NumPy's own tests of matmul, with ours in its place, for the dtypes that have a kernel."""

from typing import Any

import numpy as np
import pytest

import sycl_mat

try:
    from numpy._core.tests import test_multiarray as theirs
except ImportError:
    try:
        from numpy.core.tests import test_multiarray as theirs  # type: ignore[import-not-found,no-redef]
    except ImportError:
        pytest.skip("this NumPy comes without its tests", allow_module_level=True)

ours = staticmethod(sycl_mat.matmul)


class _AtLeastFloat32:
    """In place of bool in the parts of the tests that are outside their loops over dtypes."""

    def __call__(self, a: Any, b: Any, *rest: Any, **more: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype == bool and b.dtype == bool:
            return np.matmul(a, b, *rest, **more)
        return sycl_mat.matmul(a, b, *rest, **more)


class TestMatmulCommon(theirs.MatmulCommon):  # type: ignore[misc,name-defined]
    types = "efd"
    matmul = _AtLeastFloat32()


@pytest.mark.parametrize("name", ["test_out_arg", "test_empty_out", "test_out_contiguous"])
def test_out(name: str) -> None:
    case = theirs.TestMatmul()  # type: ignore[attr-defined]
    case.matmul = sycl_mat.matmul
    getattr(case, name)()


@pytest.mark.parametrize("args", list(theirs.TestMatmul.test_dot_equivalent.pytestmark[0].args[1]))  # type: ignore[attr-defined]
def test_dot_equivalent(args: Any) -> None:
    np.testing.assert_equal(sycl_mat.matmul(*args), np.dot(*args))
