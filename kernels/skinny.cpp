// Products with at most eight rows, or at most eight columns: matrix-vector products among them. The long operand is read once, as it
// lies, at the speed of memory; the FEW vectors of the small one stay in the caches.
//
//   SIDE 0: D (FEW × n) = A·B, long operand B        SIDE 1: D (m × FEW) = A·B, long operand A
//
//   The long operand lies along K:  dot products.     … lies along the results:  rows of it are scaled and added,
//   ┌──────── K ────────┐ ┌ x₀ ┐                      ┌──── results ────┐
//   │ ROWS rows at once │ │ x₁ │ FEW vectors          │ DEPTH rows of K │ × one element of each of the FEW vectors;
//   └───────────────────┘ └────┘                      └─────────────────┘   the sums are in the second cache
//
// Sums of a chunk of results are complete before bias, activation and C are seen to. Groups may share K, as in the packed kernel.
#include "packed_layout.hpp"
#include "skinny_layout.hpp"
#include "vector.hpp"

// constants: begin
constexpr int SIDE = 0;
constexpr int FEW = 1;
// constants: end

namespace sycl_mat {

constexpr bool long_along_k = SIDE == 0 ? TRANS_B != 0 : TRANS_A == 0;
constexpr bool small_along_k = SIDE == 0 ? TRANS_A == 0 : TRANS_B != 0;
constexpr bool small_in_place = small_along_k && same_type;

// Dot products: rows of the long operand at once, so that FEW × ROWS independent sums hide the latency of multiply-adds.
constexpr int ROWS = FEW <= 4 ? 4 : 3;
// Scaled rows: vectors of results in registers, and rows of the long operand between two visits to the sums. Sixteen streams are what
// the hardware prefetcher follows; rows a power of two apart leave room for no more in the first cache.
constexpr int VECTORS = FEW <= 2 ? 4 : 2;
constexpr int DEPTH = FEW <= 2 ? 8 : 16;
// How many such blocks of a row ahead of its use it is fetched: the hardware's prefetchers begin anew at every page.
constexpr int AHEAD = FEW <= 2 ? 1 : 2;

struct Few {
  const acc_t* x;  ///< FEW vectors, each contiguous
  index ld;
};

/// Lanes of `x` from `first` on, zeros before.
SYCL_MAT_INLINE vec from_lane(vec x, int first) {
  acc_t buffer[WIDTH];
  store(buffer, x);
#pragma clang loop unroll(disable) vectorize(disable)
  for (int l = 0; l < first; ++l) buffer[l] = 0;
  return load(buffer);
}

/// R rows of the long operand, contiguous along K, against FEW vectors. sums[t·ld + r].
template <int R>
SYCL_MAT_CALL void dot_products(const in_t* rows, index rows_ld, const Few& few, index depth, acc_t* sums, index ld) {
  vec sum[R][FEW];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int t = 0; t < FEW; ++t) sum[r][t] = splat(0);
  index k = 0;
#pragma clang loop unroll(disable)
  for (; k + WIDTH <= depth; k += WIDTH) {
    vec row[R];
#pragma unroll
    for (int r = 0; r < R; ++r) row[r] = load_wide(rows + r * rows_ld + k);
#pragma unroll
    for (int t = 0; t < FEW; ++t) {
      const vec x = load(few.x + t * few.ld + k);
#pragma unroll
      for (int r = 0; r < R; ++r) sum[r][t] = multiply_add(row[r], x, sum[r][t]);
    }
  }
  const int rest = int(depth - k);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int t = 0; t < FEW; ++t) {
      acc_t s = sum_of_lanes(sum[r][t]);
#pragma clang loop unroll(disable) vectorize(disable)
      for (int q = 0; q < rest; ++q) s = multiply_add(widen(rows[r * rows_ld + k + q]), few.x[t * few.ld + k + q], s);
      sums[t * ld + r] = s;
    }
}

/// V vectors of results from `depth` rows of the long operand, contiguous along the results.
template <int V>
SYCL_MAT_INLINE void scaled_rows(const in_t* rows, index rows_ld, const acc_t* x, index x_ld, int depth, acc_t* sums, index ld, bool add) {
  vec sum[FEW][V];
#pragma unroll
  for (int t = 0; t < FEW; ++t)
#pragma unroll
    for (int v = 0; v < V; ++v) sum[t][v] = add ? load(sums + t * ld + v * WIDTH) : splat(0);
#pragma clang loop unroll(disable)
  for (int k = 0; k < depth; ++k) {
    vec row[V];
#pragma unroll
    for (int v = 0; v < V; ++v) row[v] = load_wide(rows + v * WIDTH);
#pragma unroll
    for (int v = 0; v < V; ++v) fetch(rows + (v + AHEAD * V) * WIDTH);
    rows += rows_ld;
#pragma unroll
    for (int t = 0; t < FEW; ++t) {
      const vec element = splat(x[t * x_ld + k]);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[t][v] = multiply_add(element, row[v], sum[t][v]);
    }
  }
#pragma unroll
  for (int t = 0; t < FEW; ++t)
#pragma unroll
    for (int v = 0; v < V; ++v) store(sums + t * ld + v * WIDTH, sum[t][v]);
}

/// The last, partial vector of results.
SYCL_MAT_CALL void scaled_rows_some(const in_t* rows, index rows_ld, const acc_t* x, index x_ld, int depth, acc_t* sums, index ld, bool add,
                                    int count) {
#pragma clang loop unroll(disable) vectorize(disable)
  for (int t = 0; t < FEW; ++t)
#pragma clang loop unroll(disable) vectorize(disable)
    for (int q = 0; q < count; ++q) {
      acc_t s = add ? sums[t * ld + q] : acc_t(0);
#pragma clang loop unroll(disable) vectorize(disable)
      for (int k = 0; k < depth; ++k) s = multiply_add(x[t * x_ld + k], widen(rows[k * rows_ld + q]), s);
      sums[t * ld + q] = s;
    }
}

/// Sums of `count` results from `first` on over products [k0, k1). `x` begins at k0.
SYCL_MAT_CALL void chunk_sums(const Matrices& matrices, const Args& g, const Few& few, index first, int count, index k0, index k1,
                              acc_t* sums, index ld) {
  const index rows_ld = SIDE == 0 ? g.ldb : g.lda;
  if constexpr (long_along_k) {
    const in_t* rows = SIDE == 0 ? matrices.b + k0 : matrices.a + k0;
    int s = 0;
    for (; s + ROWS <= count; s += ROWS) dot_products<ROWS>(rows + (first + s) * rows_ld, rows_ld, few, k1 - k0, sums + s, ld);
    for (; s < count; ++s) dot_products<1>(rows + (first + s) * rows_ld, rows_ld, few, k1 - k0, sums + s, ld);
  } else {
    const in_t* rows = (SIDE == 0 ? matrices.b : matrices.a) + first;
    const acc_t* x = few.x;
    bool add = false;
    for (index k = k0; k < k1 || !add; k += DEPTH, x += DEPTH) {
      const int depth = int(min(DEPTH, k1 - k));
      const in_t* block = rows + k * rows_ld;
      int s = 0;
      for (; s + VECTORS * WIDTH <= count; s += VECTORS * WIDTH)
        scaled_rows<VECTORS>(block + s, rows_ld, x, few.ld, depth, sums + s, ld, add);
      for (; s + WIDTH <= count; s += WIDTH) scaled_rows<1>(block + s, rows_ld, x, few.ld, depth, sums + s, ld, add);
      if (s < count) scaled_rows_some(block + s, rows_ld, x, few.ld, depth, sums + s, ld, add, count - s);
      add = true;
    }
  }
}

/// Finished sums to D.
SYCL_MAT_CALL void write_chunk(const Matrices& matrices, const Args& g, const acc_t* bias, index first, int count, const acc_t* sums,
                               index ld) {
  if constexpr (SIDE == 0) {
    for (int t = 0; t < FEW; ++t)
#pragma clang loop unroll(disable)
      for (int s = 0; s < count; s += WIDTH) {
        const int some = count - s < WIDTH ? count - s : WIDTH;
        const index j = first + s;
        vec x = splat(g.alpha) * (some == WIDTH ? load(sums + t * ld + s) : load_some(sums + t * ld + s, some));
        if constexpr (BETA != 0) {
          const out_t* c = matrices.c + t * g.ldc + j;
          x = multiply_add(splat(g.beta), some == WIDTH ? load_c(c) : load_c_some(c, some), x);
        }
        x = finish(x, t, j, bias, some);
        if (some == WIDTH)
          store_d(matrices.d + t * g.ldd + j, x);
        else
          store_d_some(matrices.d + t * g.ldd + j, x, some);
      }
  } else {
#pragma clang loop unroll(disable) vectorize(disable)
    for (int s = 0; s < count; ++s)
#pragma clang loop unroll(disable) vectorize(disable)
      for (int t = 0; t < FEW; ++t) {
        const index i = first + s;
        matrices.d[i * g.ldd + t] = epilogue(sums[t * ld + s], i, t, matrices.c, bias, g);
      }
  }
}

/// The small operand's vectors over [k0, k1), contiguous.
SYCL_MAT_INLINE Few small_operand(const Matrices& matrices, const Args& g, index k0, index k1, acc_t* copy) {
  const in_t* from = SIDE == 0 ? matrices.a + at_a(g, 0, k0) : matrices.b + at_b(g, k0, 0);
  const index ld = SIDE == 0 ? g.lda : g.ldb;
  if constexpr (small_in_place) return {reinterpret_cast<const acc_t*>(from), ld};
  const index depth = k1 - k0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (index k = 0; k < depth; ++k)
#pragma clang loop unroll(disable) vectorize(disable)
    for (int t = 0; t < FEW; ++t) copy[t * depth + k] = widen(small_along_k ? from[t * ld + k] : from[k * ld + t]);
  return {copy, depth};
}

}  // namespace sycl_mat

/// One range dimension: groups of one work-item. The batch × split_m × split_k blocks are dealt to them in order; split_m cuts the results
/// along the long side, whichever that is.
KERNEL(3)
skinny(const sycl_mat::in_t* a, const sycl_mat::in_t* b, const sycl_mat::out_t* c, sycl_mat::out_t* d, const sycl_mat::acc_t* bias,
       void* scratch, sycl_mat::Args g) {
  using namespace sycl_mat;
  const index group = group_id(0), groups = group_count(0);
  const index blocks = g.batch * g.split_m * g.split_k, results = SIDE == 0 ? g.n : g.m;
  const index counter_bytes = g.split_k > 1 ? packed_counter_bytes(g.batch * g.split_m) : 0;
  int* counters = static_cast<int*>(scratch);
  acc_t* memory = reinterpret_cast<acc_t*>(static_cast<char*>(scratch) + counter_bytes);
  acc_t* own = memory + group * g.scratch_stride;
  const SkinnyLayout layout = skinny_layout(FEW, (g.k + g.split_k - 1) / g.split_k, !small_in_place);
  const index first_block = blocks * group / groups, end = blocks * (group + 1) / groups;
  for (index block = first_block; block < end; ++block) {
    const index part = block % g.split_m, ki = block / g.split_m % g.split_k, batch = block / (g.split_m * g.split_k);
    const Matrices x = matrices(a, b, c, d, g, int(batch));
    // Whole vectors of results, so that no two groups write into one cache line of an aligned D.
    const index units = (results + WIDTH - 1) / WIDTH;
    const index s0 = min(units * part / g.split_m * WIDTH, results), s1 = min(units * (part + 1) / g.split_m * WIDTH, results);
    const index k0 = g.k * ki / g.split_k, k1 = g.k * (ki + 1) / g.split_k;
    const Few few = small_operand(x, g, k0, k1, own);
    acc_t* parts = memory + groups * g.scratch_stride + batch * g.split_k * FEW * results;
    for (index s = s0; s < s1; s += skinny_chunk) {
      const int count = int(min(skinny_chunk, s1 - s));
      if (g.split_k > 1) {
        chunk_sums(x, g, few, s, count, k0, k1, parts + ki * FEW * results + s, results);
      } else {
        chunk_sums(x, g, few, s, count, k0, k1, own + layout.sums, skinny_chunk);
        write_chunk(x, g, bias, s, count, own + layout.sums, skinny_chunk);
      }
    }
    if (g.split_k > 1) {
      int* counter = counters + batch * g.split_m + part;
      if (fetch_add(counter, 1) == g.split_k - 1) {
        *counter = 0;
        for (int t = 0; t < FEW; ++t)
          for (index s = s0; s < s1; ++s)
            for (index z = 1; z < g.split_k; ++z) parts[t * results + s] += parts[(z * FEW + t) * results + s];
        for (index s = s0; s < s1; s += skinny_chunk) write_chunk(x, g, bias, s, int(min(skinny_chunk, s1 - s)), parts + s, results);
      }
    }
  }
}
