// Where the CPU's kernels hand over to each other: every number was measured (docs/performance.md says how), and stands here alone.
#pragma once

#include "../problem.hpp"

namespace sycl_mat {

/// Multiply-adds that the calling thread does in the time of a launch (4–5 µs at some 58·10⁹ float32 ones a second, half of it because a
/// second core helps only after that).
constexpr double launch_in_products = 3.5e5;

/// Multiply-adds of one product that cost as much as beginning it.
constexpr double call_in_products = 1e3;

/// Rows, or columns, up to which the skinny kernel works.
constexpr index_t skinny_few = 8;

/// Multiply-adds of the skinny kernel below which another core is not worth its wake-up.
constexpr double skinny_part = 3e4;

/// Whether the skinny kernel beats the packed one. Its dot products end with sums over lanes, which short ones do not repay.
inline bool skinny_pays(const Problem& p) {
  const bool few_rows = p.m <= skinny_few && (p.n > skinny_few || p.m <= p.n);
  if (!few_rows && p.n > skinny_few) return false;
  const bool dots = few_rows ? p.b.transposed : !p.a.transposed;
  return dots ? p.k >= 128 : p.k >= 16;
}

/// Whether one thread is done before two or more, after a launch, would be.
inline bool on_calling_thread(const Problem& p, int compute_units) {
  const double widening = p.dtype == p.accumulator ? 1 : 8;  // converted one by one
  const double size = p.accumulator == DType::float64 ? 2 : 1;
  const double one = double(p.m) * double(p.n) * double(p.k) * size + widening * (double(p.m) * double(p.k) + double(p.k) * double(p.n)) + call_in_products;
  (void)compute_units;
  return double(p.batch()) * one <= launch_in_products;
}

}  // namespace sycl_mat
