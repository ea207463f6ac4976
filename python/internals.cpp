// What `sycl-mat doctor` asks of the library beyond its public API.
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "disk_cache.hpp"

namespace nb = nanobind;

namespace sycl_mat::python {

void bind_internals(nb::module_& m) {
  m.def("cache_folder", [] { return cache_folder().string(); }, "The folder of the disk cache of compiled kernels. May not exist.");
}

}  // namespace sycl_mat::python
