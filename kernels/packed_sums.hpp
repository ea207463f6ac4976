// What the processor's kernels do with their sums: write-back with everything that can happen on the way, and the adding up of parts of K.
#pragma once

#include "packed_layout.hpp"
#include "vector.hpp"

namespace sycl_mat {

/// Where the sums of the present block of K go, and what is done to them on the way.
struct Target {
  acc_t* sums;  // of element (i0, j0): D itself, or scratch
  index sums_ld;
  index i0, j0;
  out_t* d;  // D's and C's element (0, 0)
  const out_t* c;
  const acc_t* bias;
  index ldc, ldd;
  acc_t alpha, beta;
  bool add;     // sums of earlier blocks are there
  bool with_c;  // beta·C is still to be added
  bool last;    // after this block the results are complete
  bool direct;  // nothing is done to the sums but store or add

  acc_t* at(index i, index j) const { return sums + (i - i0) * sums_ld + (j - j0); }
};

/// The way of sums (rows × cols in `from`) that need more than a store: edges, C, bias, activation, narrowing.
SYCL_MAT_CALL void write_back(const acc_t* from, int from_ld, const Target& t, index i0, index j0, int rows, int cols) {
#pragma clang loop unroll(disable)
  for (int r = 0; r < rows; ++r) {
    const index i = i0 + r;
#pragma clang loop unroll(disable)
    for (int q = 0; q < cols; q += WIDTH) {
      const index j = j0 + q;
      const int count = cols - q < WIDTH ? cols - q : WIDTH;
      const bool whole = count == WIDTH;
      acc_t* s = t.at(i, j);
      vec x = load(from + r * from_ld + q);
      if (t.add) {
        x = multiply_add(splat(t.alpha), x, whole ? load(s) : load_some(s, count));
      } else {
        x = splat(t.alpha) * x;
      }
      if constexpr (BETA)
        if (t.with_c) x = multiply_add(splat(t.beta), whole ? load_c(t.c + i * t.ldc + j) : load_c_some(t.c + i * t.ldc + j, count), x);
      if (t.last) {
        x = finish(x, i, j, t.bias, count);
        if (whole)
          store_d(t.d + i * t.ldd + j, x);
        else
          store_d_some(t.d + i * t.ldd + j, x, count);
      } else if (whole) {
        store(s, x);
      } else {
        store_some(s, x, count);
      }
    }
  }
}

/// Block `part` of `parts` of `count` things, where whole multiples of `unit` are dealt out evenly.
SYCL_MAT_INLINE index share(index count, index unit, index part, index parts) {
  const index units = (count + unit - 1) / unit;
  return min(units * part / parts * unit, count);
}

/// One of the batch × split_m × split_n × split_k blocks of D that the work-groups share.
struct BlockOfD {
  index batch, m, n, k;  // which one
  index i0, i1, j0, j1;  // its rows and columns
};
/// Neighbours share columns of B and part of K: a group that takes several finds them in its caches. Rows are dealt out in panels of mr,
/// columns in panels of nr where that is even enough, and in vectors elsewhere.
SYCL_MAT_INLINE BlockOfD block_of_d(const Args& g, index number, int mr, int nr) {
  BlockOfD x;
  const index blocks_of_d = g.split_m * g.split_n;
  x.m = number % g.split_m, x.n = number / g.split_m % g.split_n;
  x.k = number / blocks_of_d % g.split_k, x.batch = number / (blocks_of_d * g.split_k);
  x.i0 = share(g.m, mr, x.m, g.split_m), x.i1 = share(g.m, mr, x.m + 1, g.split_m);
  const index column_unit = g.n >= 4 * g.split_n * nr ? nr : WIDTH;
  x.j0 = share(g.n, column_unit, x.n, g.split_n), x.j1 = share(g.n, column_unit, x.n + 1, g.split_n);
  return x;
}

/// Adds the groups' sums in the order of their parts of K, and finishes the block of D.
SYCL_MAT_CALL void add_parts(const acc_t* parts, index part_stride, index m_ld, const Target& t, index splits, const BlockOfD& block) {
  for (index i = block.i0; i < block.i1; ++i)
#pragma clang loop unroll(disable)
    for (index j = block.j0; j < block.j1; j += WIDTH) {
      const int count = int(min(WIDTH, block.j1 - j));
      const acc_t* s = parts + i * m_ld + j;
      vec x = count == WIDTH ? load(s) : load_some(s, count);
#pragma clang loop unroll(disable)
      for (index z = 1; z < splits; ++z) x += count == WIDTH ? load(s + z * part_stride) : load_some(s + z * part_stride, count);
      x = finish(x, i, j, t.bias, count);
      if (count == WIDTH)
        store_d(t.d + i * t.ldd + j, x);
      else
        store_d_some(t.d + i * t.ldd + j, x, count);
    }
}

/// The whole kernel: groups of one work-item, along one dimension; the blocks are dealt to them in order. compute(matrices, target, the
/// group's own scratch, block) leaves the block's sums over its part of K where the target says. counters: ints, zero between launches,
/// that the kernel itself needs at the beginning of scratch where K is not shared.
template <class Compute>
SYCL_MAT_INLINE void for_blocks_of_d(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void* scratch,
                                     const Args& g, int mr, int nr, index counters_of_kernel, Compute compute) {
  const index group = group_id(0), groups = group_count(0);
  const index blocks_of_d = g.split_m * g.split_n, blocks = g.batch * blocks_of_d * g.split_k;
  const index counter_bytes = packed_counter_bytes(g.split_k > 1 ? g.batch * blocks_of_d : counters_of_kernel);
  int* counters = static_cast<int*>(scratch);
  acc_t* memory = reinterpret_cast<acc_t*>(static_cast<char*>(scratch) + counter_bytes);
  acc_t* own = memory + group * g.scratch_stride;
  const index first = blocks * group / groups, end = blocks * (group + 1) / groups;
  for (index number = first; number < end; ++number) {
    const BlockOfD block = block_of_d(g, number, mr, nr);
    const Matrices x = matrices(a, b, c, d, g, int(block.batch));
    Target t{};
    t.d = x.d, t.c = x.c, t.bias = bias, t.ldc = g.ldc, t.ldd = g.ldd, t.alpha = g.alpha, t.beta = g.beta;
    const index part_stride = g.m * g.n;
    acc_t* parts = memory + groups * g.scratch_stride + block.batch * g.split_k * part_stride;
    if (g.split_k > 1) {
      t.sums = parts + block.k * part_stride, t.sums_ld = g.n;
    } else {
      t.sums = reinterpret_cast<acc_t*>(x.d), t.sums_ld = g.ldd;
    }
    compute(x, t, own, block);
    if (g.split_k > 1) {
      int* counter = counters + block.batch * blocks_of_d + block.m + block.n * g.split_m;
      if (fetch_add(counter, 1) == g.split_k - 1) {
        *counter = 0;
        add_parts(parts, part_stride, g.n, t, g.split_k, block);
      }
    }
  }
}

}  // namespace sycl_mat
