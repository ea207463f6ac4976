// Step 4, vector loads: the tiles are copied in chunks of CHUNK elements, shared out among the work-items by number.
//
//      tile a, TILE_K = 8, CHUNK = 4                 tile b, TILE_N·BATCH_N = 16, CHUNK = 4
//      ┌───────┬───────┐                             ┌───────┬───────┬───────┬───────┐
//      │   0   │   1   │  each number is one         │   0   │   1   │   2   │   3   │
//      ├───────┼───────┤  chunk, loaded by the       ├───────┼───────┼───────┼───────┤
//      │   2   │   3   │  work-item with that        │   4   │   5   │   6   │   7   │
//      ├───────┼───────┤  number (row·TILE_N +       ├───────┼───────┼───────┼───────┤
//      :       :       :  column)                    :       :       :       :       :
//
// Until now a work-item's place in the block said which elements it copied, one at a time. Seen as one long line, work-items can
// take any shape of tile: chunk number c goes to work-item c. Where there are more chunks than work-items, each takes several;
// where there are fewer, the last ones have nothing to copy. One load moves CHUNK elements, neighbours read neighbouring chunks.
//
// What is left: while the tiles are being copied nothing is computed, and while it computes nothing is loaded. See step 5.
#include "device.hpp"

// constants: begin
constexpr int TILE_M = 16;  // work-items of a group along M
constexpr int TILE_N = 16;  // work-items of a group along N
constexpr int TILE_K = 16;  // depth of a tile
constexpr int BATCH_M = 4;  // rows a work-item computes
constexpr int BATCH_N = 4;  // columns a work-item computes
constexpr int CHUNK = 4;    // elements a load moves
// constants: end

namespace sycl_mat {

constexpr int BLOCK_M = TILE_M * BATCH_M, BLOCK_N = TILE_N * BATCH_N;
constexpr int ITEMS = TILE_M * TILE_N;                               // work-items of a group
constexpr int A_LINE = TILE_K / CHUNK, A_CHUNKS = BLOCK_M * A_LINE;  // chunks of a row of tile a, and of all of it
constexpr int B_LINE = BLOCK_N / CHUNK, B_CHUNKS = TILE_K * B_LINE;

struct alignas(64) Tiles {
  acc_t a[BLOCK_M][TILE_K];
  acc_t b[TILE_K][BLOCK_N];
};
static local_memory_of<Tiles> tiles;

KERNEL(3) tiled_vector(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void*, Args g) {
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, group_id(2));
  auto& [tile_a, tile_b] = contents(tiles);
  const int row = local_id(1), column = local_id(0), number = row * TILE_N + column;
  const index block_i = index(group_id(1)) * BLOCK_M, block_j = index(group_id(0)) * BLOCK_N;

  acc_t sums[BATCH_M][BATCH_N] = {};
  for (index k0 = 0; k0 < g.k; k0 += TILE_K) {
    for (int chunk = number; chunk < A_CHUNKS; chunk += ITEMS) {
      const int i = chunk / A_LINE, p = chunk % A_LINE * CHUNK;
      const auto loaded = chunk_of_a<CHUNK>(a0, g, block_i + i, k0 + p);
#pragma unroll
      for (int e = 0; e < CHUNK; ++e) tile_a[i][p + e] = widen(loaded[e]);
    }
    for (int chunk = number; chunk < B_CHUNKS; chunk += ITEMS) {
      const int p = chunk / B_LINE, j = chunk % B_LINE * CHUNK;
      const auto loaded = chunk_of_b<CHUNK>(b0, g, k0 + p, block_j + j);
#pragma unroll
      for (int e = 0; e < CHUNK; ++e) tile_b[p][j + e] = widen(loaded[e]);
    }
    barrier();

    for (int p = 0; p < TILE_K; ++p) {
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
