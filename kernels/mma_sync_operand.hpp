// One operand of mma_sync: how a stage of it comes into local memory, and how the lanes of a warp read it there.
//
// A page is 64 bytes deep along k, which are 4 chunks of 16 bytes, and OUTER rows of A or columns of B wide. Its lines are those of the
// matrix, with their pieces of 16 bytes in the order piece ^ swizzle(line), so that neither copies nor reads meet in a bank:
// ALONG_K: a line is a row of A (a column of B), its pieces are the chunks; else: a line is one k, with 2 to 8 rows or columns a piece.
// Eight rows of A, or columns of B, are called a slot.
//
// 16-bit numbers are read by ldmatrix, as instructions want them. Of wider ones, lane (g, t) reads chunk t of row g of a slot as a vector:
// the instructions then get the elements along k in another order, which is the same for A and B.
//
// To be included where the number of threads is known.
#pragma once

#include "mma.hpp"

namespace sycl_mat {

constexpr int element_bytes = sizeof(in_t), tile_k = 64 / element_bytes, chunk_elements = 16 / element_bytes;

template <int OUTER, int SLOTS, bool ALONG_K>
struct Operand {
  static constexpr int page_bytes = OUTER * 64;
  static constexpr int line_bytes = ALONG_K ? 64 : OUTER * element_bytes, line_chunks = line_bytes / 16;
  static constexpr int line_step = threads / line_chunks, each = OUTER * 4 / threads;  // chunks that a thread copies, and their distance
  static_assert(OUTER * 4 % threads == 0 && threads % line_chunks == 0, "all threads copy the same number of chunks");
  static_assert((OUTER & (OUTER - 1)) == 0 && OUTER >= 32 && SLOTS % 4 == 0);

  static constexpr int swizzle(int line) {
    if (element_bytes >= 4) return ALONG_K ? 0 : 2 * (line / chunk_elements % 4);
    return line_bytes == 64 ? line / 2 % 4 : line % 8;
  }

  // ---- from global memory ----
  // Little is kept while products run, because registers are dear; what is seldom needed is computed when it is.
  const in_t* next;  // this thread's first chunk of the next stage
  unsigned to;       // … in a page
  int inside;        // rows of the tile (columns of B) that the matrix has
  int unit;          // bytes that can be copied at once: 16, 8 (float64), 4, or 2 (16-bit numbers at odd places)

  INLINE Operand(const in_t* matrix, index ld, index inner, index outer, index first, index extent, index k) {
    const int line = thread_id() / line_chunks, chunk = thread_id() % line_chunks;
    next = matrix + (ALONG_K ? (first + line) * ld + k + chunk * chunk_elements : (k + line) * ld + first + chunk * chunk_elements);
    to = unsigned(line * line_bytes + (chunk ^ swizzle(line)) * 16);
    inside = int(min(extent - first, OUTER));
    const index places = reinterpret_cast<index>(matrix) | (ld | inner | outer) * element_bytes;
    unit = (places & 15) == 0 ? 16 : element_bytes == 8 ? 8 : (places & 3) == 0 ? 4 : 2;
  }

  /// Copies the next stage, of which `depth` elements along k exist. `any` is an address that may be read.
  INLINE void copy(unsigned page, const in_t* any, index ld, int depth) {
    asm volatile("" : "+l"(ld));  // or distances would be computed before the loop and kept
    if (unit == 16 && inside == OUTER && depth == tile_k) {
      const in_t* from = next;
#pragma unroll
      for (int q = 0; q < each; ++q) {
        copy_16(chunk_place(page + to, q), from);
        from += line_step * ld;
      }
    } else if (unit == 16) {
      copy_in_parts<16>(page + to, any, ld, depth);
    } else if (element_bytes >= 4 || unit == 4) {
      copy_in_parts<element_bytes == 8 ? 8 : 4>(page + to, any, ld, depth);
    } else {
      copy_singly(page + to, ld, depth);
    }
    next += ALONG_K ? index(tile_k) : tile_k * ld;
  }
  INLINE static unsigned chunk_place(unsigned first, int q) {
    return (first ^ unsigned(swizzle(q * line_step) * 16)) + q * line_step * line_bytes;  // the steps' bits are above the first line's
  }
  /// From this thread's first chunk on, how many lines exist, and how many elements of a line.
  INLINE int lines(int depth) const { return (ALONG_K ? inside : depth) - fresh_thread_id() / line_chunks; }
  INLINE int along(int depth) const { return (ALONG_K ? depth : inside) - fresh_thread_id() % line_chunks * chunk_elements; }

  /// What is not there becomes zeros, and its address is not used.
  template <int bytes>
  INLINE void copy_in_parts(unsigned first, const in_t* any, index ld, int depth) const {
    const in_t* from = next;
    const int lines_left = lines(depth), along_left = along(depth);
#pragma unroll
    for (int q = 0; q < each; ++q) {
#pragma unroll
      for (int e = 0; e < chunk_elements; e += bytes / element_bytes) {
        const int rest = q * line_step < lines_left ? (along_left - e) * element_bytes : 0, present = rest < bytes ? rest : bytes;
        copy_part<bytes>(chunk_place(first, q) + e * element_bytes, present > 0 ? from + e : any, present > 0 ? present : 0);
      }
      from += line_step * ld;
    }
  }
  /// 16-bit numbers at any place, one by one.
  INLINE void copy_singly(unsigned first, index ld, int depth) const {
    const in_t* from = next;
    const int lines_left = lines(depth), along_left = along(depth);
#pragma unroll
    for (int q = 0; q < each; ++q) {
      unsigned words[4] = {};
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        unsigned x = 0;
        if (q * line_step < lines_left && e < along_left) x = *reinterpret_cast<const unsigned short*>(from + e);
        words[e / 2] |= e % 2 ? x << 16 : x;
      }
      store_words(chunk_place(first, q), words);
      from += line_step * ld;
    }
  }

  // ---- to the tensor units ----
  /// Where a lane begins to read. Of 16-bit numbers four blocks are read at a time: as left operands of two slots and two chunks, as right
  /// ones the four chunks of one slot.
  template <bool left>
  INLINE static unsigned place(int warp, int lane) {
    const int first = warp * SLOTS * 8;
    if constexpr (element_bytes == 2) {
      const int block = lane / 8, row = lane % 8, slot = left ? block % 2 : 0, chunk = left ? block / 2 : block;
      const int line = ALONG_K ? first + slot * 8 + row : chunk * 8 + row, piece = ALONG_K ? chunk : first / 8 + slot;
      return unsigned(line * line_bytes + (piece ^ swizzle(line)) * 16);
    } else {
      const int g = lane / 4, t = lane % 4;
      if (ALONG_K) return unsigned((first + g) * line_bytes + t * 16);
      // A piece is a row or column g of chunk_elements slots.
      return unsigned(chunk_elements * t * line_bytes + ((first / chunk_elements + g) ^ swizzle(chunk_elements * t)) * 16);
    }
  }
  /// A place some slots and an even number of chunks further on, for 16-bit numbers.
  INLINE static unsigned further(unsigned from, int slot, int chunk) {
    if constexpr (ALONG_K) return (from ^ unsigned(chunk * 16)) + slot * 8 * line_bytes;
    return (from ^ unsigned(slot * 16)) + chunk * 8 * line_bytes;
  }
  /// Float32 and float64: chunk t of some slots.
  template <int slots>
  INLINE static void read_slots(unsigned from, int slot, unsigned (&words)[slots][4]) {
    if constexpr (ALONG_K) {
#pragma unroll
      for (int s = 0; s < slots; ++s) load_words(from + (slot + s) * 8 * line_bytes, words[s]);
    } else {
      constexpr int width = slots < chunk_elements ? slots : chunk_elements;
      constexpr int element = element_bytes > 4 ? 2 : 1;  // words
#pragma unroll
      for (int s = 0; s < slots; s += width)
#pragma unroll
        for (int e = 0; e < chunk_elements; ++e) {
          unsigned v[width * element];
          load_words(from + (slot + s) / chunk_elements * 128 + (slot + s) % chunk_elements * element_bytes + e * line_bytes, v);
#pragma unroll
          for (int i = 0; i < width * element; ++i) words[s + i / element][e * element + i % element] = v[i];
        }
    }
  }
  /// The left operands of two slots, for both steps of a page; float64: of both slots, for its only step.
  INLINE static void read_left(unsigned from, int two_slots, unsigned (&left)[2][4]) {
    if constexpr (element_bytes == 2) {
#pragma unroll
      for (int step = 0; step < 2; ++step) load_blocks<!ALONG_K>(further(from, two_slots * 2, step * 2), left[step]);
    } else if constexpr (element_bytes == 8) {
      read_slots(from, two_slots * 2, left);
    } else {
      unsigned words[2][4];
      read_slots(from, two_slots * 2, words);
#pragma unroll
      for (int e = 0; e < 8; ++e) left[e / 4][e % 4] = words[e % 2][e / 2];
    }
  }
  /// All slots of a warp as right operands: words 2 · step and 2 · step + 1 of each; float64: all words.
  INLINE static void read_right(unsigned from, unsigned (&right)[SLOTS][4]) {
    if constexpr (element_bytes == 2) {
#pragma unroll
      for (int slot = 0; slot < SLOTS; ++slot) load_blocks<!ALONG_K>(further(from, slot, 0), right[slot]);
    } else {
      read_slots(from, 0, right);
    }
  }
  /// Which row of the tile (column of B), counted from the warp's first, row g of a slot is.
  INLINE static constexpr int outer_of(int slot, int g) {
    constexpr int n = ALONG_K || element_bytes == 2 ? 1 : chunk_elements;
    return (slot / n * 8 + g) * n + slot % n;
  }
};

}  // namespace sycl_mat
