// Step 2, tiles in local memory: what a work-group needs in common is read from global memory once.
//
// A work-group of TILE_M × TILE_N work-items computes a block of as many results. It walks along k in steps of TILE_K: all
// work-items together copy one tile of A and one of B into local memory, wait for each other, and then read from there.
//
//                                          TILE_N
//                                        ┌────────┐
//                                 TILE_K │ tile b │  ↓ next
//                                        ├────────┤
//                                        :        :
//              TILE_K     → next         :        :
//             ┌────────┬ ─ ─ ─ ─         ┌────────┐
//      TILE_M │ tile a │                 │  ·     │  each work-item (·) owns one result and reads
//             └────────┴ ─ ─ ─ ─         └────────┘  one row of tile a and one column of tile b
//
// An element of A now leaves global memory once for TILE_N results instead of once for each. What is left: two loads from local
// memory for one multiply-add. Step 3 takes care of that.
#include "device.hpp"

// constants: begin
constexpr int TILE_M = 16;  // work-items of a group along M = rows of its block
constexpr int TILE_N = 16;  // work-items of a group along N = columns of its block
constexpr int TILE_K = 16;  // depth of a tile
// constants: end

namespace sycl_mat {

struct alignas(64) Tiles {
  acc_t a[TILE_M][TILE_K];
  acc_t b[TILE_K][TILE_N];
};
static local_memory_of<Tiles> tiles;

KERNEL(3) tiled_local(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void*, Args g) {
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, group_id(2));
  auto& [tile_a, tile_b] = contents(tiles);
  const int row = local_id(1), column = local_id(0);  // inside the block
  const index i = index(group_id(1)) * TILE_M + row;
  const index j = index(group_id(0)) * TILE_N + column;

  acc_t sum = 0;
  for (index k0 = 0; k0 < g.k; k0 += TILE_K) {
    // Tiles need not be square: a work-item copies every TILE_N-th element of its row of A, every TILE_M-th of its column of B.
    for (int p = column; p < TILE_K; p += TILE_N) tile_a[row][p] = a_or_zero(a0, g, i, k0 + p);
    for (int p = row; p < TILE_K; p += TILE_M) tile_b[p][column] = b_or_zero(b0, g, k0 + p, j);
    barrier();  // the tiles are complete

    for (int p = 0; p < TILE_K; ++p) sum = multiply_add(tile_a[row][p], tile_b[p][column], sum);
    barrier();  // and nobody reads them any more
  }
  if (i < g.m && j < g.n) d0[i * g.ldd + j] = epilogue(sum, i, j, c0, bias, g);
}

}  // namespace sycl_mat
