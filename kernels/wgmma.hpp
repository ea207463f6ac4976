// Hopper's warp-group instructions as functions: TF32 products, shared-memory barriers. PTX for sm_90a only.
//
// A warp-group is 4 neighbouring warps. `wgmma` multiplies a 64×8 block that lies in its registers by an 8×N block that lies in local
// memory, into 64×N sums in its registers: lane l of warp w (g = l / 4, t = l % 4) holds
//   of the left block, rows 16w + g and 16w + g + 8, columns t and t + 4: left[0] (g, t), [1] (g + 8, t), [2] (g, t + 4), [3] (g + 8, t +
//   4); of the sums, columns 8j + 2t + {0, 1}: sums[4j + {0, 1}] of row g, sums[4j + {2, 3}] of row g + 8.
#pragma once

#include "ptx.hpp"

// The registers of an instruction are named one by one: "%0,%1,…" in its text, "+f"(d[0]),… in its operands, ten by ten.
#define TEN_NAMES(tens) \
  "%" #tens "0,%" #tens "1,%" #tens "2,%" #tens "3,%" #tens "4,%" #tens "5,%" #tens "6,%" #tens "7,%" #tens "8,%" #tens "9"
#define NAMES_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," TEN_NAMES(1) "," TEN_NAMES(2) ",%30,%31"
#define NAMES_64 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," TEN_NAMES(1) "," TEN_NAMES(2) "," TEN_NAMES(3) "," TEN_NAMES(4) "," TEN_NAMES(5) ",%60,%61,%62,%63"
#define FOUR_SUMS(mode, d, i) mode(d[i]), mode(d[i + 1]), mode(d[i + 2]), mode(d[i + 3])
#define SIXTEEN_SUMS(mode, d, i) FOUR_SUMS(mode, d, i), FOUR_SUMS(mode, d, i + 4), FOUR_SUMS(mode, d, i + 8), FOUR_SUMS(mode, d, i + 12)
#define SUMS_32(mode, d) SIXTEEN_SUMS(mode, d, 0), SIXTEEN_SUMS(mode, d, 16)
#define SUMS_64(mode, d) SUMS_32(mode, d), SIXTEEN_SUMS(mode, d, 32), SIXTEEN_SUMS(mode, d, 48)
#define WGMMA(shape, names, sums, first, second, third, fourth, fifth, accumulate)                                             \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " accumulate ", 0; wgmma.mma_async.sync.aligned." shape ".f32.tf32.tf32 {" names \
               "}, {" first "," second "," third "," fourth "}, " fifth ", p, 1, 1;}"                                          \
               : sums                                                                                                          \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right))

namespace sycl_mat {

/// sums (64×N, N = 64 or 128) ← left · right, or += with `accumulate`. `right` is a descriptor (see swizzled_block).
/// The sums may not be touched before wgmma_wait.
template <int n, bool accumulate>
__attribute__((always_inline)) inline void wgmma(float (&sums)[n / 2], const unsigned (&left)[4], unsigned long long right) {
  static_assert(n == 64 || n == 128);
  // Without accumulation the sums are outputs only, which also spares the compiler from clearing them.
  if constexpr (n == 64 && accumulate) {
    WGMMA("m64n64k8", NAMES_32, SUMS_32("+f", sums), "%32", "%33", "%34", "%35", "%36", "1");
  } else if constexpr (n == 64) {
    WGMMA("m64n64k8", NAMES_32, SUMS_32("=f", sums), "%32", "%33", "%34", "%35", "%36", "0");
  } else if constexpr (accumulate) {
    WGMMA("m64n128k8", NAMES_64, SUMS_64("+f", sums), "%64", "%65", "%66", "%67", "%68", "1");
  } else {
    WGMMA("m64n128k8", NAMES_64, SUMS_64("=f", sums), "%64", "%65", "%66", "%67", "%68", "0");
  }
}
/// Before the first product that reads registers written since the last one.
inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
inline void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

/// The descriptor of a block whose rows are 32 floats along k (128 bytes), at a local address that is a multiple of 1024. The 16-byte
/// chunks of row r are stored in the order c ^ (r % 8). Eight floats further along k the descriptor is larger by 2.
inline unsigned long long swizzled_block(unsigned local_address) {
  constexpr unsigned long long swizzle_128 = 1ull << 62, eight_rows = 1024 / 16, unused = 1;
  return swizzle_128 | eight_rows << 32 | unused << 16 | local_address >> 4;
}

// Barriers in local memory ("mbarrier"): a phase ends when as many threads have arrived as the barrier was made for.
inline void phase_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
inline void phase_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
inline void phase_arrive(unsigned barrier) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(barrier) : "memory"); }
/// Arrives when the asynchronous copies that this thread has issued so far are done.
inline void phase_arrive_after_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
inline void phase_wait(unsigned barrier, int parity) {
  int done;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (!done);
}

/// Ordinary stores to local memory that this thread knows to be done become visible to its wgmma. Whoever waits for the stores may do this
/// as well as whoever stores: it has to stand somewhere between the two.
inline void stores_to_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Registers of a thread from here on; every warp of the warp-group must get there.
template <int count>
inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// Two warp-groups, 0 and 1, that take turns (barriers 3 and 4): one waits for its turn, which the other passes on to it.
inline void wait_for_turn(int group) { asm volatile("bar.sync %0, 256;" ::"r"(3 + group) : "memory"); }
inline void pass_turn_from(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(4 - group) : "memory"); }

/// Waits for the 128 threads of a warp-group (barriers 1, 2, …): whether any of them said yes.
inline bool any_of_group(int group, bool mine) {
  int any;
  asm volatile("{.reg .pred p, q; setp.ne.b32 q, %2, 0; bar.red.or.pred p, %1, 128, q; selp.b32 %0, 1, 0, p;}"
               : "=r"(any)
               : "r"(1 + group), "r"(int(mine))
               : "memory");
  return any != 0;
}

}  // namespace sycl_mat
