// How one product (or a stack) is dealt out to the cores of a CPU device.
#pragma once

#include "../kernel.hpp"

namespace sycl_mat {

/// Whether kernels are built for an x86 processor, whose instruction for fetching a cache line ahead they know.
#if defined(__x86_64__) || defined(_M_X64)
constexpr int x86 = 1;
#else
constexpr int x86 = 0;
#endif

struct CpuSplit {
  index_t m = 1, n = 1, k = 1;  ///< parts along each size
  index_t groups = 1;           ///< work-groups that share batch·m·n·k parts
  double cost = 0;              ///< vector multiply-adds of the busiest group, everything else converted to such
};

/// What one part costs besides its products.
struct CpuCosts {
  int mr = 6, width = 16, nr = 64;
  double pack_b = 0.5;   ///< a vector of B made ready
  double pack_a = 0;     ///< a vector of A made ready
  double read_a = 0.25;  ///< a vector of A fetched by one more core
  double write = 2;      ///< a vector of D written
  double cut_m = 0;      ///< share by which products slow down where M is cut
  bool may_split_k = true;
};

/// The cheapest way to keep `cores` busy: along M, N, K or several of them.
CpuSplit split_for_cores(const Problem& p, int cores, const CpuCosts& costs);

/// The launch's range and the parts of M, N and K, for `plan` to say.
void set_split(Plan& plan, const CpuSplit& split);

/// Scratch for so many work-groups of `stride` accumulators each, and, where K is shared (plan.split_k), for counters and partial sums: as
/// for_blocks_of_d (kernels/packed_sums.hpp) finds them. counters: ints that the kernel itself needs where K is not shared.
void set_scratch(Plan& plan, const Problem& p, index_t groups, index_t stride, index_t counters = 0);

}  // namespace sycl_mat
