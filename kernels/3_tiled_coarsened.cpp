// Step 3, coarsening: a work-item computes BATCH_M × BATCH_N results and keeps them in registers.
//
//                                         TILE_N·BATCH_N
//                                       ┌───────────────┐
//                                TILE_K │    tile b     │
//                                       └───┬──┬────────┘
//                                           │  │ BATCH_N elements of a row of tile b …
//                     TILE_K            ┌───┼──┼────────┐
//                    ┌──────┐           │   ↓  ↓        │
//      TILE_M·       │      ├ BATCH_M → │   ┌──┐        │
//      BATCH_M       │tile a├ of a    → │   │▒▒│        │   … times BATCH_M of a column of tile a:
//                    │      │ column    │   └──┘        │   ▒ = BATCH_M·BATCH_N sums of one work-item
//                    └──────┘           └───────────────┘
//
// For BATCH_M + BATCH_N loads from local memory there are now BATCH_M·BATCH_N multiply-adds: 8 loads for 16 at 4 × 4, 12 for 32 at
// 8 × 4. The price is registers: the sums, and the operands of one step. Where they run out, the compiler spills them to memory
// and all is lost. Global memory is still read one element at a time: see step 4.
#include "device.hpp"

// constants: begin
constexpr int TILE_M = 16;  // work-items of a group along M
constexpr int TILE_N = 16;  // work-items of a group along N
constexpr int TILE_K = 16;  // depth of a tile
constexpr int BATCH_M = 4;  // rows a work-item computes
constexpr int BATCH_N = 4;  // columns a work-item computes
// constants: end

namespace sycl_mat {

constexpr int BLOCK_M = TILE_M * BATCH_M;  // the block of D that a work-group computes
constexpr int BLOCK_N = TILE_N * BATCH_N;

struct alignas(64) Tiles {
  acc_t a[BLOCK_M][TILE_K];
  acc_t b[TILE_K][BLOCK_N];
};
static local_memory_of<Tiles> tiles;

KERNEL(3) tiled_coarsened(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void*, Args g) {
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, group_id(2));
  auto& [tile_a, tile_b] = contents(tiles);
  const int row = local_id(1), column = local_id(0);
  const index block_i = index(group_id(1)) * BLOCK_M, block_j = index(group_id(0)) * BLOCK_N;

  acc_t sums[BATCH_M][BATCH_N] = {};
  for (index k0 = 0; k0 < g.k; k0 += TILE_K) {
    for (int i = row; i < BLOCK_M; i += TILE_M)
      for (int p = column; p < TILE_K; p += TILE_N) tile_a[i][p] = a_or_zero(a0, g, block_i + i, k0 + p);
    for (int p = row; p < TILE_K; p += TILE_M)
      for (int j = column; j < BLOCK_N; j += TILE_N) tile_b[p][j] = b_or_zero(b0, g, k0 + p, block_j + j);
    barrier();

    for (int p = 0; p < TILE_K; ++p) {
      // Arrays that are indexed by unrolled loops alone live in registers.
      acc_t of_a[BATCH_M], of_b[BATCH_N];
#pragma unroll
      for (int i = 0; i < BATCH_M; ++i) of_a[i] = tile_a[row * BATCH_M + i][p];
#pragma unroll
      for (int j = 0; j < BATCH_N; ++j) of_b[j] = tile_b[p][column * BATCH_N + j];
#pragma unroll
      for (int i = 0; i < BATCH_M; ++i)
#pragma unroll
        for (int j = 0; j < BATCH_N; ++j) sums[i][j] = multiply_add(of_a[i], of_b[j], sums[i][j]);
    }
    barrier();
  }

#pragma unroll
  for (int r = 0; r < BATCH_M; ++r)
#pragma unroll
    for (int s = 0; s < BATCH_N; ++s) {
      const index i = block_i + row * BATCH_M + r, j = block_j + column * BATCH_N + s;
      if (i < g.m && j < g.n) d0[i * g.ldd + j] = epilogue(sums[r][s], i, j, c0, bias, g);
    }
}

}  // namespace sycl_mat
