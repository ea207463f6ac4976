// rearrange: D = A, of which kernels want another layout, or lines that begin at multiples of their vectors. No product.
//
//        A, as the caller stores it                 D: g.m lines of g.n elements, g.ldd apart
//       ┌────────────────────┐                     ┌────────────────────┐
//       │     ░░░░░░         │   single loads of   │                    │   A group copies TILE × TILE elements by way of local memory:
//       │     ░░░░░░ TILE    │   neighbours, for   │    ░░░░░░          │   neighbouring work-items read neighbours on one side, and
//       │      TILE          │   lines begin       │    ░░░░░░          │   write neighbouring vectors on the other.
//       └────────────────────┘   anywhere          └────────────────────┘
//
// TRANS_A = 1: A's lines are D's columns. Lines of D are padded to whole vectors, whose last elements are zeros.
#include "device.hpp"

// constants: begin
constexpr int TILE = 64;    // lines and elements that a group copies
constexpr int ITEMS = 256;  // work-items of a group
// constants: end

namespace sycl_mat {

constexpr int WIDTH = 16 / int(sizeof(in_t)), EACH = TILE * TILE / ITEMS, PER_LINE = TILE / WIDTH;
struct alignas(16) Elements {
  in_t at[TILE][TILE + (sizeof(in_t) < 4 ? 4 / sizeof(in_t) : 1)];  // A's lines; no bank twice, whichever way they are read
};
static local_memory_of<Elements> local;

KERNEL(3) rearrange(const in_t* a, const in_t*, const out_t*, out_t* d, const acc_t*, void*, Args g) {
  const index lines = (g.m + TILE - 1) / TILE, columns = (g.n + TILE - 1) / TILE;
  const index tile = group_id(0) % (lines * columns), matrix = group_id(0) / (lines * columns);
  const index line = tile / columns * TILE, column = tile % columns * TILE, outer = matrix / g.batch_inner, inner = matrix % g.batch_inner;
  const in_t* from = a + outer * g.a_outer + inner * g.a_inner;
  in_t* to = reinterpret_cast<in_t*>(d) + outer * g.d_outer + inner * g.d_inner;
  const int item = local_id(0);
  auto& tiles = contents(local).at;

  in_t x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int along = (item + e * ITEMS) % TILE, across = (item + e * ITEMS) / TILE;
    const index i = line + (TRANS_A ? along : across), j = column + (TRANS_A ? across : along);
    x[e] = i < g.m && j < g.n ? from[TRANS_A ? i + j * g.lda : i * g.lda + j] : in_t(0);
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) tiles[(item + e * ITEMS) / TILE][(item + e * ITEMS) % TILE] = x[e];
  barrier();
  for (int v = item; v < TILE * PER_LINE; v += ITEMS) {
    const int i = v / PER_LINE, j = v % PER_LINE * WIDTH;
    Vector<in_t, WIDTH> elements;
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) elements[e] = TRANS_A ? tiles[j + e][i] : tiles[i][j + e];
    if (line + i < g.m && column + j < g.n) *reinterpret_cast<Vector<in_t, WIDTH>*>(to + (line + i) * g.ldd + column + j) = elements;
  }
}

}  // namespace sycl_mat
