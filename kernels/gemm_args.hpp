// The one argument list of every kernel, read by the host and by the device: sizes, strides and scalars in one plain struct, so that
// launching is the same for all kernels. It holds no pointers: those are arguments of their own, which every back end handles.
#pragma once

namespace sycl_mat {

using index = long long;  // 64 bits on the host and on every device

/// D ← act(alpha·A·B + beta·C + bias) for a grid of batch_outer × batch_inner matrices. A leading dimension is the distance, in
/// elements, between rows — or between columns where the kernel was rendered with TRANS_A / TRANS_B. D and C are row-major.
template <class Accumulator>
struct GemmArgs {
  index m, n, k;
  index lda, ldb, ldc, ldd;
  index batch;             // matrices in all: batch_outer · batch_inner
  index batch_inner;       // matrices of the inner batch axis; batch number g is (g / batch_inner, g % batch_inner)
  index a_inner, a_outer;  // elements from one matrix of the stack to the next, along the two batch axes
  index b_inner, b_outer;
  index c_inner, c_outer;
  index d_inner, d_outer;
  index split_m, split_n, split_k;  // how work-groups share one product: each kernel says what they are to it
  index scratch_stride;             // elements of scratch: a work-group's, or up to the first of them
  Accumulator alpha, beta;
};

}  // namespace sycl_mat
