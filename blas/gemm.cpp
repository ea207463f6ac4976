#include "gemm.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "backends/host.hpp"
#include "runtime.hpp"
#include "sycl_mat/sycl_mat.hpp"
#include "view.hpp"

namespace sycl_mat::blas {
namespace {

template <class T>
constexpr DType dtype = sizeof(T) == 4 ? DType::float32 : DType::float64;

/// rows × cols of memory in column-major order, or of its transpose. Inputs are only read.
template <class T>
MatrixView view(const T* data, std::int64_t rows, std::int64_t cols, std::int64_t ld, bool transposed) {
  MatrixView v{const_cast<T*>(data), dtype<T>, rows, cols, 1, ld, {}};
  if (transposed) std::swap(v.row_stride, v.col_stride);
  return v;
}

void warn_once(const char* what) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) std::fprintf(stderr, "sycl_mat: products run elsewhere, because a device or a kernel cannot: %s\n", what);
}

/// The interface has no way to say that a product failed, and a wrong result is worse than an end.
[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "sycl_mat: a product could not be computed: %s\n", why);
  std::abort();
}

/// A device's context; null where there is no such device, or in a child of fork() whose parent had used one.
Context* open(const char* device) {
  try {
    prepare_runtime();
    return &context(device);
  } catch (const std::exception& e) {
    warn_once(e.what());
    return nullptr;
  }
}

/// The kernel that SYCL_MAT_BLAS_KERNEL forces: programs that do not know of this library have no other way to say it.
const std::string& forced_kernel() {
  static const auto* name = [] {
    const char* value = std::getenv("SYCL_MAT_BLAS_KERNEL");
    return new std::string(value ? value : "");
  }();
  return *name;
}

}  // namespace

template <class T>
int first_wrong(const Gemm<T>& g) {
  const auto at_least = [](std::int64_t rows) { return std::max<std::int64_t>(1, rows); };
  if (g.m < 0) return 3;
  if (g.n < 0) return 4;
  if (g.k < 0) return 5;
  if (g.lda < at_least(g.transpose_a ? g.k : g.m)) return 8;
  if (g.ldb < at_least(g.transpose_b ? g.n : g.k)) return 10;
  if (g.ldc < at_least(g.m)) return 13;
  return 0;
}

template <class T>
void run(const Gemm<T>& g) noexcept {
  if (g.m == 0 || g.n == 0 || ((g.alpha == 0 || g.k == 0) && g.beta == 1)) return;
  // With alpha = 0 the reference reads neither A nor B: a NaN there does not matter.
  const std::int64_t k = g.alpha == 0 ? 0 : g.k;
  const MatrixView a = view(g.a, g.m, k, g.lda, g.transpose_a), b = view(g.b, k, g.n, g.ldb, g.transpose_b),
                   c = view(g.c, g.m, g.n, g.ldc, false);
  GemmOptions options;
  options.epilogue.alpha = k == 0 ? 1 : double(g.alpha);
  options.epilogue.beta = double(g.beta);
  options.kernel = forced_kernel();
  const MatrixView* old = g.beta == 0 ? nullptr : &c;
  for (const char* device : {"", "cpu"}) {
    Context* where = open(device);
    if (!where) continue;
    try {
      gemm(*where, a, b, old, c, options);
      return;
    } catch (const InputError& e) {  // no float64 there, or a forced kernel that cannot do it: nothing was written
      if (!options.kernel.empty()) warn_once(e.what());
    } catch (const CompileError& e) {
      warn_once(e.what());
    } catch (const std::exception& e) {
      if (old) give_up(e.what());  // C may be half written, and what it was is lost
      warn_once(e.what());
    }
    options.kernel.clear();
  }
  try {
    host::run(make_problem(check(a, b, old, c, options), options));
  } catch (const std::exception& e) {
    give_up(e.what());
  }
}

template int first_wrong(const Gemm<float>&);
template int first_wrong(const Gemm<double>&);
template void run(const Gemm<float>&) noexcept;
template void run(const Gemm<double>&) noexcept;

}  // namespace sycl_mat::blas
