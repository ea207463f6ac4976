// How fast memory moves when nothing else holds it up: the other ceiling of the roofline.
//
//   WRITE = 0   every element of A is read and added up: what a matrix-vector product can hope for
//   WRITE = 1   D = A + alpha·B: two streams in, one out (the "triad" of J. McCalpin's STREAM)
//
// g.n counts the elements of each array, a multiple of WIDTH × work-items. STRIDED = 0 gives every work-item one contiguous piece, as a
// processor's prefetchers like it; STRIDED = 1 lets neighbouring work-items read neighbouring vectors, as a GPU's memory wants it.
#include "device.hpp"

// constants: begin
constexpr int WIDTH = 4;
constexpr int STRIDED = 1;
constexpr int WRITE = 0;
constexpr int GROUP = 256;  // work-items of a group
// constants: end

namespace sycl_mat {

typedef acc_t stream_vector __attribute__((ext_vector_type(WIDTH)));
typedef acc_t stream_anywhere __attribute__((ext_vector_type(WIDTH), aligned(sizeof(acc_t))));

inline stream_vector stream_load(const in_t* from) { return *reinterpret_cast<const stream_anywhere*>(from); }

KERNEL(3) stream(const in_t* a, const in_t* b, const out_t*, out_t* d, const acc_t*, void*, Args g) {
  const index items = index(group_count(0)) * GROUP, item = index(group_id(0)) * GROUP + local_id(0);
  const index vectors = g.n / WIDTH / items;
  const index first = STRIDED ? item * WIDTH : item * vectors * WIDTH, step = STRIDED ? items * WIDTH : WIDTH;
  if constexpr (WRITE) {
    const stream_vector alpha = (stream_vector)(g.alpha);
    for (index v = 0; v < vectors; ++v) {
      const index at = first + v * step;
      *reinterpret_cast<stream_anywhere*>(d + at) = __builtin_elementwise_fma(alpha, stream_load(b + at), stream_load(a + at));
    }
  } else {
    stream_vector sum[4] = {};
    index v = 0;
    for (; v + 4 <= vectors; v += 4) {
#pragma unroll
      for (int u = 0; u < 4; ++u) sum[u] += stream_load(a + first + (v + u) * step);
    }
    for (; v < vectors; ++v) sum[0] += stream_load(a + first + v * step);
    const stream_vector whole = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    acc_t all = 0;
#pragma unroll
    for (int l = 0; l < WIDTH; ++l) all += whole[l];
    if (all == acc_t(-12345)) d[0] = out_t(1);  // the data are positive
  }
}

}  // namespace sycl_mat
