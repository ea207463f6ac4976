// One operand of mma_sync: how a stage of it comes into local memory, and how the lanes of a warp read it there.
//
// A page is 64 bytes deep along k (4 chunks of 16 bytes) and OUTER rows of A or columns of B wide. Its lines are those of the matrix:
// ALONG_K: a line is a row of A (a column of B), 4 chunks;  else: a line is one k, OUTER elements, its chunks in the order c ^ swizzle(k).
// Lane (g, t) takes chunk t of 8 rows at a time, which is called a slot here: the words of a slot are those that instructions want, in an
// order along k that is the same for A and for B, and so does not matter.
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

  /// Of bits that are far enough apart: swizzle(i | j) is swizzle(i) ^ swizzle(j).
  static constexpr int swizzle(int line) {
    if (ALONG_K) return 0;
    if (element_bytes == 4) return 2 * (line / 4 % 4);
    return OUTER == 32 ? line / 8 : 2 * (line / 8) + line % 2;
  }

  // ---- from global memory ----
  // Little is kept while products run, because registers are dear; what is seldom needed is computed when it is.
  const in_t* next;  // this thread's first chunk of the next stage
  unsigned to;       // … in a page
  int inside;        // rows of the tile (columns of B) that the matrix has
  int unit;          // bytes that can be copied at once: 16, 4, or 2 (16-bit numbers at odd places)

  INLINE Operand(const in_t* matrix, index ld, index inner, index outer, index first, index extent, index k) {
    const int line = thread_id() / line_chunks, chunk = thread_id() % line_chunks;
    next = matrix + (ALONG_K ? (first + line) * ld + k + chunk * chunk_elements : (k + line) * ld + first + chunk * chunk_elements);
    to = unsigned(line * line_bytes + (chunk ^ swizzle(line)) * 16);
    inside = int(min(extent - first, OUTER));
    const index places = reinterpret_cast<index>(matrix) | (ld | inner | outer) * element_bytes;
    unit = (places & 15) == 0 ? 16 : (places & 3) == 0 ? 4 : 2;
  }

  /// Copies the next stage, of which `depth` elements along k exist.
  INLINE void copy(unsigned page, index ld, int depth) {
    asm volatile("" : "+l"(ld));  // or distances would be computed before the loop and kept
    if (unit == 16 && inside == OUTER && depth == tile_k) {
      const in_t* from = next;
#pragma unroll
      for (int q = 0; q < each; ++q) {
        copy_16(chunk_place(page + to, q), from);
        from += line_step * ld;
      }
    } else if (unit == 16) {
      copy_in_parts<16>(page + to, ld, depth);
    } else if (element_bytes == 4 || unit == 4) {
      copy_in_parts<4>(page + to, ld, depth);
    } else {
      copy_singly(page + to, ld, depth);
    }
    next += ALONG_K ? index(tile_k) : tile_k * ld;
  }
  INLINE static unsigned chunk_place(unsigned first, int q) {
    return (first ^ unsigned(swizzle(q * line_step) * 16)) + q * line_step * line_bytes;
  }
  /// From this thread's first chunk on, how many lines exist, and how many elements of a line.
  INLINE int lines(int depth) const { return (ALONG_K ? inside : depth) - fresh_thread_id() / line_chunks; }
  INLINE int along(int depth) const { return (ALONG_K ? depth : inside) - fresh_thread_id() % line_chunks * chunk_elements; }

  template <int bytes>
  INLINE void copy_in_parts(unsigned first, index ld, int depth) const {
    const in_t* from = next;
    const int lines_left = lines(depth), along_left = along(depth);
#pragma unroll
    for (int q = 0; q < each; ++q) {
#pragma unroll
      for (int e = 0; e < chunk_elements; e += bytes / element_bytes) {
        const int rest = q * line_step < lines_left ? (along_left - e) * element_bytes : 0, present = rest < bytes ? rest : bytes;
        copy_part<bytes>(chunk_place(first, q) + e * element_bytes, present > 0 ? from + e : next, present > 0 ? present : 0);
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
  /// Where a lane begins to read, for the first slot of its warp.
  INLINE static unsigned place(int warp, int lane) {
    const int g = lane / 4, t = lane % 4, first = warp * SLOTS * 8;
    if constexpr (ALONG_K) {
      return unsigned((first + g) * 64 + t * 16);
    } else if constexpr (element_bytes == 4) {
      return unsigned(4 * t * line_bytes + ((first / 4 + g) ^ 2 * t) * 16);
    } else {
      const int k = 8 * (lane % 8 / 2) + 2 * (lane / 8) + lane % 2;
      return unsigned(k * line_bytes + (first / 8 ^ swizzle(k)) * 16);
    }
  }
  /// Words step · 2 and so on of `slots` slots from number `slot` on; `from` is a page and place().
  template <int slots, int words>
  INLINE static void read(unsigned from, int slot, int step, unsigned (&w)[slots][words]) {
    if constexpr (ALONG_K) {
#pragma unroll
      for (int s = 0; s < slots; ++s) load_words(from + (slot + s) * 512 + step * 8, w[s]);
    } else if constexpr (element_bytes == 4) {
      // Four neighbours along the line, which are four slots.
      constexpr int width = slots < 4 ? slots : 4;
#pragma unroll
      for (int s = 0; s < slots; s += width)
#pragma unroll
        for (int e = 0; e < words; ++e) {
          unsigned v[width];
          load_words(from + (slot + s) / 4 * 128 + (slot + s) % 4 * 4 + (2 * step + e) * line_bytes, v);
#pragma unroll
          for (int i = 0; i < width; ++i) w[s + i][e] = v[i];
        }
    } else {
      static_assert(words == 4);
#pragma unroll
      for (int s = 0; s < slots; ++s) load_turned(from ^ unsigned((slot + s) * 16), w[s]);
    }
  }
  /// Which row of the tile (column of B), counted from the warp's first, row g of a slot is.
  INLINE static constexpr int outer_of(int slot, int g) {
    return !ALONG_K && element_bytes == 4 ? slot / 4 * 32 + 4 * g + slot % 4 : slot * 8 + g;
  }
};

}  // namespace sycl_mat
