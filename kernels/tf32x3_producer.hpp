// The producers of tf32x3: they bring a stage of A and B into local memory, A split.
//
// To be included where Pages, split and the constants are known.
#pragma once

#include "tile_shares.hpp"

namespace sycl_mat {

/// A producer's part of every stage of A: 4 neighbours along k, in a_rows rows. Stored [k][m], up to 4 of its rows are neighbours, so that
/// loads are vectors along m, and the next ones 64 apart; else they are producers / 8 apart.
constexpr int a_rows = TILE_ROWS * 8 / producers, a_vector = a_rows < 4 ? a_rows : 4;
constexpr int row_of(int q) { return TRANS_A ? q % a_vector + q / a_vector * 64 : q * (producers / 8); }
/// … and of B: chunks of 4 neighbours along n (along k where B is stored [n][k]), rows b_step apart.
constexpr int b_chunks = tile_cols * 8 / producers, b_step = producers / b_line_chunks;
/// Where B's rows do not begin at multiples of 16 bytes: single elements, of which a warp copies 32 neighbours.
constexpr int b_singles = tile_cols * tile_k / producers;

/// The next stage that a producer reads: this work-item's first elements, and how far the edges are.
struct Cursor {
  Work work;
  const in_t *a, *b;
  int rows_left, cols_left, k_left;  // from the stage's beginning to the edges
  int stages_left;                   // of the present part
  int plain;                         // of those, how many from here on lie wholly inside the matrices
};

struct Fetched {
  float a[a_rows][4];
};

/// Which 4 neighbours along k of A a producer reads, and its first row in the tile. Stored [m][k], 8 work-items read a row's 32 elements.
/// Stored [k][m], a warp reads 4 lines along k; 8 work-items that store together still meet 8 different chunks of the swizzled page.
INLINE int a_chunk(int id) { return TRANS_A ? id / 2 % 4 + id / 32 % 2 * 4 : id % 8; }
INLINE int a_row(int id) {
  if constexpr (!TRANS_A) return id / 8;
  const int low = id % 2, middle = id / 8 % 2, high = id / 16 % 2;
  return a_vector * ((a_vector == 4 ? low + 2 * middle : middle + 2 * low) + 4 * high + 8 * (id / 64));
}

struct Producer {
  const Args& g;
  Matrices whole;  // of the batch's first matrix
  int id;
  bool vectors_a, vectors_b;  // addresses and distances allow loads of vectors
  unsigned pages;             // local address

  INLINE void start_part(Cursor& c) const {
    const Grid grid(g);
    const Part part = c.work.next(grid);
    if (part.tile >= grid.tiles) return;
    const Place at = place_of(part.tile, grid);
    const Matrices of = matrices_at(at, whole, g);
    const index k = index(part.begin) * tile_k;
    constexpr index far = 1 << 20;
    c.a = of.a + at_a(g, at.row + a_row(id), k + a_chunk(id) * 4);
    c.b = of.b + at_b(g, k + (TRANS_B ? b_place() : b_line()), at.col + (TRANS_B ? b_line() : b_place()));
    c.rows_left = int(min(far, g.m - at.row));
    c.cols_left = int(min(far, g.n - at.col));
    c.k_left = int(min(1 << 30, g.k - k));
    c.stages_left = part.end - part.begin;
    c.plain = c.rows_left >= TILE_ROWS && c.cols_left >= tile_cols ? int(min(c.stages_left, c.k_left / tile_k)) : 0;
  }
  INLINE void advance(Cursor& c) const {
    if (--c.stages_left == 0) return start_part(c);
    c.a += TRANS_A ? tile_k * g.lda : tile_k;
    c.b += TRANS_B ? tile_k : tile_k * g.ldb;
    c.k_left -= tile_k;
    --c.plain;
  }

  INLINE void fetch_a(const Cursor& c, Fetched& fetched) const {
    const in_t* a = c.a;
    const auto place = [&](int q, int e) { return TRANS_A ? e * g.lda + row_of(q) : row_of(q) * g.lda + e; };
    const int k = c.k_left - a_chunk(id) * 4, rows = c.rows_left - a_row(id);
    // Beyond the last row, where nobody stores what comes of it, others are read again: zeros would be looked at for lost bits.
    if (c.plain <= 0 && c.k_left >= tile_k && vectors_a && (!TRANS_A || c.rows_left % a_vector == 0)) {
      if (!TRANS_A && rows <= 0) a += (rows - 1) * g.lda;
#pragma unroll
      for (int q = 0; q < a_rows; q += TRANS_A ? a_vector : 1) {
        if constexpr (TRANS_A) {
          const int row = row_of(q) < rows - a_vector ? row_of(q) : rows - a_vector;
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto v = load_aligned<a_vector>(a + e * g.lda + row);
#pragma unroll
            for (int i = 0; i < a_vector; ++i) fetched.a[q + i][e] = v[i];
          }
        } else {
          const auto v = load_aligned<4>(a);
          if (row_of(q + 1) < rows) a += row_of(1) * g.lda;
#pragma unroll
          for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
        }
      }
    } else if (c.plain <= 0) {
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = row_of(q) < rows && e < k ? a[place(q, e)] : 0.0f;
    } else if (!vectors_a) {
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = load_single(a + place(q, e));
    } else if constexpr (TRANS_A) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int q = 0; q < a_rows; q += a_vector) {
          const auto v = load_aligned<a_vector>(a + place(q, e));
#pragma unroll
          for (int i = 0; i < a_vector; ++i) fetched.a[q + i][e] = v[i];
        }
    } else {
#pragma unroll
      for (int q = 0; q < a_rows; ++q) {
        const auto v = load_aligned<4>(a + place(q, 0));
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
      }
    }
  }

  /// Where this producer's elements of B lie: its first line and its place there, of chunks or of single elements.
  INLINE int b_line() const { return vectors_b ? id / b_line_chunks : id / 32; }
  INLINE int b_place() const { return vectors_b ? id % b_line_chunks * 4 : id % 32; }

  /// B's lines in a page: along n, or, stored [n][k], along k.
  INLINE void copy_b(const Cursor& c, unsigned to) const {
    const int line = b_line(), lines = (TRANS_B ? c.cols_left : c.k_left) - line, along = (TRANS_B ? c.k_left : c.cols_left) - b_place();
    to += line * b_line_bytes;
    if (vectors_b) {
      to += (id % b_line_chunks ^ b_swizzle(line)) * 16;
      if (c.plain > 0) {
#pragma unroll
        for (int q = 0; q < b_chunks; ++q) copy_16(to + q * (producers * 16), c.b + q * b_step * g.ldb);
      } else {
        // As with A: beyond the last column others are read again, along n the last whole chunk; beyond k there are zeros.
        const in_t* b = c.b + (TRANS_B && lines <= 0 ? (lines - 1) * g.ldb : 0);
        const bool again = !TRANS_B && along < 4 && c.cols_left % 4 == 0;
        const int shift = again ? along - 4 : 0, bytes = again ? 16 : along <= 0 ? 0 : int(min(along * 4, 16));
#pragma unroll
        for (int q = 0; q < b_chunks; ++q) {
          const int inside = TRANS_B || q * b_step < lines ? bytes : 0;
          copy_16_or_less(to + q * (producers * 16), inside > 0 ? b + shift : whole.b, inside);
          if (!TRANS_B || (q + 1) * b_step < lines) b += b_step * g.ldb;
        }
      }
    } else {
      constexpr int each_line = b_line_chunks / 8, line_step = producers / 32;
      int lane = id % 32;
      asm volatile("" : "+r"(lane));  // or eight places would be computed before the loop and kept
      to += lane % 4 * 4;
      const auto each = [&](auto copy) __attribute__((always_inline)) {
#pragma unroll
        for (int q = 0; q < b_singles; ++q) {
          const int down = q / each_line * line_step, right = q % each_line * 32;
          copy(to + down * b_line_bytes + right * 4 + (lane / 4 ^ b_swizzle(line + down)) * 16, c.b + down * g.ldb + right, down, right);
        }
      };
      if (c.plain > 0) {
        each([&](unsigned at, const in_t* from, int, int) __attribute__((always_inline)) { copy_4(at, from); });
      } else {
        each([&](unsigned at, const in_t* from, int down, int right) __attribute__((always_inline)) {
          const bool copy = down < lines && right < along;
          copy_4_or_zero(at, copy ? from : whole.b, copy);
        });
      }
    }
  }

  INLINE unsigned place_in_page(unsigned page, int q) const {
    const int row = a_row(id) + row_of(q);
    return page + row * 128 + (a_chunk(id) ^ row % 8) * 16;
  }
  /// A's elements, split, into a page (a local address). Both halves are there before the first is stored: in registers of their own, so
  /// that no half has to wait until the other's store has read them.
  INLINE void store_row(unsigned page, const Fetched& fetched, int q) const {
    unsigned big[4], small[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) split(fetched.a[q][e], big[e], small[e]);
    store_words(place_in_page(page, q) + a_bytes, small);
    store_words(place_in_page(page, q), big);
  }
  INLINE float least_of(const Fetched& fetched) const {
    float least[2] = {1, 1};
#pragma unroll
    for (int q = 0; q < a_rows; ++q)
#pragma unroll
      for (int e = 0; e < 4; ++e) least[e % 2] = smaller(least[e % 2], fetched.a[q][e]);
    return smaller(least[0], least[1]);
  }
  /// Where an element loses bits, NaN takes the place of its row's, in what was just stored.
  INLINE void look_for_lost_bits(unsigned page) const {
#pragma unroll 1
    for (int q = 0; q < a_rows; ++q) {
      const unsigned at = place_in_page(page, q);
      const Vector<float, 4> big = load_local(at), small = load_local(at + a_bytes);
      unsigned lost = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) lost |= lost_bits(big[e] + small[e]);
      const unsigned nan[4] = {a_nan, a_nan, a_nan, a_nan};
      if (lost) store_words(at + a_bytes, nan);
    }
  }

  /// With small tiles A's next elements are on their way as soon as the present ones have left their registers; with large ones that is 4 %
  /// slower.
  static constexpr bool rolling = TILE_ROWS == 64 && !TRANS_A;

  INLINE void run() const {
    Cursor next{Work(Grid(g)), whole.a, whole.b, 0, 0, 0, 0, 0};
    start_part(next);
    if (next.stages_left == 0) return;
    Fetched fetched;
    fetch_a(next, fetched);
    int slot = 0, parity = 1;
    while (true) {
      phase_wait(empty(pages, slot), parity);
      copy_b(next, pages + slot * page_bytes + 2 * a_bytes);
      phase_arrive_after_copies(full(pages, slot));
      const unsigned page = pages + slot * page_bytes;
      const float least = least_of(fetched);
      bool more;
      if constexpr (rolling) {
        advance(next);
        more = next.stages_left > 0;
        if (more && vectors_a && next.plain > 0) {
#pragma unroll
          for (int q = 0; q < a_rows; ++q) {
            store_row(page, fetched, q);
            const auto v = load_aligned<4>(next.a + row_of(q) * g.lda);
#pragma unroll
            for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
          }
          if (least < keeps_all_bits) look_for_lost_bits(page);
          phase_arrive(full(pages, slot));
        } else {
#pragma unroll
          for (int q = 0; q < a_rows; ++q) store_row(page, fetched, q);
          if (least < keeps_all_bits) look_for_lost_bits(page);
          phase_arrive(full(pages, slot));
          if (more) fetch_a(next, fetched);
        }
      } else {
#pragma unroll
        for (int q = 0; q < a_rows; ++q) store_row(page, fetched, q);
        if (least < keeps_all_bits) look_for_lost_bits(page);
        phase_arrive(full(pages, slot));
        advance(next);
        more = next.stages_left > 0;
        if (more) fetch_a(next, fetched);
      }
      if (!more) return;
      if (++slot == STAGES) slot = 0, parity ^= 1;
    }
  }
};

}  // namespace sycl_mat
