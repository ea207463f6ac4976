// How the packed kernel lays out its scratch: read by the host, which allocates it, and by the kernel, which uses it.
//
//   | counters (only where K is split or cores help each other) | work-group 0 | work-group 1 | … | partial sums (only where K is split) |
//   a work-group: | panels of B, kc × nc | rows of A, a_rows × (kc + pad) | float32 sums of a block of D (16-bit types) |
#pragma once

namespace sycl_mat {

/// Bytes of so many counters, filled up to a cache line.
inline long long packed_counter_bytes(long long counters) { return (counters * 4 + 63) / 64 * 64; }

/// Whether work-groups help each other at the end, and the counters that they need for it: see packed.cpp. Each has one block of D, whose
/// panels of B stay in its scratch; short products are done before a core that came late could be helped.
inline bool packed_helps(long long m, long long n, long long k, long long batch, long long blocks_of_d, long long split_k,
                         long long groups) {
  return batch == 1 && split_k == 1 && groups > 1 && groups == blocks_of_d && double(m) * double(n) * double(k) >= 1e8;
}
inline long long packed_help_counters(long long groups) { return 16 * (1 + groups); }

/// Rows of A that are made ready together where A cannot be read in place: whole transposed blocks, whole micro-panels of 4, 6, 8, 12.
constexpr int packed_a_rows = 48;
/// Rows whose sums wait in the scratch of packed_bf16: whole row panels of 6.
constexpr int packed_bf16_sum_rows = 1020;
/// Elements that keep rows of A, a power of two apart otherwise, out of one set of the cache.
constexpr int packed_a_pad = 16;

struct PackedLayout {
  long long a;         ///< where A's rows begin, in elements from the work-group's beginning
  long long sums;      ///< where the sums begin
  long long sums_ld;   ///< elements between their rows
  long long elements;  ///< in all
};

/// For a work-group that computes at most m × n results over k products, in blocks of at most mc × nc and depth kc. nr: columns of a
/// panel; pack_a: A cannot be read in place; keep_sums: D cannot hold partial sums.
inline PackedLayout packed_layout(long long m, long long n, long long k, int mc, int nc, int kc, int nr, bool pack_a, bool keep_sums) {
  const auto smaller = [](long long a, long long b) { return a < b ? a : b; };
  const long long depth = smaller(k, kc), columns = (smaller(n, nc) + nr - 1) / nr * nr, rows = mc > 0 ? smaller(m, mc) : m;
  PackedLayout layout{};
  layout.a = (depth * columns + 63) / 64 * 64;
  layout.sums = layout.a + (pack_a ? packed_a_rows * (depth + packed_a_pad) : 0);
  layout.sums_ld = columns;
  layout.elements = (layout.sums + (keep_sums && k > kc ? rows * columns : 0) + 63) / 64 * 64;
  return layout;
}

}  // namespace sycl_mat
