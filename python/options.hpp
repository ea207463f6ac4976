// Python keyword arguments → the library's options.
#pragma once

#include "bindings.hpp"
#include "sycl_mat/sycl_mat.hpp"

namespace sycl_mat::python {

/// A string without NUL. Throws TypeError, ValueError that name the argument.
std::string text_from(nanobind::handle value, const char* what);

/// None, TileParams, PackParams or (TileParams, TileOptions). Throws TypeError.
Params params_from(nanobind::handle value);

/// None, a selector ("gpu:1") or a Device of devices(). Throws TypeError, DeviceError.
Context& context_from(nanobind::handle device);

/// None, "ieee", "tf32", "highest" (the same as "ieee"). Throws ValueError.
Precision precision_from(nanobind::handle value);

/// The arguments of these names as the caller gave them, each may be None.
GemmOptions options_from(nanobind::handle kernel, nanobind::handle params, nanobind::handle backend, nanobind::handle precision,
                         nanobind::handle max_device_memory);

/// Asks the wheels' records for oneMKL's folders, once.
void tell_where_onemkl_is();

}  // namespace sycl_mat::python
