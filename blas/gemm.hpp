// The one product behind all the BLAS names: what the reference checks, what it returns early for, and the call of the library.
#pragma once

#include <cstdint>

namespace sycl_mat::blas {

/// C ← alpha·op(A)·op(B) + beta·C in column-major order, as the reference's xGEMM defines it.
template <class T>
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  T alpha{};
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T beta{};
  T* c = nullptr;
  std::int64_t ldc = 0;
};

/// The reference's number of the first size that is wrong (3 M, 4 N, 5 K, 8 LDA, 10 LDB, 13 LDC), 0: none.
template <class T>
int first_wrong(const Gemm<T>& g);

/// Computes it on the default device; where there is none, or it fails, on the processor. A valid call always has its result.
template <class T>
void run(const Gemm<T>& g) noexcept;

extern template int first_wrong(const Gemm<float>&);
extern template int first_wrong(const Gemm<double>&);
extern template void run(const Gemm<float>&) noexcept;
extern template void run(const Gemm<double>&) noexcept;

}  // namespace sycl_mat::blas
