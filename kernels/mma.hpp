// The tensor units of NVIDIA devices from compute capability 8.0 on: products of one warp (mma.sync), and what feeds them.
//
// One instruction multiplies 16×(two chunks of 16 bytes) by (the same)×8: a word of a chunk is a TF32 number, or two 16-bit numbers that
// follow one another along k (float64: below). Lane l of the warp (g = l / 4, t = l % 4) holds
//   of the left block, left[0] row g and left[1] row g + 8, word t of the first chunk; left[2], left[3] the same of the second one,
//   of the right block, word t of column g of either chunk,
//   of the sums, columns 2t and 2t + 1: sums[0], sums[1] of row g, sums[2], sums[3] of row g + 8.
#pragma once

#include "ptx.hpp"

#define MMA(shape_and_types, c0, c1, c2, c3)                                                                    \
  asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
               : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])                                     \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1), "f"(c0), "f"(c1), "f"(c2), "f"(c3))

namespace sycl_mat {

/// sums ← left · right, or += with `accumulate`.
template <bool accumulate>
SYCL_MAT_INLINE void mma(float (&sums)[4], const unsigned (&left)[4], unsigned right0, unsigned right1) {
  const float c0 = accumulate ? sums[0] : 0, c1 = accumulate ? sums[1] : 0, c2 = accumulate ? sums[2] : 0, c3 = accumulate ? sums[3] : 0;
  if constexpr (ELEMENT == 2) {
    MMA("m16n8k16.row.col.f32.f16.f16.f32", c0, c1, c2, c3);
  } else if constexpr (ELEMENT == 3) {
    MMA("m16n8k16.row.col.f32.bf16.bf16.f32", c0, c1, c2, c3);
  } else {
    MMA("m16n8k8.row.col.f32.tf32.tf32.f32", c0, c1, c2, c3);
  }
}

/// sums += left · right of float64 numbers, rounded as multiply-adds are: 16×8 by 8×8. A lane holds two numbers along k, t and t + 4, of
/// row g (left[0]) and row g + 8 (left[1]), and of column g (right); sums as above.
SYCL_MAT_INLINE void mma(double (&sums)[4], const unsigned (&left)[2][4], const unsigned (&right)[4]) {
  double upper[2], lower[2], r[2];
  __builtin_memcpy(upper, left[0], sizeof(upper));
  __builtin_memcpy(lower, left[1], sizeof(lower));
  __builtin_memcpy(r, right, sizeof(r));
  if constexpr (LARGE_FLOAT64) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
                 : "d"(upper[0]), "d"(lower[0]), "d"(upper[1]), "d"(lower[1]), "d"(r[0]), "d"(r[1]));
  } else {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+d"(sums[0]), "+d"(sums[1])
                   : "d"(upper[k]), "d"(r[k]));
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+d"(sums[2]), "+d"(sums[3])
                   : "d"(lower[k]), "d"(r[k]));
    }
  }
}

/// Four blocks of 8 rows of 16 bytes: lane 8q + r names the address of row r of block q. blocks[q] of lane (g, t) is word t of row g; or,
/// `turned`, of 16-bit numbers: column g of rows 2t and 2t + 1.
template <bool turned>
SYCL_MAT_INLINE void load_blocks(unsigned from, unsigned (&blocks)[4]) {
  if constexpr (turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
                 : "r"(from));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
                 : "r"(from));
  }
}
/// The first `present` of 4, 8 or 16 bytes, the others zeros.
template <int bytes>
SYCL_MAT_INLINE void copy_part(unsigned to, const void* from, int present) {
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(present), "n"(bytes) : "memory");
  }
}
/// This thread's copies up to here form a group; waits until at most `count` of its groups are under way.
SYCL_MAT_INLINE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int count>
SYCL_MAT_INLINE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory");
}

/// Waits for the other lanes of the warp.
SYCL_MAT_INLINE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
/// Waits for all threads of the block: whether any of them said yes.
SYCL_MAT_INLINE bool any_of_block(bool mine) {
  int any;
  asm volatile("{.reg .pred p, q; setp.ne.b32 q, %1, 0; bar.red.or.pred p, 0, q; selp.b32 %0, 1, 0, p;}"
               : "=r"(any)
               : "r"(int(mine))
               : "memory");
  return any != 0;
}

}  // namespace sycl_mat

#undef MMA
