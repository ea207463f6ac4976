#include "operands.hpp"

#include <cstring>

namespace sycl_mat::python {
namespace {

/// ml_dtypes registers its types with NumPy while it is imported, under numbers that differ from process to process. Its bfloat16 is
/// told by its scalar type's name, looked at once a number.
bool is_bfloat16(PyArrayObject* array) {
  static int known = -1;
  const int number = PyArray_TYPE(array);
  if (number < NPY_USERDEF) return false;
  if (number == known) return true;
  const PyArray_Descr* descr = PyArray_DESCR(array);
  const char* name = std::strrchr(descr->typeobj->tp_name, '.');
  if (std::strcmp(name ? name + 1 : descr->typeobj->tp_name, "bfloat16") != 0) return false;
  known = number;
  return true;
}

}  // namespace

std::optional<DType> dtype_of(PyArrayObject* array) {
  switch (PyArray_TYPE(array)) {
    case NPY_FLOAT:
      return DType::float32;
    case NPY_DOUBLE:
      return DType::float64;
    case NPY_HALF:
      return DType::float16;
    case NPY_BYTE:
      return DType::int8;
    case NPY_INT:
      return DType::int32;
    default:
      break;
  }
  if (is_bfloat16(array)) return DType::bfloat16;
  return std::nullopt;
}

PyArray_Descr* descr_of(DType type, PyArrayObject* like) {
  switch (type) {
    case DType::float32:
      return PyArray_DescrFromType(NPY_FLOAT);
    case DType::float64:
      return PyArray_DescrFromType(NPY_DOUBLE);
    case DType::float16:
      return PyArray_DescrFromType(NPY_HALF);
    case DType::int8:
      return PyArray_DescrFromType(NPY_BYTE);
    case DType::int32:
      return PyArray_DescrFromType(NPY_INT);
    case DType::bfloat16:
      break;
  }
  PyArray_Descr* descr = PyArray_DESCR(like);
  Py_INCREF(descr);
  return descr;
}

bool is_plain(PyArrayObject* array) {
  if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
  const npy_intp size = PyArray_ITEMSIZE(array);
  const npy_intp* strides = PyArray_STRIDES(array);
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    if (strides[axis] % size != 0) return false;
  }
  return true;
}

MatrixView view_of(PyArrayObject* array, DType type, Vector vector) {
  const int dimensions = PyArray_NDIM(array);
  const npy_intp* shape = PyArray_DIMS(array);
  const npy_intp* strides = PyArray_STRIDES(array);
  const std::int64_t size = size_of(type);
  MatrixView view;
  view.data = PyArray_DATA(array);
  view.dtype = type;
  if (dimensions == 1 && vector == Vector::row) {
    view.rows = 1;
    view.cols = shape[0];
    view.row_stride = shape[0];
    view.col_stride = strides[0] / size;
    return view;
  }
  if (dimensions == 1) {
    view.rows = shape[0];
    view.cols = 1;
    view.row_stride = strides[0] / size;
    view.col_stride = 1;
    return view;
  }
  view.rows = shape[dimensions - 2];
  view.cols = shape[dimensions - 1];
  view.row_stride = strides[dimensions - 2] / size;
  view.col_stride = strides[dimensions - 1] / size;
  if (dimensions > 2) {
    view.batch.reserve(dimensions - 2);
    for (int axis = 0; axis < dimensions - 2; ++axis) view.batch.push_back({shape[axis], shape[axis] == 1 ? 0 : strides[axis] / size});
  }
  return view;
}

Extent extent_of(PyArrayObject* array) {
  const char* first = PyArray_BYTES(array);
  const char* last = first + PyArray_ITEMSIZE(array);
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    const npy_intp extent = PyArray_DIM(array, axis);
    if (extent == 0) return {first, first};
    const npy_intp reach = (extent - 1) * PyArray_STRIDE(array, axis);
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

}  // namespace sycl_mat::python
