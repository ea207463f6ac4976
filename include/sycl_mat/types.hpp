// Element types, views of the caller's memory, and what is done to the product before it is stored.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sycl_mat {

enum class DType : std::uint8_t { float32, float64, float16, bfloat16, int8, int32 };

/// Bytes of one element.
constexpr std::int64_t size_of(DType t) {
  switch (t) {
    case DType::float64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::int8:
      return 1;
  }
  return 0;
}

/// NumPy's (and ml_dtypes') name of the type.
std::string_view name_of(DType t);

/// One axis of a stack of matrices. The stride counts elements; 0 repeats the same matrix (broadcasting).
struct Axis {
  std::int64_t extent = 1;
  std::int64_t stride = 0;
};

/// A matrix, or a stack of them, in memory that the caller owns. Strides count elements and may be zero or negative;
/// `data` points at element (0, 0) of the first matrix. Inputs are never written through it.
struct MatrixView {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  std::vector<Axis> batch;  ///< outermost axis first; empty: one matrix

  MatrixView transposed() const {
    MatrixView t = *this;
    t.rows = cols;
    t.cols = rows;
    t.row_stride = col_stride;
    t.col_stride = row_stride;
    return t;
  }
};

/// Dense row-major view.
inline MatrixView row_major(void* data, std::int64_t rows, std::int64_t cols, DType dtype = DType::float32) {
  return {data, dtype, rows, cols, cols, 1, {}};
}
/// The same of numbers whose type says what they are.
template <std::same_as<double> Number>
MatrixView row_major(Number* data, std::int64_t rows, std::int64_t cols) {
  return row_major(data, rows, cols, DType::float64);
}

enum class Activation : std::uint8_t { none, relu, gelu, sigmoid, tanh, silu };

/// Along which axis of the result a bias vector runs: one value a column (length N) or one a row (length M).
enum class BiasAxis : std::uint8_t { none, column, row };

/// D ← activation(alpha·A·B + beta·C + bias). With beta = 0, C is never read.
struct Epilogue {
  double alpha = 1;
  double beta = 0;
  const void* bias = nullptr;  ///< contiguous, of the accumulator's dtype
  BiasAxis bias_axis = BiasAxis::none;
  Activation activation = Activation::none;
};

}  // namespace sycl_mat
