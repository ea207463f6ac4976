// cblas_sgemm, cblas_dgemm (32-bit integers) and their _64 forms. A row-major product is the column-major Cᵀ = Bᵀ·Aᵀ.
#include <cstdint>
#include <utility>

#include "errors.hpp"
#include "gemm.hpp"

namespace sycl_mat::blas {
namespace {

enum Layout : int { row_major = 101, column_major = 102 };
enum Transpose : int { none = 111, transpose = 112, conjugate = 113 };

bool is_transpose(int value) { return value == transpose || value == conjugate; }
bool is_known(int value) { return value == none || is_transpose(value); }

/// The caller's argument for one of the exchanged product: M ↔ N, lda ↔ ldb.
int exchanged(int argument) {
  switch (argument) {
    case 4:
      return 5;
    case 5:
      return 4;
    case 9:
      return 11;
    case 11:
      return 9;
    default:
      return argument;
  }
}

template <class T>
void gemm_by_value(const char* routine, int layout, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                   const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  if (layout != row_major && layout != column_major) return report_c(routine, 1, 1, false);
  const bool by_rows = layout == row_major;
  if (!is_known(trans_a)) return report_c(routine, 2, 2, by_rows);
  if (!is_known(trans_b)) return report_c(routine, 3, 3, by_rows);
  Gemm<T> g{is_transpose(trans_a), is_transpose(trans_b), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  if (by_rows) {
    std::swap(g.transpose_a, g.transpose_b);
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.lda, g.ldb);
  }
  if (const int wrong = first_wrong(g)) {
    const int fortran = wrong + 1;  // the layout comes first
    return report_c(routine, by_rows ? exchanged(fortran) : fortran, fortran, by_rows);
  }
  run(g);
}

}  // namespace
}  // namespace sycl_mat::blas

extern "C" {

#define SYCL_MAT_CBLAS_GEMM(symbol, T, Integer, routine)                                                                           \
  void symbol(int layout, int trans_a, int trans_b, Integer m, Integer n, Integer k, T alpha, const T* a, Integer lda, const T* b, \
              Integer ldb, T beta, T* c, Integer ldc) {                                                                            \
    sycl_mat::blas::gemm_by_value<T>(routine, layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);             \
  }

SYCL_MAT_CBLAS_GEMM(cblas_sgemm, float, std::int32_t, "cblas_sgemm")
SYCL_MAT_CBLAS_GEMM(cblas_dgemm, double, std::int32_t, "cblas_dgemm")
SYCL_MAT_CBLAS_GEMM(cblas_sgemm_64, float, std::int64_t, "cblas_sgemm")
SYCL_MAT_CBLAS_GEMM(cblas_dgemm_64, double, std::int64_t, "cblas_dgemm")
}
