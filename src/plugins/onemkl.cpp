// The oneMKL plugin: turns a problem into one call of oneapi::mkl::blas. A library of its own, so that only this file needs the
// symbols of oneMKL, and only when it is loaded (docs/decisions/0005-onemkl-plugin.md). Declared here from the oneMKL specification
// (oneMKL BLAS, gemm and gemm_batch, USM version): the build needs no header and no library of oneMKL.
#include <cstdint>
#include <stdexcept>
#include <sycl/ext/oneapi/bfloat16.hpp>
#include <sycl/half_type.hpp>
#include <vector>

#include "onemkl_interface.hpp"

namespace oneapi::mkl {

enum class transpose : char { nontrans = 0, trans = 1 };

/// A scalar by value, or where the device finds it.
template <class T>
class value_or_pointer {
  T value;
  const T* pointer;

 public:
  value_or_pointer(T v) : value(v), pointer(nullptr) {}
};

namespace blas {

enum class compute_mode : std::uint64_t { standard = 0x2000000000000000 };

namespace row_major {

template <class T>
using Scalar = value_or_pointer<T>;
using Events = std::vector<sycl::event>;

#define SYCL_MAT_DECLARE(In, Out, S)                                                                                                       \
  sycl::event gemm(sycl::queue&, transpose, transpose, std::int64_t, std::int64_t, std::int64_t, Scalar<S>, const In*, std::int64_t,       \
                   const In*, std::int64_t, Scalar<S>, Out*, std::int64_t, compute_mode, const Events&);                                   \
  sycl::event gemm_batch(sycl::queue&, transpose, transpose, std::int64_t, std::int64_t, std::int64_t, Scalar<S>, const In*, std::int64_t, \
                         std::int64_t, const In*, std::int64_t, std::int64_t, Scalar<S>, Out*, std::int64_t, std::int64_t, std::int64_t,   \
                         compute_mode, const Events&);

SYCL_MAT_DECLARE(float, float, float)
SYCL_MAT_DECLARE(double, double, double)
SYCL_MAT_DECLARE(sycl::half, sycl::half, sycl::half)
SYCL_MAT_DECLARE(sycl::ext::oneapi::bfloat16, sycl::ext::oneapi::bfloat16, float)
SYCL_MAT_DECLARE(std::int8_t, std::int32_t, float)
#undef SYCL_MAT_DECLARE

}  // namespace row_major
}  // namespace blas
}  // namespace oneapi::mkl

namespace sycl_mat::onemkl {
namespace {

namespace mkl = oneapi::mkl;

template <class In, class Out, class Scalar>
void submit_as(sycl::queue& queue, const Problem& p) {
  const auto layout = [](const Operand& o) { return o.transposed ? mkl::transpose::trans : mkl::transpose::nontrans; };
  const mkl::value_or_pointer<Scalar> a_scale(static_cast<Scalar>(p.epilogue.alpha)), d_scale(static_cast<Scalar>(p.epilogue.beta));
  const auto* a = static_cast<const In*>(p.a.data);
  const auto* b = static_cast<const In*>(p.b.data);
  auto* d = static_cast<Out*>(p.d.data);
  // Named, because MKL_BLAS_COMPUTE_MODE in the environment may otherwise lower the precision.
  constexpr auto mode = mkl::blas::compute_mode::standard;
  if (p.batch_inner == 1) {
    mkl::blas::row_major::gemm(queue, layout(p.a), layout(p.b), p.m, p.n, p.k, a_scale, a, p.a.ld, b, p.b.ld, d_scale, d, p.d.ld, mode, {});
  } else {
    mkl::blas::row_major::gemm_batch(queue, layout(p.a), layout(p.b), p.m, p.n, p.k, a_scale, a, p.a.ld, p.a.inner, b, p.b.ld, p.b.inner,
                                     d_scale, d, p.d.ld, p.d.inner, p.batch_inner, mode, {});
  }
}

}  // namespace
}  // namespace sycl_mat::onemkl

extern "C" __attribute__((visibility("default"))) void sycl_mat_onemkl_submit(sycl::queue& queue, const sycl_mat::onemkl::Call& call) {
  using sycl_mat::DType;
  if (call.size != sizeof(call)) throw std::runtime_error("the oneMKL plugin belongs to another version of sycl_mat");
  const sycl_mat::Problem& p = call.problem;
  switch (p.dtype) {
    case DType::float32:
      return sycl_mat::onemkl::submit_as<float, float, float>(queue, p);
    case DType::float64:
      return sycl_mat::onemkl::submit_as<double, double, double>(queue, p);
    case DType::float16:
      return sycl_mat::onemkl::submit_as<sycl::half, sycl::half, sycl::half>(queue, p);
    case DType::bfloat16:
      return sycl_mat::onemkl::submit_as<sycl::ext::oneapi::bfloat16, sycl::ext::oneapi::bfloat16, float>(queue, p);
    case DType::int8:
      return sycl_mat::onemkl::submit_as<std::int8_t, std::int32_t, float>(queue, p);
    case DType::int32:
      break;
  }
  throw std::runtime_error("oneMKL has no product of this dtype");
}
