// One table of functions an instruction set. Each is compiled in a file of its own, the best that the processor has is chosen once.
#pragma once

#include <cstddef>

#include "../families/cpu_thresholds.hpp"
#include "narrow_types.hpp"

namespace sycl_mat::host {

/// The cache line of results past the caches that is not full yet: its end waits for the next vector.
struct alignas(64) LineInWork {
  std::byte last[64] = {};  ///< the vector that came last
  bool begun = false;       ///< a line was written: the first one may be shared with others' results
};

/// D (m × n, rows d_ld apart) ← A·B. A's element (i, p) is at a + i·a_row + p·a_col; B is row-major. d must not overlap a or b.
template <class T>
struct Product {
  index_t m, n, k;
  const T* a;
  index_t a_row, a_col;
  const T* b;
  index_t b_ld;
  T* d;
  index_t d_ld;
  /// Results past the caches: d lies at a multiple of 16 bytes, all of them one behind the other, in rows of 64 to 256 bytes, a multiple of
  /// 64; and who reads them is told after finish_streams().
  bool stream = false;
  /// So many such products, matrices that many elements apart. So many cache lines of the next one's A and B are fetched meanwhile.
  index_t count = 1, a_step = 0, b_step = 0, d_step = 0, next_lines = 0;
  LineInWork* line = nullptr;  ///< of those past the caches
};

/// Dot products: d[i·d_row + f·d_other] ← row i · other f, both contiguous along k. At most most_dots others.
template <class T>
struct Dots {
  index_t count, few, k;
  const T* rows;
  index_t row_ld;
  const T* others;
  index_t other_ld;
  T* d;
  index_t d_row, d_other;
};

/// Scaled rows: sums[f·sums_ld + c] = Σ x[f·x_few + q·x_step] · rows[q·row_ld + c] over q < k. At least one row, at most most_rows `few`.
template <class T>
struct Rows {
  index_t count, few, k;
  const T* rows;
  index_t row_ld;
  const T* x;
  index_t x_few, x_step;
  T* sums;
  index_t sums_ld;
};

struct Isa {
  std::string_view name;
  bool (*available)();
  void (*product_f32)(const Product<float>&);
  void (*product_f64)(const Product<double>&);
  void (*product_i32)(const Product<std::int32_t>&);
  void (*dots_f32)(const Dots<float>&);
  void (*dots_f64)(const Dots<double>&);
  void (*rows_f32)(const Rows<float>&);
  void (*rows_f64)(const Rows<double>&);
  /// Rows that product_… computes at once for n columns, of elements of so many bytes: multiples of it cost the least.
  int (*rows_at_once)(index_t n, int bytes);
  /// Results that were streamed are seen by other threads after this.
  void (*finish_streams)();
  /// to[c·to_ld + r] = from[r·from_ld + c]
  void (*transpose_f32)(const float* from, index_t from_ld, index_t rows, index_t cols, float* to, index_t to_ld);
  void (*transpose_f64)(const double* from, index_t from_ld, index_t rows, index_t cols, double* to, index_t to_ld);
  /// `count` neighbours, to and from the accumulator's type; to the nearest, ties to even.
  void (*widen_f16)(const float16_bits* from, index_t count, float* to);
  void (*widen_bf16)(const bfloat16_bits* from, index_t count, float* to);
  void (*widen_i8)(const std::int8_t* from, index_t count, std::int32_t* to);
  void (*narrow_f16)(const float* from, index_t count, float16_bits* to);
  void (*narrow_bf16)(const float* from, index_t count, bfloat16_bits* to);
};

extern const Isa baseline_isa;
#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
#define SYCL_MAT_HOST_X86
extern const Isa avx2_isa;
extern const Isa avx512_isa;
#endif

}  // namespace sycl_mat::host
