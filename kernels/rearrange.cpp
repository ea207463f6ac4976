// rearrange: D = A, of which kernels want another layout, or lines that begin at multiples of their vectors. No product.
//
//     A, g.lda apart               D: g.m lines of g.n elements, g.ldd apart
//    ┌────────────────────┐       ┌────────────────────┐   A group copies TILE × TILE elements. Lines of one of the two begin anywhere:
//    │     ░░░░░░         │       │                    │   there, neighbouring work-items move neighbouring elements one by one.
//    │     ░░░░░░ TILE    │  ──►  │    ░░░░░░          │
//    │      TILE          │       │    ░░░░░░          │   ALIGNED = 1: D's begin at multiples of vectors, which are written by way of
//    └────────────────────┘       └────────────────────┘   local memory; lines are padded to whole ones, whose last elements are zeros.
//                                                          With TRANS_A = 1, A's lines are D's columns.
//    ALIGNED = 0: what a group writes begins where the caches' lines do, for they write parts of 32 bytes several times slower.
#include "device.hpp"

// constants: begin
constexpr int TILE = 64;    // lines and elements that a group copies
constexpr int ITEMS = 256;  // work-items of a group
constexpr int ALIGNED = 1;  // which of the two has aligned lines: 0 A, 1 D
// constants: end

namespace sycl_mat {

constexpr int BYTES = int(sizeof(in_t)), WIDTH = 16 / BYTES, EACH = TILE * TILE / ITEMS, PER_LINE = TILE / WIDTH;
constexpr int CACHE_LINE = 128 / BYTES;  // elements
struct alignas(16) Elements {
  in_t at[TILE][TILE + (BYTES < 4 ? 4 / BYTES : 1)];  // A's lines; no bank twice, whichever way they are read
};
static local_memory_of<Elements> local;

/// A group's part, of D.
struct Part {
  const in_t* from;
  in_t* to;
  index line, column;
};

SYCL_MAT_INLINE void copy_aligned(const Part& part, const Args& g, int item) {
  auto& tile = contents(local).at;
  in_t x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int along = (item + e * ITEMS) % TILE, across = (item + e * ITEMS) / TILE;
    const index i = part.line + (TRANS_A ? along : across), j = part.column + (TRANS_A ? across : along);
    x[e] = i < g.m && j < g.n ? part.from[TRANS_A ? i + j * g.lda : i * g.lda + j] : in_t(0);
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) tile[(item + e * ITEMS) / TILE][(item + e * ITEMS) % TILE] = x[e];
  barrier();
  for (int v = item; v < TILE * PER_LINE; v += ITEMS) {
    const int i = v / PER_LINE, j = v % PER_LINE * WIDTH;
    Vector<in_t, WIDTH> elements;
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) elements[e] = TRANS_A ? tile[j + e][i] : tile[i][j + e];
    if (part.line + i < g.m && part.column + j < g.n)
      *reinterpret_cast<Vector<in_t, WIDTH>*>(part.to + (part.line + i) * g.ldd + part.column + j) = elements;
  }
}

SYCL_MAT_INLINE void copy_anywhere(const Part& part, const Args& g, int item) {
  in_t x[EACH];
  const auto column_of = [&](int e) SYCL_MAT_LAMBDA {
    const index i = part.line + (item + e * ITEMS) / TILE;
    const index before =
        reinterpret_cast<index>(part.to + i * g.ldd) / BYTES % CACHE_LINE;  // elements between a cache line's begin and this one's
    return part.column + (item + e * ITEMS) % TILE - before;
  };
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const index i = part.line + (item + e * ITEMS) / TILE, j = column_of(e);
    x[e] = i < g.m && j >= 0 && j < g.n ? part.from[i * g.lda + j] : in_t(0);
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const index i = part.line + (item + e * ITEMS) / TILE, j = column_of(e);
    if (i < g.m && j >= 0 && j < g.n) part.to[i * g.ldd + j] = x[e];
  }
}

KERNEL(3) rearrange(const in_t* a, const in_t*, const out_t*, out_t* d, const acc_t*, void*, Args g) {
  const index beyond = ALIGNED ? 0 : CACHE_LINE - 1;
  const index lines = (g.m + TILE - 1) / TILE, columns = (g.n + beyond + TILE - 1) / TILE;
  const index tile = group_id(0) % (lines * columns), matrix = group_id(0) / (lines * columns);
  const index outer = matrix / g.batch_inner, inner = matrix % g.batch_inner;
  const Part part{a + outer * g.a_outer + inner * g.a_inner, reinterpret_cast<in_t*>(d) + outer * g.d_outer + inner * g.d_inner,
                  tile / columns * TILE, tile % columns * TILE};
  if constexpr (ALIGNED)
    copy_aligned(part, g, local_id(0));
  else
    copy_anywhere(part, g, local_id(0));
}

}  // namespace sycl_mat
