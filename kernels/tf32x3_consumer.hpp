// The consumers of tf32x3: they multiply what the producers brought and write D.
//
// To be included where Pages, split and the constants are known.
#pragma once

#include "shared_parts.hpp"
#include "tile_pairs.hpp"

namespace sycl_mat {

/// A consumer's part: of 64 columns each, TILE_ROWS / 2 sums.
constexpr int column_blocks = group_cols / 64, block_sums = TILE_ROWS / 2, sums_count = column_blocks * block_sums;
/// The two warp-groups issue their products in turn: while one's run, the other adds up and splits. Left to themselves both would do that
/// at the same time, with no products running. (Of 128×256 tiles a turn would be too short.)
constexpr bool take_turns = column_blocks == 1;

/// Eight pairs of neighbouring columns of B at k = t, t + 4, …; `from` is this lane's place in a page of B, for the first of them.
INLINE int place_in_b(int group, int warp, int lane) {
  const int g = lane / 4, t = lane % 4, col = group * group_cols + warp * 16 + 2 * g;
  int from = TRANS_B ? col * b_line_bytes + g * 16 + t * 4 : t * b_line_bytes + (col / 4 ^ 2 * t) * 16 + col % 4 * 4;
  asm("" : "+r"(from));  // in one register, rather than its parts in many
  return from;
}
INLINE void read_b(const char* b, int from, float (&pairs)[8][2]) {
  if constexpr (TRANS_B) asm volatile("" : "+r"(from));  // or eight places would be computed before the loop and kept
#pragma unroll
  for (int f = 0; f < 8; ++f) {
    if constexpr (TRANS_B) {
      const char* at = b + (from ^ f * 16);
      pairs[f][0] = *reinterpret_cast<const float*>(at);
      pairs[f][1] = *reinterpret_cast<const float*>(at + b_line_bytes);
    } else {
      const auto v = *reinterpret_cast<const Vector<float, 2>*>(b + from + 4 * f * b_line_bytes);
      pairs[f][0] = v[0];
      pairs[f][1] = v[1];
    }
  }
}

/// sums += one stage: the small products first, then the big ones, in fresh accumulators.
struct Fragments {
  unsigned big[4][4], small[4][4];
};
INLINE void split_fragments(const float (&pairs)[8][2], Fragments& f) {
  float least[2] = {1, 1};
  unsigned lost = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      split(pairs[i][h], f.big[i / 2][i % 2 * 2 + h], f.small[i / 2][i % 2 * 2 + h]);
      if constexpr (column_blocks == 1)
        least[h] = smaller(least[h], pairs[i][h]);
      else
        lost |= lost_bits(pairs[i][h]);  // without a branch: it would need registers
    }
  if (column_blocks == 1 && smaller(least[0], least[1]) < keeps_all_bits) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) lost |= lost_bits(__builtin_bit_cast(float, f.big[i][j]) + __builtin_bit_cast(float, f.small[i][j]));
  }
  if (lost) f.small[0][0] = a_nan;
}

/// d ← the products of 64 columns and `rows` rows of a stage.
template <int rows>
INLINE void start_products(float (&d)[rows / 2], const Fragments& f, unsigned a) {
  const auto big = swizzled_block(a), small = swizzled_block(a + a_bytes);
  wgmma_fence();
  wgmma<rows, false>(d, f.small[0], big);
#pragma unroll
  for (int i = 1; i < 4; ++i) wgmma<rows, true>(d, f.small[i], big + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<rows, true>(d, f.big[i], small + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<rows, true>(d, f.big[i], big + 2 * i);
  wgmma_commit();
}

/// One element of D, in its own row and column.
INLINE void write_one(float sum, index i, index j, const Matrices& of, const acc_t* bias, const Args& g) {
  of.d[i * g.ldd + j] = epilogue(sum, i, j, of.c, bias, g);
}

/// Two neighbours in a row of D, where pairs are aligned.
INLINE void write_two(float x, float y, index i, index j, const Matrices& of, const acc_t* bias, const Args& g) {
  *reinterpret_cast<Vector<float, 2>*>(of.d + i * g.ldd + j) =
      Vector<float, 2>{epilogue(x, i, j, of.c, bias, g), epilogue(y, i, j + 1, of.c, bias, g)};
}

/// The columns of a warp-group once more, with multiply-adds in the order of k: 8 columns and tile_rows / 16 rows a work-item.
template <int tile_rows>
INLINE void compute_again(const Matrices of, const Args& g, const acc_t* bias, index first_row, index first_col, int id) {
  constexpr int rows = tile_rows / 16, cols = 8;
  const in_t *a[rows], *b[cols];
  acc_t sums[rows][cols] = {};
#pragma unroll
  for (int i = 0; i < rows; ++i) a[i] = of.a + at_a(g, min(first_row + id / 8 + 16 * i, g.m - 1), 0);
#pragma unroll
  for (int j = 0; j < cols; ++j) b[j] = of.b + at_b(g, 0, min(first_col + id % 8 + 8 * j, g.n - 1));
  for (index k = 0; k < g.k; ++k) {
    acc_t x[rows], y[cols];
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = *a[i], a[i] += TRANS_A ? g.lda : 1;
#pragma unroll
    for (int j = 0; j < cols; ++j) y[j] = *b[j], b[j] += TRANS_B ? 1 : g.ldb;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < cols; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < cols; ++j) {
      const index row = first_row + id / 8 + 16 * i, col = first_col + id % 8 + 8 * j;
      if (row < g.m && col < g.n) write_one(sums[i][j], SWAPPED ? col : row, SWAPPED ? row : col, of, bias, g);
    }
}

struct Consumer {
  const Args& g;
  Matrices whole;
  const acc_t* bias;
  void* scratch;  // arrivals at each shared tile, for either warp-group; from g.scratch_stride on the parts

  /// `tile_rows` rows of a tile, from `first` on.
  template <int tile_rows>
  INLINE void write(const Part& part, int first, const float (&sums)[column_blocks * tile_rows / 2]) const {
    const int id = fresh_thread_id() % 128, group = fresh_thread_id() / 128;
    Place at = place_of(part.tile, Grid(g));
    at.row += first;
    const Matrices of = matrices_at(at, whole, g);
    const index first_col = at.col + group * group_cols;
    const bool pairs_d = aligned_to(8, whole.d, g.ldd, g.d_inner, g.d_outer);  // stores of two
    float probe = 0;                                                           // 0 · x is 0, or NaN where x is infinite or NaN
#pragma unroll
    for (int i = 0; i < column_blocks * tile_rows / 2; ++i) probe = multiply_add(sums[i], 0.0f, probe);
    if (any_of_group(group, probe != 0)) {
      for (int block = 0; block < column_blocks; ++block) compute_again<tile_rows>(of, g, bias, at.row, first_col + block * 64, id);
      return;
    }
    const int lane = id % 32;
    const index first_row = at.row + lane % 4 * 2;
    const index rows = SWAPPED ? g.n : g.m, columns = SWAPPED ? g.m : g.n;  // of D
    const bool plain = column_blocks == 1 && pairs_d && at.row + tile_rows <= g.m && at.col + tile_cols <= g.n;
#pragma unroll
    for (int block = 0; block < column_blocks; ++block) {
      const index col = first_col + block * 64 + id / 32 * 16 + lane / 4 * 2;
      const index row = SWAPPED ? col : first_row, column = SWAPPED ? first_row : col;  // of D
      // Two neighbours in a row of D: columns of the tile, or, swapped, its rows.
      const auto each = [&](auto write_pair) __attribute__((always_inline)) {
#pragma unroll
        for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float* sum = sums + block * tile_rows / 2 + 4 * j;
            const int down = SWAPPED ? e : 8 * j + e, right = SWAPPED ? 8 * j : 0;
            write_pair(sum[SWAPPED ? 2 * e : e], sum[SWAPPED ? 2 * e + 1 : e + 2], down, right);
          }
      };
      if (plain) {  // nothing to look at, and addresses that follow one from another
        out_t* d = of.d + row * g.ldd + column;
        each([&](float x, float y, int down, int right) __attribute__((always_inline)) {
          const Vector<float, 2> pair = {epilogue(x, row + down, column + right, of.c, bias, g),
                                         epilogue(y, row + down, column + right + 1, of.c, bias, g)};
          *reinterpret_cast<Vector<float, 2>*>(d + down * g.ldd + right) = pair;
        });
      } else {
        each([&](float x, float y, int down, int right) __attribute__((always_inline)) {
          if (row + down >= rows || column + right >= columns) return;
          if (pairs_d && column + right + 1 < columns) return write_two(x, y, row + down, column + right, of, bias, g);
          write_one(x, row + down, column + right, of, bias, g);
          if (column + right + 1 < columns) write_one(y, row + down, column + right + 1, of, bias, g);
        });
      }
    }
  }

  INLINE void run(const char* first_page, unsigned pages) const {
    Work work{Grid(g)};
    const int group = thread_id() / 128, from = place_in_b(group, thread_id() / 32 % 4, lane_id());
    int slot = 0, parity = 0;
    if (take_turns && group == 1) pass_turn_from(1);  // group 0 begins
    while (same_in_warp(work.more(Grid(g)))) {
      const Part part = work.next(Grid(g));
      float sums[sums_count];
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] = 0;
      const auto wait_for_stage = [&](int slot, int parity) __attribute__((always_inline)) {
        phase_wait(full(pages, slot), parity);
        stores_to_wgmma();
      };
      const auto read = [&](int block, Fragments& into) __attribute__((always_inline)) {
        float pairs[8][2];
        read_b(first_page + slot * page_bytes + 2 * a_bytes + block * (TRANS_B ? 64 * b_line_bytes : 256), from, pairs);
        split_fragments(pairs, into);
      };
      if constexpr (column_blocks == 1) {
        // While a stage's products run, the next stage's B is read and split: between two stages there are only the sums to add up.
        Fragments even, odd;
        const auto compute = [&](const Fragments& present, Fragments& next, bool more) __attribute__((always_inline)) {
          float d[block_sums];
          wait_for_turn(group);
          start_products<TILE_ROWS>(d, present, pages + slot * page_bytes);
          pass_turn_from(group);
          const int used = slot;
          if (++slot == STAGES) slot = 0, parity ^= 1;
          if (more) {
            wait_for_stage(slot, parity);
            read(0, next);
          }
          wgmma_wait();
          phase_arrive(empty(pages, used));
#pragma unroll
          for (int i = 0; i < sums_count; ++i) sums[i] += d[i];
        };
        if (part.begin < part.end) {
          wait_for_stage(slot, parity);
          read(0, even);
        }
        for (int left = part.end - part.begin; left > 0; left -= 2) {
          compute(even, odd, left > 1);
          if (left == 1) break;
          compute(odd, even, left > 2);
        }
      } else {
        // Registers hold 64×64 products at a time; while they are added up, the other warp-group's run.
        for (int stage = part.begin; stage < part.end; ++stage) {
          wait_for_stage(slot, parity);
#pragma unroll
          for (int block = 0; block < column_blocks; ++block) {
            Fragments fragments;
            read(block, fragments);
#pragma unroll
            for (int half = 0; half < TILE_ROWS / 64; ++half) {
              float d[32];
              start_products<64>(d, fragments, pages + slot * page_bytes + half * 8192);
              wgmma_wait();
              if (block == column_blocks - 1 && half == TILE_ROWS / 64 - 1) phase_arrive(empty(pages, slot));
#pragma unroll
              for (int i = 0; i < 32; ++i) sums[block * block_sums + half * 32 + i] += d[i];
            }
          }
          if (++slot == STAGES) slot = 0, parity ^= 1;
        }
      }
      if constexpr (PAIRS) {
        float half[sums_count / 2];
        exchange(sums, half, pages);
        write<TILE_ROWS / 2>(part, place_in_pair() * (TILE_ROWS / 2), half);
      } else {
        if (part.end - part.begin == Grid(g).stages || combine(part, sums, g, scratch)) write<TILE_ROWS>(part, 0, sums);
      }
    }
    if (take_turns && group == 0) wait_for_turn(0);  // the last one that was passed
  }
};

}  // namespace sycl_mat
