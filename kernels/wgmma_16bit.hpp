// Hopper's warp-group products of float16 and bfloat16 numbers. PTX for sm_90a only.
//
// `wgmma_16` multiplies a 64×16 by a 16×N block, both in local memory, into 64×N sums in the registers of a warp-group: lane l of warp w
// (g = l / 4, t = l % 4) holds of columns 8j + 2t + {0, 1} sums[4j + {0, 1}] in row 16w + g and sums[4j + {2, 3}] in row 16w + g + 8.
#pragma once

#include "wgmma.hpp"

#define NAMES_80_AFTER_10 \
  TEN_NAMES(1) "," TEN_NAMES(2) "," TEN_NAMES(3) "," TEN_NAMES(4) "," TEN_NAMES(5) "," TEN_NAMES(6) "," TEN_NAMES(7) "," TEN_NAMES(8)
#define NAMES_96 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," NAMES_80_AFTER_10 ",%90,%91,%92,%93,%94,%95"
#define NAMES_128                                    \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," NAMES_80_AFTER_10 \
  "," TEN_NAMES(9) "," TEN_NAMES(10) "," TEN_NAMES(11) ",%120,%121,%122,%123,%124,%125,%126,%127"
#define SUMS_96(mode, d) SUMS_64(mode, d), SIXTEEN_SUMS(mode, d, 64), SIXTEEN_SUMS(mode, d, 80)
#define SUMS_128(mode, d) SUMS_96(mode, d), SIXTEEN_SUMS(mode, d, 96), SIXTEEN_SUMS(mode, d, 112)
#define WGMMA_16_OF(types, n, names, all_of, first, second, third, fourth)                                                       \
  asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." types " {" names "}, " first \
               ", " second ", p, 1, 1, " third ", " fourth ";}"                                                                  \
               : all_of("+f", sums)                                                                                              \
               : "l"(left), "l"(right), "n"(int(!left_along_k)), "n"(int(!right_along_k)))
#define WGMMA_16(n, names, all_of, first, second, third, fourth)              \
  if constexpr (ELEMENT == 3)                                                 \
    WGMMA_16_OF("bf16.bf16", n, names, all_of, first, second, third, fourth); \
  else                                                                        \
    WGMMA_16_OF("f16.f16", n, names, all_of, first, second, third, fourth)

namespace sycl_mat {

/// sums (64×N, N = 64, 128, 192 or 256) += left · right: descriptors (see Block). The sums may not be touched before wgmma_wait.
template <int n, bool left_along_k, bool right_along_k>
__attribute__((always_inline)) inline void wgmma_16(float (&sums)[n / 2], unsigned long long left, unsigned long long right) {
  static_assert(n == 64 || n == 128 || n == 192 || n == 256);
  if constexpr (n == 64) {
    WGMMA_16("64", NAMES_32, SUMS_32, "%32", "%33", "%34", "%35");
  } else if constexpr (n == 128) {
    WGMMA_16("128", NAMES_64, SUMS_64, "%64", "%65", "%66", "%67");
  } else if constexpr (n == 192) {
    WGMMA_16("192", NAMES_96, SUMS_96, "%96", "%97", "%98", "%99");
  } else {
    WGMMA_16("256", NAMES_128, SUMS_128, "%128", "%129", "%130", "%131");
  }
}

/// Waits until no more than `left` of the committed groups are running.
template <int left>
inline void wgmma_wait_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/// The descriptor of a block in local memory, at a multiple of 1024, in lines of 64 elements whose 16-byte chunks are in the order
/// chunk ^ line % 8. Either a line is 64 neighbours along k (line number: the row of A or column of B), or 64 rows or columns at one k
/// (line number: k, the next 64 of them in the next block of 64 lines). `next_16` is what 16 further along k add to it.
template <bool along_k>
struct Block {
  static constexpr unsigned long long next_16 = along_k ? 2 : 128;
  static unsigned long long at(unsigned local_address) {
    constexpr unsigned long long swizzle_128 = 1ull << 62, eight_lines = 1024 / 16, next_64 = along_k ? 1 : 8192 / 16;
    return swizzle_128 | eight_lines << 32 | next_64 << 16 | local_address >> 4;
  }
};

/// One or two elements, or zero without reading anything: without a branch, so that many are on their way at a time.
inline unsigned load_2_or_zero(const void* from, bool load) {
  unsigned x;
  asm volatile("{.reg .pred p; .reg .b16 h; setp.ne.b32 p, %2, 0; mov.b16 h, 0; @p ld.global.nc.b16 h, [%1]; cvt.u32.u16 %0, h;}"
               : "=r"(x)
               : "l"(from), "r"(int(load)));
  return x;
}
inline unsigned load_4_or_zero(const void* from, bool load) {
  unsigned x;
  asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1];}" : "=r"(x) : "l"(from), "r"(int(load)));
  return x;
}
inline void store_16(unsigned to, const Vector<unsigned, 4>& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}
/// One lane of the warp arrives for all, which have got here.
inline void phase_arrive_for_warp(unsigned barrier) {
  asm volatile(
      "{.reg .pred p; .reg .b64 s; .reg .b32 l; bar.warp.sync 0xffffffff; mov.u32 l, %%laneid; setp.eq.u32 p, l, 0;"
      " @p mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(barrier)
      : "memory");
}
/// What the lane at a distance (a power of two) holds.
inline unsigned exchange(unsigned x, int lane_distance) {
  unsigned other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(other) : "r"(x), "r"(lane_distance));
  return other;
}

}  // namespace sycl_mat
