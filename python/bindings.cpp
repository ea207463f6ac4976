// The Python module sycl_mat._core: NumPy arrays ↔ MatrixView, and nothing else.
#define SYCL_MAT_IMPORT_NUMPY
#include "bindings.hpp"

#include "numpy_api.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  if (_import_array() < 0) throw nb::python_error();
  m.attr("__version__") = SYCL_MAT_VERSION;
  sycl_mat::python::bind_errors(m);
  sycl_mat::python::bind_params(m);
  sycl_mat::python::bind_devices(m);
  sycl_mat::python::bind_arrays(m);
  sycl_mat::python::bind_dlpack(m);
  sycl_mat::python::bind_products(m);
  sycl_mat::python::bind_matmul(m);
  sycl_mat::python::bind_internals(m);
  sycl_mat::python::bind_tune(m);
}
