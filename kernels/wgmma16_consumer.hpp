// The consumers of wgmma16: they have the tensor units multiply what the producers brought, and write D.
//
// To be included where Pages and the constants are known.
#pragma once

#include "shared_parts.hpp"

namespace sycl_mat {

/// A warp-group's part of a tile: 64 rows, and all columns or half of them.
constexpr bool rows_shared = TILE_ROWS == 128;
constexpr int group_cols = rows_shared ? TILE_COLS : TILE_COLS / 2, sums_count = group_cols / 2;

/// Lane t of four has in words[s] what belongs into word t of chunk s; it gets chunk t.
INLINE void exchange_chunks(unsigned (&words)[4], int t) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (t & distance) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & distance) continue;
      const unsigned low = words[i], high = words[i + distance];  // values, or the array would be put into memory
      const unsigned other = exchange(upper ? low : high, distance);
      words[i] = upper ? other : low;
      words[i + distance] = upper ? high : other;
    }
  }
}

struct Consumer {
  const Args& g;
  Matrices whole;
  const acc_t* bias;
  void* scratch;  // arrivals at each shared tile, for either warp-group; from g.scratch_stride on the parts, and sums that are kept

  /// A row's 32 neighbouring results are with four lanes, two here and two there; exchanged, each lane writes 8 neighbours at once.
  INLINE void write(const Part& part, const float (&sums)[sums_count]) const {
    const int id = fresh_thread_id() % 128, group = fresh_thread_id() / 128, t = id % 4;
    const Place at = place_of(part.tile, Grid(g));
    const Matrices of = matrices_at(at, whole, g);
    const bool chunks_d = aligned_to_16(whole.d, g.ldd, g.d_inner, g.d_outer);
    const index first_row = at.row + (rows_shared ? group * 64 : 0) + id / 32 * 16 + id % 32 / 4;
    const index first_col = at.col + (rows_shared ? 0 : group * group_cols);
    constexpr index far = 1 << 20;
    const int rows_left = int(min(far, g.m - first_row)), cols_left = int(min(far, g.n - first_col));
    out_t* row = of.d + first_row * g.ldd + first_col + 8 * t;
#pragma unroll
    for (int down = 0; down < 16; down += 8) {
#pragma unroll
      for (int block = 0; block < group_cols / 32; ++block) {
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int col = 32 * block + 8 * i + 2 * t;
          const auto result = [&](int e) __attribute__((always_inline)) {
            // Beyond the edges neither C nor the bias may be read; nothing else can go wrong there.
            if ((BETA || BIAS) && (down >= rows_left || col + e >= cols_left)) return out_t(0);
            return epilogue(sums[16 * block + 4 * i + down / 4 + e], first_row + down, first_col + col + e, of.c, bias, g);
          };
          words[i] = __builtin_bit_cast(unsigned, Vector<out_t, 2>{result(0), result(1)});
        }
        exchange_chunks(words, t);
        const int left = down < rows_left ? cols_left - 32 * block - 8 * t : 0;
        out_t* to = row + 32 * block;
        if (chunks_d && left >= 8) {
          *reinterpret_cast<Vector<unsigned, 4>*>(to) = Vector<unsigned, 4>{words[0], words[1], words[2], words[3]};
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e)
            if (e < left) to[e] = __builtin_bit_cast(Vector<out_t, 2>, words[e / 2])[e % 2];
        }
      }
      row += 8 * g.ldd;
    }
  }

  /// Of long sums: what the units have summed goes to scratch, where a work-item has a place of its own, and they begin anew. `kept`: there
  /// are sums already, to which these are added.
  INLINE void keep(float (&sums)[sums_count], bool kept) const {
    if (kept) add_kept(sums);
#pragma unroll
    for (int i = 0; i < sums_count; i += 4) {
      kept_sums()[i / 4 * consumers] = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      sums[i] = sums[i + 1] = sums[i + 2] = sums[i + 3] = 0;
    }
  }
  INLINE void add_kept(float (&sums)[sums_count]) const {
#pragma unroll
    for (int i = 0; i < sums_count; i += 4) {
      const Vector<float, 4> v = kept_sums()[i / 4 * consumers];
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i + e] = v[e] + sums[i + e];
    }
  }
  /// Behind the parts of shared tiles.
  INLINE Vector<float, 4>* kept_sums() const {
    constexpr index tile_size = TILE_ROWS * TILE_COLS;
    const Grid grid(g);
    const index parts = grid.shared_tiles > 0 ? 2 * grid.blocks : 0;
    float* first = static_cast<float*>(scratch) + g.scratch_stride + (parts + block_id()) * tile_size;
    return reinterpret_cast<Vector<float, 4>*>(first) + fresh_thread_id();
  }

  INLINE void run(unsigned pages) const {
    Work work{Grid(g)};
    const int parts = work.parts(Grid(g));
    const int group = same_in_warp(thread_id() / 128);
    // This warp-group's rows and columns in a page.
    const unsigned a_from = pages + (rows_shared ? group * 64 * line_bytes : 0);
    const unsigned b_from = pages + a_bytes + (rows_shared ? 0 : group * group_cols * line_bytes);
    int slot = 0, parity = 0;
    for (int i = 0; i < same_in_warp(parts); ++i) {
      const Part part = work.next(Grid(g));
      float sums[sums_count];
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] = 0;
      const int stages = same_in_warp(part.end - part.begin);
      unsigned used = 0;  // the barrier of the stage before this one, whose products may still run
      // Equal parts of a long sum. The second group is a little later, so that its products run while the first keeps its sums.
      bool kept = false;
      const int flush = FLUSH ? ceil_div(stages, ceil_div(stages, FLUSH ? FLUSH : 1)) : 0;
      int until_flush = flush + (STAGES - 1) * group;
      for (int stage = 0; stage < stages; ++stage) {
        phase_wait(full(pages, slot), parity);
        stores_to_wgmma();
        const auto a = Block<a_along_k>::at(a_from + slot * page_bytes), b = Block<b_along_k>::at(b_from + slot * page_bytes);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < tile_k / 16; ++step)
          wgmma_16<group_cols, a_along_k, b_along_k>(sums, a + step * Block<a_along_k>::next_16, b + step * Block<b_along_k>::next_16);
        wgmma_commit();
        wgmma_wait_but<1>();
        if (stage > 0) phase_arrive_for_warp(used);
        used = empty(pages, slot);
        if (++slot == STAGES) slot = 0, parity ^= 1;
        if constexpr (FLUSH) {
          if (--until_flush == 0 && stage + 1 < stages) {
            wgmma_wait();
            keep(sums, kept);
            kept = true;
            until_flush = flush;
          }
        }
      }
      wgmma_wait();
      if (stages > 0) phase_arrive_for_warp(used);
      if constexpr (FLUSH) {
        if (kept) add_kept(sums);
      }
      if (stages == Grid(g).stages || combine(part, sums, g, scratch)) write(part, sums);
    }
  }
};

}  // namespace sycl_mat
