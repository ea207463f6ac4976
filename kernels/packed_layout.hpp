// How the packed kernel lays out its scratch: read by the host, which allocates it, and by the kernel, which uses it.
//
//   | counters, one int a block of D (only where K is split) | work-group 0 | work-group 1 | … | partial sums (only where K is split) |
//   a work-group: | panels of B, kc × nc | rows of A, a_rows × (kc + pad) | float32 sums of a block of D (16-bit types) |
#pragma once

namespace sycl_mat {

/// Bytes of `blocks` counters, filled up to a cache line.
inline long long packed_counter_bytes(long long blocks) { return (blocks * 4 + 63) / 64 * 64; }

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
