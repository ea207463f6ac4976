// How fast the device multiplies and adds when nothing else holds it up: the ceiling of every product, in the roofline's sense.
//
// Every work-item keeps CHAINS sums of WIDTH elements in registers and updates each of them g.k times. The chains are independent of
// each other, so that a multiply-add need not wait for the one before; memory is read once, and written only if the impossible happens,
// which the compiler cannot know.
#include "device.hpp"

// constants: begin
constexpr int WIDTH = 1;    // elements of a vector: the processor's native vector, or 1 where the device joins work-items itself
constexpr int CHAINS = 16;  // independent sums: latency × multiply-adds begun a cycle, or more
// constants: end

namespace sycl_mat {

typedef acc_t peak_vector __attribute__((ext_vector_type(WIDTH)));

KERNEL(3) peak(const in_t* a, const in_t*, const out_t*, out_t* d, const acc_t*, void*, Args g) {
  const acc_t first = widen(a[0]);
  const peak_vector factor = (peak_vector)(first);
  peak_vector sum[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum[c] = (peak_vector)(first + acc_t(c + local_id(0)));
#pragma clang loop unroll(disable)
  for (index step = 0; step < g.k; step += 4) {
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) sum[c] = __builtin_elementwise_fma(sum[c], factor, factor);
  }
#pragma unroll
  for (int c = 1; c < CHAINS; ++c) sum[0] += sum[c];
  acc_t all = 0;
#pragma unroll
  for (int l = 0; l < WIDTH; ++l) all += sum[0][l];
  if (all == acc_t(-12345)) d[0] = out_t(1);  // with a[0] in (0, 1) all sums stay positive
}

}  // namespace sycl_mat
