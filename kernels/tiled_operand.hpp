// One operand of `tiled`: how its tiles come from global memory, through registers, into local memory, and are read there.
//
// To be included where the constants of tiled.cpp are known.
#pragma once

#include "device.hpp"

namespace sycl_mat {

// Vector loads that need no alignment are split into single ones by the PTX back end, and are slow for elements below 4 bytes on
// Intel GPUs: there it pays to look whether the addresses are aligned.
//
// Each work-item walks with a pointer of its own there, which saves PTX registers. Intel's graphics compiler (22.43) crashes on that
// where a work-item has several chunks: it gets the sum written out, and finds the common part itself.
#ifdef __NVPTX__
constexpr bool PREFERS_ALIGNED = true, OWN_POINTERS = true;
#else
constexpr bool PREFERS_ALIGNED = sizeof(in_t) < 4, OWN_POINTERS = false;
#endif

/// Which row (or column) of the block is number `i` of work-item `lane`: pieces of up to 4 stay together.
template <int TILE, int BATCH>
SYCL_MAT_INLINE int place(int lane, int i) {
  constexpr int piece = STRIDED ? gcd(BATCH, 4) : BATCH;
  return i / piece * (TILE * piece) + lane * piece + i % piece;
}

/// One operand: OUTER rows of A (or columns of B) × TILE_K. ALONG_K: neighbours in global memory follow each other along k.
/// BY_K: in local memory, the elements of one k lie together.
template <int OUTER, bool ALONG_K, bool BY_K>
struct Operand {
  static constexpr int LINE = ALONG_K ? TILE_K : OUTER;  // elements of a tile that lie together in global memory
  static constexpr int WIDTH = gcd(CHUNK, LINE);
  static constexpr int PER_LINE = LINE / WIDTH;
  static constexpr int CHUNKS = OUTER * TILE_K / WIDTH;
  static constexpr int EACH = ceil_div(CHUNKS, ITEMS);  // chunks a work-item moves
  static constexpr bool EVEN = ITEMS % PER_LINE == 0;   // its chunks stand below one another
  static constexpr int PITCH = (BY_K ? OUTER : TILE_K) + PAD;
  static constexpr int SIZE = ceil_div((BY_K ? TILE_K : OUTER) * PITCH, 8) * 8;

  const in_t* from;  // the block's element at k = 0
  index ld;
  int outside;       // rows of the matrix from the block's first on: fewer than OUTER only in small matrices
  bool aligned;      // as far as it matters
  const in_t* next;  // the next tile; with OWN_POINTERS, this work-item's first chunk of it
  Vector<in_t, WIDTH> chunks[EACH];

  SYCL_MAT_MEMBER Operand(const in_t* matrix, index ld_, index first, index extent, index begin, int item)
      : from(matrix + (ALONG_K ? first * ld_ : first)), ld(ld_), outside(int(min(extent - first, OUTER))) {
    constexpr index bytes = WIDTH * sizeof(in_t);
    next = from + (ALONG_K ? begin : begin * ld);
    aligned = (reinterpret_cast<index>(next) | (ld * index(sizeof(in_t)))) % bytes == 0;
    if constexpr (EVEN && OWN_POINTERS) next += line_of(item, 0) * ld + column_of(item, 0);
  }
  /// Whole tiles can be loaded by load(): no row is missing.
  SYCL_MAT_MEMBER bool simple() const { return outside == OUTER; }

  /// Line and first element of this work-item's chunk number q.
  SYCL_MAT_INLINE int line_of(int item, int q) {
    if constexpr (EVEN) return item / PER_LINE + q * (ITEMS / PER_LINE);
    return (item + q * ITEMS) / PER_LINE;
  }
  SYCL_MAT_INLINE int column_of(int item, int q) {
    if constexpr (EVEN) return item % PER_LINE * WIDTH;
    return (item + q * ITEMS) % PER_LINE * WIDTH;
  }
  SYCL_MAT_INLINE bool has(int item, int q) { return CHUNKS % ITEMS == 0 || item + q * ITEMS < CHUNKS; }

  /// Starts the loads of the next tile, which is whole. `by_vectors`: the addresses are aligned.
  SYCL_MAT_MEMBER void load(int item, bool by_vectors) {
    if (PREFERS_ALIGNED && by_vectors) {
#pragma unroll
      for (int q = 0; q < EACH; ++q)
        if (has(item, q)) chunks[q] = load_constant_aligned<WIDTH>(next + offset(item, q));
    } else {
#pragma unroll
      for (int q = 0; q < EACH; ++q)
        if (has(item, q)) chunks[q] = load_unaligned<WIDTH>(next + offset(item, q));
    }
    next += ALONG_K ? index(TILE_K) : TILE_K * ld;
  }
  SYCL_MAT_MEMBER index offset(int item, int q) const {
    return EVEN && OWN_POINTERS ? q * (ITEMS / PER_LINE) * ld : line_of(item, q) * ld + column_of(item, q);
  }

  /// The same for any tile, at k0. `inside` elements along k exist; the first `shared` were in the tile before and count as zeros.
  SYCL_MAT_MEMBER void load_any(int item, index k0, int inside, int shared) {
    const in_t* tile = from + (ALONG_K ? k0 : k0 * ld);
#pragma unroll
    for (int q = 0; q < EACH; ++q) {
      if (!has(item, q)) continue;
      const int line = line_of(item, q), column = column_of(item, q);
      load_masked(tile, q, line, column, inside);
#pragma unroll
      for (int e = 0; e < WIDTH; ++e)
        if ((ALONG_K ? column + e : line) < shared) chunks[q][e] = in_t(0);
    }
  }

  /// Beyond the matrix's edge the last row is read again (nobody stores what comes of it), beyond the end of k zeros are taken.
  SYCL_MAT_MEMBER void load_masked(const in_t* tile, int q, int line, int column, int inside) {
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
      const int outer = ALONG_K ? line : column + e, k = ALONG_K ? column + e : line;
      const index o = outer < outside ? outer : outside - 1, p = k < inside ? k : inside - 1;
      const in_t x = tile[ALONG_K ? o * ld + p : p * ld + o];
      chunks[q][e] = k < inside ? x : in_t(0);
    }
  }

  /// Waits for the loads and puts the chunks into a page.
  SYCL_MAT_MEMBER void store(int item, acc_t* page) {
#pragma unroll
    for (int q = 0; q < EACH; ++q) {
      if (!has(item, q)) continue;
      const int line = line_of(item, q), column = column_of(item, q);
      if constexpr (ALONG_K == BY_K) {  // turned round on the way
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) page[(column + e) * PITCH + line] = widen(chunks[q][e]);
      } else {
        Vector<acc_t, WIDTH> wide;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) wide[e] = widen(chunks[q][e]);
        acc_t* to = page + line * PITCH + column;
        if constexpr (PITCH % WIDTH == 0 && WIDTH <= 8) {
          *reinterpret_cast<Vector<acc_t, WIDTH>*>(to) = wide;
        } else {
          *reinterpret_cast<UnalignedVector<acc_t, WIDTH>*>(to) = wide;
        }
      }
    }
  }

  /// The BATCH elements that work-item `lane` multiplies at k.
  template <int TILE, int BATCH>
  SYCL_MAT_INLINE void read(const acc_t* page, int lane, int k, acc_t (&fragment)[BATCH]) {
    constexpr int piece = gcd(BATCH, 4);
    if constexpr (BY_K && PITCH % piece == 0) {
#pragma unroll
      for (int i = 0; i < BATCH; i += piece) {
        const auto v = load_aligned<piece>(page + k * PITCH + place<TILE, BATCH>(lane, i));
#pragma unroll
        for (int e = 0; e < piece; ++e) fragment[i + e] = v[e];
      }
    } else {
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int outer = place<TILE, BATCH>(lane, i);
        fragment[i] = page[BY_K ? k * PITCH + outer : outer * PITCH + k];
      }
    }
  }
};

}  // namespace sycl_mat
