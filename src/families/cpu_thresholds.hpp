// Where the CPU's kernels hand over to each other: every number was measured (docs/performance.md says how), and stands here alone.
#pragma once

#include <algorithm>

#include "../problem.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// Multiply-adds that the calling thread does in the time of a launch (4–5 µs at some 58·10⁹ float32 ones a second, half of it because a
/// second core helps only after that).
constexpr double launch_in_products = 3.5e5;

/// Multiply-adds from which the calling thread lets a helper take part (host_team.hpp).
constexpr double team_in_products = 1.3e5;

/// Multiply-adds of one product that cost as much as beginning it.
constexpr double call_in_products = 1e3;

/// Rows, or columns, up to which the skinny kernel works.
constexpr index_t skinny_few = 8;

/// Multiply-adds of the skinny kernel below which another core is not worth its wake-up.
constexpr double skinny_part = 3e4;

/// Rows of one operand up to which the host path computes dot products instead of register blocks.
constexpr index_t most_dots = 4;

/// A sum of a part of K meets the others only when it is complete: the error then grows with the longest part and the number of parts,
/// not with K (at K = 10⁷ and positive operands: 3·10⁻³ without).
constexpr index_t longest_sum = 1 << 14;

/// Bytes of both operands up to which register blocks on the calling thread and its team beat a launch of the skinny kernel.
constexpr double cached_bytes = 1.5e6;

/// Whether the host path computes dot products: both operands lie along K.
inline bool host_takes_dots(const Problem& p) {
  return !p.a.transposed && p.b.transposed && std::min(p.m, p.n) <= most_dots && p.dtype == p.accumulator;
}

/// Rows or columns of the result up to which the host path scales and adds the long operand's rows; of more the skinny kernel does it
/// better.
constexpr index_t most_rows = 2;

/// Whether A has few rows and B's lie along the results …
inline bool few_rows_of_b(const Problem& p) { return p.m <= most_rows && !p.b.transposed; }

/// … or B has few columns and A's do, and the long operand is beyond the caches: then the host path scales its rows and adds them.
inline bool host_takes_rows(const Problem& p) {
  if (p.dtype != p.accumulator || (p.dtype != DType::float32 && p.dtype != DType::float64)) return false;
  if (!few_rows_of_b(p) && !(p.n <= most_rows && p.a.transposed)) return false;
  const double elements = (double(p.m) + double(p.n)) * double(p.k);
  return p.k >= 16 && elements * double(size_of(p.accumulator)) > cached_bytes;
}

/// Whether the skinny kernel beats the packed one. Its dot products end with sums over lanes, which short ones do not repay; but the fewer
/// there are, the more of packed's vectors are empty.
inline bool skinny_pays(const Problem& p) {
  const bool few_rows = p.m <= skinny_few && (p.n > skinny_few || p.m <= p.n);
  if (!few_rows && p.n > skinny_few) return false;
  const bool dots = few_rows ? p.b.transposed : !p.a.transposed;
  return p.k >= (dots ? 16 * std::max<index_t>(1, few_rows ? p.m : p.n) : 16);
}

/// Bytes of B up to which reading it in place, row panel after row panel, stays as fast as a packed copy: it lies in the second cache.
constexpr double b_in_place_bytes = 1.1e6;

/// Multiply-adds of one product up to which the host path is ahead of a launch with as many threads; from there on the packed kernel's
/// blocks are as good, and every core takes part.
constexpr double host_most_products = 1.35e8;

/// … and from this many on only where all three matrices lie in the second caches (12800×32×90: 192 GFLOP/s here, 218 packed).
constexpr double host_streamed_products = 2.2e7;
constexpr double host_cached_bytes = 3.2e6;

/// The same for numbers that are widened: transposed A by more than one member of the team, int8, and bfloat16 where the device has dot
/// products for it.
constexpr double host_most_transposed = 4e6, host_most_int8 = 2e7, host_before_dots = 1.6e6;

/// Threads of the host path's team at most, the caller included (host_team.cpp).
constexpr int team_threads = 4;

/// Bytes of operands and results beyond which no cache keeps the results for whoever reads them next: then they go past the caches, and
/// memory need not deliver the lines that they fill.
constexpr double streamed_bytes = 64e6;

/// Multiply-adds up to which the host path is ahead, by what it does to the operands.
inline double host_most(const Problem& p, const DeviceInfo& device) {
  if (p.dtype == p.accumulator) return host_most_products;
  if (p.dtype == DType::bfloat16 && device.has_bfloat16_dots && p.precision != Precision::ieee) return host_before_dots;
  if (p.a.transposed || (p.dtype == DType::int8 && p.b.transposed)) return host_most_transposed;
  return p.dtype == DType::int8 ? host_most_int8 : host_most_products;
}

/// Whether the calling thread and its team are done before a launch on all cores would be.
inline bool on_calling_thread(const Problem& p, const DeviceInfo& device) {
  const double mk = double(p.m) * double(p.k), kn = double(p.k) * double(p.n), mn = double(p.m) * double(p.n);
  const double size = p.accumulator == DType::float64 ? 2 : 1;
  // What is converted, transposed or finished, in multiply-adds an element.
  const double converted = p.dtype == p.accumulator ? (p.b.transposed ? kn : 0) : 4 * (mk + kn + mn);
  const double finished = p.epilogue.activation > Activation::relu ? 200 * mn : p.has_epilogue() ? 4 * mn : 0;
  const bool dots = host_takes_dots(p);
  const double all = double(p.batch()) * (mk * double(p.n) * size + converted + finished + call_in_products);
  if (all <= launch_in_products) return true;
  if (p.epilogue.activation > Activation::relu) return false;
  if (!host_takes_rows(p)) {
    const double element = double(size_of(p.accumulator)), work = mk * double(p.n) * size, bytes = (mk + kn + mn) * element;
    if (kn * element > b_in_place_bytes && !dots) return false;
    if (work > host_most(p, device) || (work > host_streamed_products && bytes > host_cached_bytes)) return false;
    if (skinny_pays(p) && !dots && (mk + kn) * element > cached_bytes) return false;
  }
  // Beyond that a launch pays off only by the cores that the team has not.
  const double cores = std::max(1, device.compute_units), team = std::min<double>(cores, team_threads);
  return cores <= team || all <= launch_in_products / (1 / team - 1 / cores);
}

}  // namespace sycl_mat
