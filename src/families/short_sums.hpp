// What the kernels that multiply float32 by way of TF32 leave to multiply-adds.
#pragma once

#include <string>

#include "../problem.hpp"

namespace sycl_mat {

/// Below so many terms, what splitting loses can be more than what float32 sums lose: measured on numbers of widely different size, see
/// docs/nvidia.md.
constexpr index_t shortest_sum = 256;

/// Why a float32 product has sums too short for that; empty: it has not.
inline std::string why_short_sums(const Problem& p) {
  if (p.precision != Precision::automatic || p.k >= shortest_sum) return {};
  return "sums of fewer than " + std::to_string(shortest_sum) +
         " terms can be more accurate by multiply-adds (precision \"tf32\" allows them)";
}

}  // namespace sycl_mat
