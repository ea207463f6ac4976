#include "errors.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace sycl_mat::blas {
namespace {

/// A symbol of the program or of the libraries it was linked with; asked for when it is needed, because it may be loaded late.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void report(const char* routine, int argument) {
  if (auto* handler = find<void(const char*, const int*, std::size_t)>("xerbla_")) return handler(routine, &argument, std::strlen(routine));
  std::fprintf(stderr, " ** On entry to %s parameter number %2d had an illegal value\n", routine, argument);
}

void report_c(const char* routine, int argument, int fortran, bool row_major) {
  if (auto* handler = find<void(int, const char*, const char*, ...)>("cblas_xerbla")) {
    if (int* layout = find<int>("RowMajorStrg")) *layout = row_major;  // the reference's handler looks there and exchanges them back
    return handler(fortran, routine, "");
  }
  std::fprintf(stderr, "Parameter %d to routine %s was incorrect\n", argument, routine);
}

}  // namespace sycl_mat::blas
