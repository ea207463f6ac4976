// The Python module sycl_mat._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.attr("__version__") = SYCL_MAT_VERSION; }
