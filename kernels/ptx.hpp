// PTX instructions that every NVIDIA device of compute capability 8.0 and newer has, as functions.
#pragma once

#include "device.hpp"

namespace sycl_mat {

inline int lane_id() {
  int id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
/// A number that all lanes of a warp agree on, so that the compiler knows it too: loops around wgmma must not look as if lanes left them
/// at different times, or its descriptors are computed in slow registers.
inline int same_in_warp(int number) {
  int same;
  asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(number));
  return same;
}
inline int thread_id() {
  int id;
  asm("mov.u32 %0, %%tid.x;" : "=r"(id));
  return id;
}
/// The same, read again: for values that would otherwise occupy registers from the kernel's beginning on.
inline int fresh_thread_id() {
  int id;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
  return id;
}
inline int block_id() {
  int id;
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(id));
  return id;
}
inline int fresh_block_id() {
  int id;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(id));
  return id;
}
inline int block_count() {
  int count;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(count));
  return count;
}
inline unsigned local_address(const void* pointer) {
  unsigned address;
  asm("{.reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a;}" : "=r"(address) : "l"(pointer));
  return address;
}

/// 16 bytes from global to local memory, both addresses multiples of 16.
inline void copy_16(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// 16 bytes, of which the first `bytes` are read and the others are zero.
inline void copy_16_or_less(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
inline void copy_4(unsigned to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
/// 4 bytes, or a zero without reading anything.
inline void copy_4_or_zero(unsigned to, const void* from, bool copy) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(copy ? 4 : 0) : "memory");
}

/// Four numbers in local memory, by addresses there that are multiples of 16.
inline Vector<float, 4> load_local(unsigned address) {
  float x, y, z, w;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(address) : "memory");
  return {x, y, z, w};
}
/// 2 or 4 words from a local address that is a multiple of their size.
SYCL_MAT_INLINE void load_words(unsigned from, unsigned (&words)[2]) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(from));
}
SYCL_MAT_INLINE void load_words(unsigned from, unsigned (&words)[4]) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(from));
}
SYCL_MAT_INLINE void store_words(unsigned to, const unsigned (&words)[2]) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(to), "r"(words[0]), "r"(words[1]) : "memory");
}
SYCL_MAT_INLINE void store_words(unsigned to, const unsigned (&words)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}

/// A load that the optimiser leaves alone: otherwise it joins paths that load the same address, and branches between single loads.
inline float load_single(const float* from) {
  float x;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(x) : "l"(from));
  return x;
}

/// Waits for all threads of the block.
inline void block_barrier() { asm volatile("bar.sync 0;" ::: "memory"); }

/// Adds to a counter in global memory; what its threads wrote before their last barrier is visible to whoever sees the sum.
inline int count_arrival(int* counter) {
  int before;
  asm volatile("fence.acq_rel.gpu; atom.global.add.relaxed.gpu.s32 %0, [%1], 1; fence.acq_rel.gpu;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}
/// Four numbers that another block wrote, past this multiprocessor's own cache.
inline Vector<float, 4> load_from_others(const float* from) {
  Vector<float, 4> v;
  float x, y, z, w;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "l"(from) : "memory");
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
  return v;
}
inline Vector<double, 4> load_from_others(const double* from) {
  double x, y, z, w;
  asm volatile("ld.global.cg.v2.f64 {%0, %1}, [%4]; ld.global.cg.v2.f64 {%2, %3}, [%4 + 16];"
               : "=&d"(x), "=&d"(y), "=d"(z), "=d"(w)
               : "l"(from)
               : "memory");
  return {x, y, z, w};
}

}  // namespace sycl_mat
