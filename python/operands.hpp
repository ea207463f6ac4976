// NumPy arrays as matrices.
#pragma once

#include <optional>

#include "bindings.hpp"
#include "numpy_api.hpp"
#include "sycl_mat/types.hpp"

namespace sycl_mat::python {

/// The element type of an array in native byte order; none where the library has no such type.
std::optional<DType> dtype_of(PyArrayObject* array);

/// NumPy's type number of a result type. `like` supplies the type that NumPy does not know itself (bfloat16).
PyArray_Descr* descr_of(DType type, PyArrayObject* like);

/// Aligned, in native byte order, strides in whole elements: what MatrixView can describe.
bool is_plain(PyArrayObject* array);

/// Which vector a one-dimensional operand stands for.
enum class Vector { row, column };

/// The array as a stack of matrices. Needs is_plain(), at least one dimension and a known type.
MatrixView view_of(PyArrayObject* array, DType type, Vector vector);

/// Lowest and highest byte an array touches: [first, last). Empty where the array is.
struct Extent {
  const char* first;
  const char* last;
};
Extent extent_of(PyArrayObject* array);
inline bool overlap(const Extent& x, const Extent& y) { return x.first < y.last && y.first < x.last; }

}  // namespace sycl_mat::python
