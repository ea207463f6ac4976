// Where pip put oneMKL: known to Python alone, told to the library before it is first asked for.
#include "backends/onemkl.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "options.hpp"

namespace nb = nanobind;

namespace sycl_mat::python {

void tell_where_onemkl_is() {
  static bool told = false;  // the GIL is held
  if (told) return;
  for (const auto& folder : nb::cast<std::vector<std::string>>(nb::module_::import_("sycl_mat._runtime").attr("onemkl_folders")()))
    onemkl::add_folder(folder);
  told = true;
}

}  // namespace sycl_mat::python
