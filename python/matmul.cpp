// matmul as Python calls it. What most calls are — two plain arrays of one dtype — goes straight through, because for small matrices
// the way from Python to the product is all the time there is; everything else goes through sycl_mat/_products.py and its many cases.
#include <array>
#include <cstring>
#include <new>

#include "operands.hpp"
#include "options.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;

namespace sycl_mat::python {
namespace {

constexpr const char* doc =
    "matmul(a, b, /, out=None, *, device=None, kernel=None, params=None, backend=None, precision=None, "
    "max_device_memory=None, transpose_a=False, "
    "transpose_b=False)\n--\n\n"
    "The matrix product of two arrays, with the semantics of numpy.matmul.\n\n"
    "a, b: array-likes of one or two dimensions, or stacks of matrices (…, M, K) and (…, K, N) whose leading axes broadcast.\n"
    "    float32, float64, float16, bfloat16 (ml_dtypes); int8 × int8 gives int32; mixed types promote as in NumPy.\n"
    "    Never modified; strided and transposed views are read in place where one axis has unit stride.\n"
    "out: array for the result, of any strides; may overlap an input.\n"
    "device: a selector ('cpu', 'gpu', 'gpu:1', 'level_zero:0') or one of devices(); None: the default device.\n"
    "kernel: force a kernel by name, see kernels().\n"
    "params: force its constants: TileParams, (TileParams, TileOptions) or PackParams.\n"
    "backend: 'sycl' (default), 'onemkl', or 'auto'.\n"
    "precision: None, 'highest' (never below IEEE arithmetic of the accumulator), 'tf32'.\n"
    "max_device_memory: bytes that operands and copies of them may take on a device with memory of its own; larger ones are streamed in blocks.\n"
    "transpose_a, transpose_b: multiply by the transpose of the last two axes; costs no copy.\n\n"
    "Returns a new C-ordered array (a scalar for two vectors), or out.\n"
    "Raises DimensionError, SizeError (both ValueError and RuntimeError), UnsupportedError (TypeError), ParamsError (ValueError),\n"
    "DeviceError, CompileError, MemoryError.";

enum Slot {
  slot_a,
  slot_b,
  slot_out,
  slot_device,
  slot_kernel,
  slot_params,
  slot_backend,
  slot_precision,
  slot_memory,
  slot_trans_a,
  slot_trans_b,
  slots
};
constexpr std::array<const char*, slots> names{
    "a", "b", "out", "device", "kernel", "params", "backend", "precision", "max_device_memory", "transpose_a", "transpose_b"};
using Arguments = std::array<PyObject*, slots>;

/// Below this many multiplications, giving the GIL away and taking it back costs more than the product.
constexpr double flops_worth_releasing = 1e5;

bool parse(PyObject* const* args, Py_ssize_t count, PyObject* keywords, Arguments& slot) {
  if (count > 3) {
    PyErr_Format(PyExc_TypeError, "matmul() takes 2 or 3 positional arguments (a, b, out), %zd were given", count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) slot[static_cast<std::size_t>(i)] = args[i];
  const Py_ssize_t extra = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < extra; ++i) {
    PyObject* name = PyTuple_GET_ITEM(keywords, i);
    int at = slot_out;
    while (at < slots && PyUnicode_CompareWithASCIIString(name, names[static_cast<std::size_t>(at)]) != 0) ++at;
    if (at == slots) {
      PyErr_Format(PyExc_TypeError, "matmul() got an unexpected keyword argument '%U'", name);
      return false;
    }
    PyObject*& place = slot[static_cast<std::size_t>(at)];
    if (place) {
      PyErr_Format(PyExc_TypeError, "matmul() got multiple values for argument '%U'", name);
      return false;
    }
    place = args[count + i];
  }
  if (!slot[slot_a] || !slot[slot_b]) {
    PyErr_SetString(PyExc_TypeError, "matmul() needs two operands");
    return false;
  }
  for (PyObject*& place : slot) {
    if (!place) place = Py_None;
  }
  return true;
}

bool is_off(PyObject* flag) { return flag == Py_None || flag == Py_False; }

/// The result's dimensions; false where the shapes do not fit and an error is to be found by the long way.
bool result_shape(PyArrayObject* a, PyArrayObject* b, npy_intp* shape, int& dimensions) {
  const int da = PyArray_NDIM(a), db = PyArray_NDIM(b);
  const npy_intp* sa = PyArray_DIMS(a);
  const npy_intp* sb = PyArray_DIMS(b);
  if (sa[da - 1] != sb[db == 1 ? 0 : db - 2]) return false;
  const int ba = da > 2 ? da - 2 : 0, bb = db > 2 ? db - 2 : 0, batch = ba > bb ? ba : bb;
  for (int axis = 0; axis < batch; ++axis) {
    const int ia = axis - (batch - ba), ib = axis - (batch - bb);
    const npy_intp ea = ia < 0 ? 1 : sa[ia], eb = ib < 0 ? 1 : sb[ib];
    if (ea != eb && ea != 1 && eb != 1) return false;
    shape[axis] = ea == 1 ? eb : ea;
  }
  dimensions = batch;
  if (da > 1) shape[dimensions++] = sa[da - 2];
  if (db > 1) shape[dimensions++] = sb[db - 1];
  return true;
}

/// The result as matrices: the row axis that a vector `a` lacks, and the column axis that a vector `b` lacks, put back.
MatrixView result_view(PyArrayObject* out, DType type, bool a_is_vector, bool b_is_vector) {
  const std::int64_t size = size_of(type);
  const npy_intp* shape = PyArray_DIMS(out);
  const npy_intp* strides = PyArray_STRIDES(out);
  int axis = PyArray_NDIM(out);
  MatrixView view;
  view.data = PyArray_DATA(out);
  view.dtype = type;
  view.cols = 1;
  view.col_stride = 1;
  if (!b_is_vector) {
    --axis;
    view.cols = shape[axis];
    view.col_stride = strides[axis] / size;
  }
  view.rows = 1;
  view.row_stride = view.cols;
  if (!a_is_vector) {
    --axis;
    view.rows = shape[axis];
    view.row_stride = strides[axis] / size;
  }
  for (int i = 0; i < axis; ++i) view.batch.push_back({shape[i], strides[i] / size});
  return view;
}

bool fits(PyArrayObject* out, const npy_intp* shape, int dimensions) {
  return PyArray_NDIM(out) == dimensions &&
         std::memcmp(PyArray_DIMS(out), shape, sizeof(npy_intp) * static_cast<std::size_t>(dimensions)) == 0;
}

/// Several elements in one place (a stride of zero): a result goes there by way of an array of its own, as in NumPy.
bool shares_places(PyArrayObject* out) {
  for (int i = 0; i < PyArray_NDIM(out); ++i) {
    if (PyArray_STRIDE(out, i) == 0 && PyArray_DIM(out, i) > 1) return true;
  }
  return false;
}

/// The result; nullptr with no Python error set: not a plain call.
PyObject* quick(const Arguments& slot) {
  if (!PyArray_CheckExact(slot[slot_a]) || !PyArray_CheckExact(slot[slot_b]) || !is_off(slot[slot_trans_a]) || !is_off(slot[slot_trans_b]))
    return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(slot[slot_a]);
  auto* b = reinterpret_cast<PyArrayObject*>(slot[slot_b]);
  if (PyArray_TYPE(a) != PyArray_TYPE(b) || PyArray_NDIM(a) == 0 || PyArray_NDIM(b) == 0 || !is_plain(a) || !is_plain(b)) return nullptr;
  const std::optional<DType> type = dtype_of(a);
  if (!type || *type == DType::int32) return nullptr;
  const DType out_type = *type == DType::int8 ? DType::int32 : *type;

  npy_intp shape[NPY_MAXDIMS_LEGACY_ITERS];
  int dimensions = 0;
  if (PyArray_NDIM(a) > 16 || PyArray_NDIM(b) > 16 || !result_shape(a, b, shape, dimensions)) return nullptr;

  nb::object result;
  PyArrayObject* out;
  if (slot[slot_out] == Py_None) {
    result = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr_of(out_type, a), dimensions, shape, nullptr, nullptr, 0, nullptr));
    if (!result.is_valid()) {
      if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw nb::python_error();
      PyErr_Clear();  // larger than can be addressed: the long way says so in our words
      return nullptr;
    }
    out = reinterpret_cast<PyArrayObject*>(result.ptr());
  } else {
    if (!PyArray_CheckExact(slot[slot_out])) return nullptr;
    out = reinterpret_cast<PyArrayObject*>(slot[slot_out]);
    if (dtype_of(out) != out_type || !fits(out, shape, dimensions) || !PyArray_ISWRITEABLE(out) || !is_plain(out) || shares_places(out))
      return nullptr;
    const Extent written = extent_of(out);
    if (overlap(written, extent_of(a)) || overlap(written, extent_of(b))) return nullptr;
    result = nb::borrow(slot[slot_out]);
  }

  const bool a_is_vector = PyArray_NDIM(a) == 1, b_is_vector = PyArray_NDIM(b) == 1;
  const MatrixView va = view_of(a, *type, Vector::row), vb = view_of(b, *type, Vector::column);
  const MatrixView vd = result_view(out, out_type, a_is_vector, b_is_vector);
  const GemmOptions options =
      options_from(slot[slot_kernel], slot[slot_params], slot[slot_backend], slot[slot_precision], slot[slot_memory]);
  Context& where = context_from(slot[slot_device]);
  if (double(PyArray_SIZE(out)) * double(va.cols) < flops_worth_releasing) {
    gemm(where, va, vb, nullptr, vd, options);
  } else {
    WithoutGil release;
    gemm(where, va, vb, nullptr, vd, options);
  }
  PyObject* returned = result.release().ptr();
  return slot[slot_out] == Py_None ? PyArray_Return(reinterpret_cast<PyArrayObject*>(returned)) : returned;
}

PyObject* the_long_way(const Arguments& slot) {
  static PyObject* function = nullptr;  // held for good, as the module that owns it is
  if (!function) function = nb::object(nb::module_::import_("sycl_mat._products").attr("matmul_any")).release().ptr();
  return PyObject_Vectorcall(function, slot.data(), slots, nullptr);
}

PyObject* matmul_call(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  try {
    Arguments slot{};
    if (!parse(args, count, keywords, slot)) return nullptr;
    if (PyObject* result = quick(slot)) return result;
    return PyErr_Occurred() ? nullptr : the_long_way(slot);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    if (!set_python_error()) PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

PyMethodDef definition = {"matmul", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(matmul_call)), METH_FASTCALL | METH_KEYWORDS,
                          doc};

}  // namespace

void bind_matmul(nb::module_& m) {
  nb::object module_name = m.attr("__name__");
  m.attr("matmul") = nb::steal(PyCFunction_NewEx(&definition, nullptr, module_name.ptr()));
}

}  // namespace sycl_mat::python
