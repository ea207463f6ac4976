// Problem: a product whose operands passed every check, in the normal form that kernels and the planner work on.
#pragma once

#include <cstdint>

#include "sycl_mat/gemm.hpp"

namespace sycl_mat {

using index_t = std::int64_t;

/// An operand in normal form: the stride along one axis is 1, the other is `ld` (any sign). `transposed` says which:
/// false: element (i, j) is at data + i·ld + j; true: at data + i + j·ld.
struct Operand {
  void* data = nullptr;
  index_t ld = 0;
  bool transposed = false;
  index_t inner = 0;    ///< elements to the next matrix along the inner batch axis
  index_t outer = 0;    ///< … along the outer batch axis
  bool padded = false;  ///< lines may be read up to ld: a copy that was made for a kernel
};

/// C and D are never transposed: a column-major D was turned into Dᵀ = Bᵀ·Aᵀ (and the bias axis with it).
struct Problem {
  index_t m = 0, n = 0, k = 0;
  index_t batch_outer = 1, batch_inner = 1;
  DType dtype = DType::float32;        ///< of A and B
  DType accumulator = DType::float32;  ///< of sums, alpha, beta, bias: float32 for the 16-bit types, int32 for int8
  DType out = DType::float32;          ///< of C and D
  Operand a, b, c, d;                  ///< c.data is null where beta is 0
  Epilogue epilogue;
  Precision precision = Precision::automatic;

  index_t batch() const { return batch_outer * batch_inner; }
  double flops() const { return 2.0 * double(m) * double(n) * double(k) * double(batch()); }
  bool has_epilogue() const {
    return epilogue.alpha != 1 || epilogue.beta != 0 || epilogue.bias_axis != BiasAxis::none || epilogue.activation != Activation::none;
  }
};

}  // namespace sycl_mat
