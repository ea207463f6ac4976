// sgemm_, dgemm_ (32-bit integers) and sgemm_64_, dgemm_64_ (64-bit): Fortran's calling convention, all arguments by address.
#include <cctype>
#include <cstdint>

#include "errors.hpp"
#include "gemm.hpp"

namespace sycl_mat::blas {
namespace {

/// 'N', 'T' or 'C' in either case; 'C' is 'T' for real numbers.
bool is_transpose_letter(char letter, bool& transposed) {
  const int upper = std::toupper(static_cast<unsigned char>(letter));
  transposed = upper == 'T' || upper == 'C';
  return transposed || upper == 'N';
}

template <class T, class Integer>
void gemm_by_address(const char* routine, const char* trans_a, const char* trans_b, const Integer* m, const Integer* n, const Integer* k,
                     const T* alpha, const T* a, const Integer* lda, const T* b, const Integer* ldb, const T* beta, T* c,
                     const Integer* ldc) {
  Gemm<T> g{false, false, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc};
  if (!is_transpose_letter(*trans_a, g.transpose_a)) return report(routine, 1);
  if (!is_transpose_letter(*trans_b, g.transpose_b)) return report(routine, 2);
  if (const int wrong = first_wrong(g)) return report(routine, wrong);
  run(g);
}

}  // namespace
}  // namespace sycl_mat::blas

extern "C" {

#define SYCL_MAT_FORTRAN_GEMM(symbol, T, Integer, routine)                                                                                \
  void symbol(const char* trans_a, const char* trans_b, const Integer* m, const Integer* n, const Integer* k, const T* alpha, const T* a, \
              const Integer* lda, const T* b, const Integer* ldb, const T* beta, T* c, const Integer* ldc) {                              \
    sycl_mat::blas::gemm_by_address<T, Integer>(routine, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                 \
  }

SYCL_MAT_FORTRAN_GEMM(sgemm_, float, std::int32_t, "SGEMM ")
SYCL_MAT_FORTRAN_GEMM(dgemm_, double, std::int32_t, "DGEMM ")
SYCL_MAT_FORTRAN_GEMM(sgemm_64_, float, std::int64_t, "SGEMM ")
SYCL_MAT_FORTRAN_GEMM(dgemm_64_, double, std::int64_t, "DGEMM ")
}
