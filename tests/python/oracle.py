"""What results are held against: float64, with a bound from K and the dtype."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-24, "bfloat16": 2.0**-24}
RESULT_ROUNDOFF = {"float32": 0.0, "float64": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022, "float16": 2.0**-24, "bfloat16": 2.0**-126}


def bound(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """|C − AB| ≤ γ(K)·|A||B| + u·|AB| (Higham, Accuracy and Stability of Numerical Algorithms, 3.5)."""
    name = a.dtype.name
    k = a.shape[-1]
    gamma = k * ROUNDOFF[name] / (1 - k * ROUNDOFF[name])
    if name == "float64":
        gamma *= 2  # the reference is no better
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    return gamma * (np.abs(a64) @ np.abs(b64)) + RESULT_ROUNDOFF[name] * np.abs(a64 @ b64) + (k + 1) * SMALLEST[name]


def assert_product(c: Any, a: NDArray[Any], b: NDArray[Any]) -> None:
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.shape(c) == np.shape(expected)
    difference = np.abs(np.asarray(c).astype(np.float64) - expected)
    limit = bound(a, b)
    # written so that a NaN fails
    assert np.all(difference <= limit), f"error {np.max(difference / limit):.3g} × the bound, {a.shape} {b.shape} {a.dtype}"


def small_integers(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Values whose products and sums are exact in any float type, for shapes of moderate K."""
    return random.integers(-2, 3, shape).astype(dtype)
