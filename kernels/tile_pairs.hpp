// Clusters of two blocks that compute two halves along K of the same tile: each sends the other the half of its sums that the other adds up
// and writes, straight into its local memory. Both run at the same time, as clusters do, so that they may wait for each other.
//
// To be included where Pages, INLINE and `consumers` are known.
#pragma once

#include "wgmma.hpp"

namespace sycl_mat {

/// 0 or 1: which of the two blocks this one is.
inline int place_in_pair() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// A local address, as one of the other block's memory.
inline unsigned address_in(int block, unsigned local) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(local), "r"(block));
  return there;
}
/// Every thread of both blocks says that its block's barriers are made, and waits for that before it touches the other block's memory.
inline void pair_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
inline void pair_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// Stores four numbers there, and counts their 16 bytes at a barrier there: no fence that would wait for the stores to arrive.
inline void store_there(unsigned address, unsigned barrier, float x, float y, float z, float w) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address), "f"(x), "f"(y),
               "f"(z), "f"(w), "r"(barrier)
               : "memory");
}
/// A barrier made for one arrival: this one, and so many bytes.
inline void phase_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// Of a tile's sums the upper or lower half of its rows, that of this block's place: those of both blocks together. To be called once.
template <int count>
INLINE void exchange(const float (&sums)[count], float (&half)[count / 2], unsigned pages) {
  const int rank = place_in_pair(), id = fresh_thread_id() % 128, group = fresh_thread_id() / 128;
  const unsigned place = exchanged(pages) + group * (count / 2 * 512) + id * 16, there = address_in(1 - rank, place);
  const unsigned barrier = received(pages, group), barrier_there = address_in(1 - rank, barrier);
  pair_wait();
#pragma unroll
  for (int i = 0; i < count / 2; i += 4) {
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) v[e] = rank == 0 ? sums[count / 2 + i + e] : sums[i + e];
    store_there(there + i * 512, barrier_there, v[0], v[1], v[2], v[3]);
  }
#pragma unroll
  for (int i = 0; i < count / 2; ++i) half[i] = rank == 0 ? sums[i] : sums[count / 2 + i];
  phase_wait(barrier, 0);
#pragma unroll
  for (int i = 0; i < count / 2; i += 4) {
    const Vector<float, 4> v = load_local(place + i * 512);
#pragma unroll
    for (int e = 0; e < 4; ++e) half[i + e] += v[e];
  }
}

}  // namespace sycl_mat
