// The parts of the module, one file each.
#pragma once

#include <nanobind/nanobind.h>

namespace sycl_mat::python {

void bind_errors(nanobind::module_& m);
void bind_params(nanobind::module_& m);
void bind_devices(nanobind::module_& m);
void bind_products(nanobind::module_& m);
void bind_matmul(nanobind::module_& m);
void bind_arrays(nanobind::module_& m);
void bind_dlpack(nanobind::module_& m);
void bind_internals(nanobind::module_& m);
void bind_tune(nanobind::module_& m);

/// Sets the Python exception that stands for the C++ exception being handled; false: none of ours.
bool set_python_error();

}  // namespace sycl_mat::python
