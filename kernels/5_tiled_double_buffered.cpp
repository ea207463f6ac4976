// Step 5, double buffering: the next tiles are on their way while the present ones are being multiplied.
//
//      local memory holds two pages of both tiles               time →
//
//      page 0 ┌──────┐ ┌───────────┐       load   tile 1 ──────┐       tile 2 ──────┐
//             │  a   │ │     b     │              (registers)  │                    │
//             └──────┘ └───────────┘     compute  tile 0 ■■■■■■│■■■    tile 1 ■■■■■■│■■■
//      page 1 ┌──────┐ ┌───────────┐       store               └→ page 1            └→ page 0
//             │  a   │ │     b     │     barrier                     |                    |
//             └──────┘ └───────────┘
//
// A load from global memory takes hundreds of cycles, but only its first use waits for it. So the chunks of tile t + 1 are loaded
// into registers before tile t is multiplied, and stored to the other page after it: the multiplications hide the wait. With two
// pages nobody overwrites what others still read, so one barrier a tile is enough instead of two.
//
// This is where the ladder ends; `tiled` goes on from here.
#include "device.hpp"

// constants: begin
constexpr int TILE_M = 16;  // work-items of a group along M
constexpr int TILE_N = 16;  // work-items of a group along N
constexpr int TILE_K = 8;   // depth of a tile
constexpr int BATCH_M = 8;  // rows a work-item computes
constexpr int BATCH_N = 4;  // columns a work-item computes
constexpr int CHUNK = 8;    // elements a load moves
// constants: end

namespace sycl_mat {

constexpr int BLOCK_M = TILE_M * BATCH_M, BLOCK_N = TILE_N * BATCH_N;
constexpr int ITEMS = TILE_M * TILE_N;
constexpr int A_LINE = TILE_K / CHUNK, A_CHUNKS = BLOCK_M * A_LINE, A_EACH = ceil_div(A_CHUNKS, ITEMS);  // chunks of one work-item
constexpr int B_LINE = BLOCK_N / CHUNK, B_CHUNKS = TILE_K * B_LINE, B_EACH = ceil_div(B_CHUNKS, ITEMS);

struct alignas(64) Page {
  acc_t a[BLOCK_M][TILE_K];
  acc_t b[TILE_K][BLOCK_N];
};
struct alignas(64) Pages {
  Page page[2];
};
static local_memory_of<Pages> pages;

KERNEL(3) tiled_double_buffered(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void*, Args g) {
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, group_id(2));
  const int row = local_id(1), column = local_id(0), number = row * TILE_N + column;
  const index block_i = index(group_id(1)) * BLOCK_M, block_j = index(group_id(0)) * BLOCK_N;

  Vector<in_t, CHUNK> next_a[A_EACH], next_b[B_EACH];
  const auto load = [&, a0 = a0, b0 = b0](index k0) {
#pragma unroll
    for (int q = 0; q < A_EACH; ++q) {
      const int chunk = number + q * ITEMS;
      if (chunk < A_CHUNKS) next_a[q] = chunk_of_a<CHUNK>(a0, g, block_i + chunk / A_LINE, k0 + chunk % A_LINE * CHUNK);
    }
#pragma unroll
    for (int q = 0; q < B_EACH; ++q) {
      const int chunk = number + q * ITEMS;
      if (chunk < B_CHUNKS) next_b[q] = chunk_of_b<CHUNK>(b0, g, k0 + chunk / B_LINE, block_j + chunk % B_LINE * CHUNK);
    }
  };
  const auto store = [&](Page& page) {
#pragma unroll
    for (int q = 0; q < A_EACH; ++q) {
      const int chunk = number + q * ITEMS;
      if (chunk < A_CHUNKS)
#pragma unroll
        for (int e = 0; e < CHUNK; ++e) page.a[chunk / A_LINE][chunk % A_LINE * CHUNK + e] = widen(next_a[q][e]);
    }
#pragma unroll
    for (int q = 0; q < B_EACH; ++q) {
      const int chunk = number + q * ITEMS;
      if (chunk < B_CHUNKS)
#pragma unroll
        for (int e = 0; e < CHUNK; ++e) page.b[chunk / B_LINE][chunk % B_LINE * CHUNK + e] = widen(next_b[q][e]);
    }
  };

  acc_t sums[BATCH_M][BATCH_N] = {};
  int present = 0;
  if (g.k > 0) {
    load(0);
    store(contents(pages).page[0]);
  }
  barrier();
  for (index k0 = 0; k0 < g.k; k0 += TILE_K) {
    const bool more = k0 + TILE_K < g.k;
    if (more) load(k0 + TILE_K);  // starts here, is waited for in store()

    const Page& page = contents(pages).page[present];
#pragma unroll
    for (int p = 0; p < TILE_K; ++p) {
      acc_t of_a[BATCH_M], of_b[BATCH_N];
#pragma unroll
      for (int i = 0; i < BATCH_M; ++i) of_a[i] = page.a[row * BATCH_M + i][p];
#pragma unroll
      for (int j = 0; j < BATCH_N; ++j) of_b[j] = page.b[p][column * BATCH_N + j];
#pragma unroll
      for (int i = 0; i < BATCH_M; ++i)
#pragma unroll
        for (int j = 0; j < BATCH_N; ++j) sums[i][j] = multiply_add(of_a[i], of_b[j], sums[i][j]);
    }

    present ^= 1;
    if (more) store(contents(pages).page[present]);
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
