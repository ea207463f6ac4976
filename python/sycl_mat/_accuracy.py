"""How far a product may be from the exact one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._array import Array
from ._creation import as_operand
from ._operands import check_kernel_type, promote

#: unit roundoff of the accumulator
_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-24, "bfloat16": 2.0**-24}
#: unit roundoff of the result's type, where it is narrower than the accumulator
_RESULT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
#: what a term, a sum, or the result may lose where it is smaller than every normal number (devices may flush such to zero)
_UNDERFLOW = {"float32": 2.0**-126, "float64": 2.0**-1022, "float16": 2.0**-126, "bfloat16": 2.0**-126}
_RESULT_UNDERFLOW = {"float16": 2.0**-14, "bfloat16": 2.0**-126}
#: unit roundoff of an operand in a TF32 unit
_TF32 = 2.0**-11


def _on_host(x: Any) -> NDArray[Any]:
    operand = as_operand(x)
    return operand.numpy() if isinstance(operand, Array) else np.asarray(operand)


def error_bound(a: Any, b: Any, *, precision: str | None = None) -> Any:
    """The componentwise bound on |computed − exact| that every kernel of ours keeps for ``matmul(a, b)``; float64, of the result's shape.

    a, b: as for ``matmul``. precision: as for ``matmul``; "tf32" adds the rounding of the operands.

    With u the unit roundoff of the accumulator (2⁻²⁴; float64: 2⁻⁵³) and γ(K) = K·u / (1 − K·u), whatever the order of the sum,
    |C − A·B| ≤ γ(K)·|A|·|B| (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, equations 3.4 and 3.13).
    Added to it: the rounding of a float16 or bfloat16 result, u′·|A·B|, and what is lost below the smallest normal number. Products of
    int8 are exact as long as the sums fit int32: their bound is 0.
    Holds for finite operands whose products and sums do not overflow. Raises UnsupportedError where ``matmul`` does.
    """
    left, right = _on_host(a), _on_host(b)
    common = promote(left.dtype, right.dtype)
    check_kernel_type(common)
    # Converted first to what the product computes with: that conversion is the caller's choice of types.
    left, right = (x.astype(common).astype(np.float64) for x in (left, right))
    sums = np.matmul(np.abs(left), np.abs(right))
    if common == np.int8:
        return np.zeros_like(sums)[()]
    name, depth = common.name, left.shape[-1]
    if depth * _ROUNDOFF[name] >= 1:
        return np.full_like(sums, np.inf)[()]
    gamma = _gamma(depth, _ROUNDOFF[name])
    own = _gamma(depth, 2.0**-53)  # the error of the sums computed here
    sums = sums * (1 + 2 * own)
    bound = gamma * sums + 2 * depth * _UNDERFLOW[name]
    if precision == "tf32" and name == "float32":
        bound = bound + (2 * _TF32 + _TF32**2) * (1 + gamma) * sums
    if name in _RESULT_ROUNDOFF:
        exact = np.abs(np.matmul(left, right)) + own * sums
        bound = bound + _RESULT_ROUNDOFF[name] * (exact + bound) + _RESULT_UNDERFLOW[name] * _RESULT_ROUNDOFF[name]
    return bound[()]


def _gamma(depth: int, roundoff: float) -> float:
    return depth * roundoff / (1 - depth * roundoff)
