// The producers of wgmma16: they bring a stage of A and B into local memory.
//
// To be included where Pages and the constants are known.
#pragma once

#include "tile_shares.hpp"

namespace sycl_mat {

/// One operand's part of a stage: as many lines of 64 elements as a tile has rows (A) or columns (B), see Block. A producer brings the
/// same chunk of 8 elements of every 16th line.
template <bool along_k, int tile>
struct Side {
  static constexpr int step = producers / 8, passes = tile / step;
  static_assert(64 % step == 0);
  /// How far right of a producer's first chunk, along its line's neighbours, and how many lines further down in memory the q-th one lies.
  static constexpr int right(int q) { return along_k ? 0 : q * step / 64 * 64; }
  static constexpr int down(int q) { return along_k ? q * step : q * step % 64; }

  /// `to`: local address of the first chunk. In memory `right_left` elements from there on are inside the matrix, and `down_left` lines.
  static INLINE void copy(unsigned to, const in_t* from, index ld) {
#pragma unroll
    for (int q = 0; q < passes; ++q) copy_16(to + q * step * line_bytes, from + down(q) * ld + right(q));
  }
  /// The same where lines or whole chunks lie beyond an edge: others inside are read again, for nobody stores what comes of them.
  static INLINE void copy_clamped(unsigned to, const in_t* from, index ld, int down_left, int right_left) {
    if (along_k && down_left <= 0) from += (down_left - 1) * ld;
#pragma unroll
    for (int q = 0; q < passes; ++q) {
      const int across = right(q) < right_left - 8 ? right(q) : right_left - 8;
      copy_16(to + q * step * line_bytes, along_k ? from : from + down(q) * ld + across);
      if (along_k && down(q) + step < down_left) from += step * ld;
    }
  }
  static INLINE void copy_inside(unsigned to, const in_t* from, index ld, int down_left, int right_left, const in_t* anything) {
#pragma unroll
    for (int q = 0; q < passes; ++q) {
      const int elements = down(q) < down_left ? int(min(right_left - right(q), 8)) : 0;
      copy_16_or_less(to + q * step * line_bytes, elements > 0 ? from + down(q) * ld + right(q) : anything,
                      elements > 0 ? 2 * elements : 0);
    }
  }
  /// Where lines begin anywhere.
  static INLINE void load_and_store(unsigned to, const in_t* from, index ld, int down_left, int right_left) {
    constexpr int together = passes % 8 == 0 ? 8 : passes % 6 == 0 ? 6 : 4;  // on their way at a time
    static_assert(passes % together == 0);
#pragma unroll
    for (int first = 0; first < passes; first += together) {
      Words words[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int q = first + i;
        words[i].load(from + down(q) * ld + right(q), down(q) < down_left && right_left - right(q) >= 8);
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int q = first + i, left = down(q) < down_left ? right_left - right(q) : 0;
        const in_t* chunk = from + down(q) * ld + right(q);
        store_16(to + q * step * line_bytes, left > 0 && left < 8 ? part_of_chunk(chunk, left) : words[i].chunk(chunk));
      }
    }
  }

 private:
  /// A chunk that begins at any element: six neighbours in three words, and the two others.
  struct Words {
    unsigned six[3], single, last;

    static INLINE bool odd(const in_t* chunk) { return (reinterpret_cast<index>(chunk) & 2) != 0; }
    INLINE void load(const in_t* chunk, bool inside) {
#pragma unroll
      for (int i = 0; i < 3; ++i) six[i] = load_4_or_zero(chunk + odd(chunk) + 2 * i, inside);
      single = load_2_or_zero(odd(chunk) ? chunk : chunk + 6, inside);
      last = load_2_or_zero(chunk + 7, inside);
    }
    INLINE Vector<unsigned, 4> chunk(const in_t* from) const {
      if (odd(from)) return {single | six[0] << 16, six[0] >> 16 | six[1] << 16, six[1] >> 16 | six[2] << 16, six[2] >> 16 | last << 16};
      return {six[0], six[1], six[2], single | last << 16};
    }
  };
  /// Fewer than 8 elements, the others zero.
  static INLINE Vector<unsigned, 4> part_of_chunk(const in_t* chunk, int left) {
    Vector<unsigned, 4> v = {0, 0, 0, 0};
#pragma unroll
    for (int e = 0; e < 7; ++e) v[e / 2] |= load_2_or_zero(chunk + e, e < left) << e % 2 * 16;
    return v;
  }
};
using SideA = Side<a_along_k, TILE_ROWS>;
using SideB = Side<b_along_k, TILE_COLS>;

/// The next stage that a producer brings: its first elements, and how far the edges are.
struct Cursor {
  Work work;
  const in_t *a, *b;
  int rows_left, cols_left, k_left;  // from the stage's beginning to the edges
  int stages_left;                   // of the present part
  int plain_a, plain_b;              // of those, how many from here on lie wholly inside A and B, in whole chunks
};

struct Producer {
  const Args& g;
  Matrices whole;  // of the batch's first matrix
  int id;
  bool chunks_a, chunks_b;  // addresses and distances allow copies of 16 bytes
  unsigned pages;           // local address

  INLINE int line() const { return id / 8; }
  INLINE int right() const { return id % 8 * 8; }

  INLINE void start_part(Cursor& c) const {
    const Grid grid(g);
    const Part part = c.work.next(grid);
    if (part.tile >= grid.tiles) return;
    const Place at = place_of(part.tile, grid);
    const Matrices of = matrices_at(at, whole, g);
    const index k = index(part.begin) * tile_k;
    constexpr index far = 1 << 20;
    c.a = of.a + at_a(g, at.row + (a_along_k ? line() : right()), k + (a_along_k ? right() : line()));
    c.b = of.b + at_b(g, k + (b_along_k ? right() : line()), at.col + (b_along_k ? line() : right()));
    c.rows_left = int(min(far, g.m - at.row));
    c.cols_left = int(min(far, g.n - at.col));
    c.k_left = int(min(1 << 30, g.k - k));
    c.stages_left = part.end - part.begin;
    const int whole_stages = int(min(c.stages_left, c.k_left / tile_k));
    c.plain_a = chunks_a && c.rows_left >= TILE_ROWS ? whole_stages : 0;
    c.plain_b = chunks_b && c.cols_left >= TILE_COLS ? whole_stages : 0;
  }
  INLINE void advance(Cursor& c) const {
    if (--c.stages_left == 0) return start_part(c);
    c.a += a_along_k ? tile_k : tile_k * g.lda;
    c.b += b_along_k ? tile_k : tile_k * g.ldb;
    c.k_left -= tile_k;
    --c.plain_a;
    --c.plain_b;
  }

  INLINE void bring(const Cursor& c, unsigned to_a, unsigned to_b) const {
    if (c.plain_a > 0 && c.plain_b > 0) {  // nearly always
      SideA::copy(to_a, c.a, g.lda);
      SideB::copy(to_b, c.b, g.ldb);
      return;
    }
    bring_side<SideA, a_along_k>(to_a, c.a, g.lda, c.rows_left, c.k_left, c.plain_a > 0, chunks_a, whole.a);
    bring_side<SideB, b_along_k>(to_b, c.b, g.ldb, c.cols_left, c.k_left, c.plain_b > 0, chunks_b, whole.b);
  }
  template <class Side, bool along_k>
  INLINE void bring_side(unsigned to, const in_t* from, index ld, int outer_left, int k_left, bool plain, bool chunks,
                         const in_t* anything) const {
    if (plain) return Side::copy(to, from, ld);
    const int down_left = (along_k ? outer_left : k_left) - line(), right_left = (along_k ? k_left : outer_left) - right();
    if (chunks && k_left >= tile_k && (along_k || outer_left % 8 == 0))
      Side::copy_clamped(to, from, ld, down_left, right_left);
    else if (chunks)
      Side::copy_inside(to, from, ld, down_left, right_left, anything);
    else
      Side::load_and_store(to, from, ld, down_left, right_left);
  }

  INLINE void run() const {
    Cursor next{Work(Grid(g)), whole.a, whole.b, 0, 0, 0, 0, 0, 0};
    const int count = next.work.count(Grid(g));
    if (count == 0) return;
    start_part(next);
    const unsigned place = line() * line_bytes + (id % 8 ^ line() % 8) * 16;  // 16 lines further down the order is the same
    const bool stores = !(chunks_a && chunks_b);
    int slot = 0, parity = 1;
    for (int stage = 0; stage < count; ++stage) {
      phase_wait(empty(pages, slot), parity);
      bring(next, pages + slot * page_bytes + place, pages + slot * page_bytes + a_bytes + place);
      phase_arrive_after_copies(full(pages, slot));
      if (stores) phase_arrive(full(pages, slot));
      advance(next);
      if (++slot == STAGES) slot = 0, parity ^= 1;
    }
  }
};

}  // namespace sycl_mat
