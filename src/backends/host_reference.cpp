// The oracle of tests and tuner: plain loops, sums in float64 or int64.
#include <algorithm>
#include <memory>

#include "host.hpp"
#include "host_write_back.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat::host {
namespace {

template <class In, class Acc, class Out, class Sum>
void reference_as(const Problem& p) {
  auto sums = std::make_unique<Sum[]>(static_cast<std::size_t>(std::max<index_t>(1, p.m * p.n)));
  const index_t a_row = p.a.transposed ? 1 : p.a.ld, a_col = p.a.transposed ? p.a.ld : 1;
  const index_t b_row = p.b.transposed ? 1 : p.b.ld, b_col = p.b.transposed ? p.b.ld : 1;
  for (index_t outer = 0; outer < p.batch_outer; ++outer)
    for (index_t inner = 0; inner < p.batch_inner; ++inner) {
      const auto x = matrices<In, Out>(p, outer, inner);
      for (index_t i = 0; i < p.m; ++i) {
        for (index_t j = 0; j < p.n; ++j) sums[i * p.n + j] = 0;
        for (index_t q = 0; q < p.k; ++q) {
          const auto a = widen<Sum>(x.a[i * a_row + q * a_col]);
          for (index_t j = 0; j < p.n; ++j) sums[i * p.n + j] = add(sums[i * p.n + j], times(a, widen<Sum>(x.b[q * b_row + j * b_col])));
        }
      }
      write_back<Sum, Acc, Out>(p, sums.get(), 0, p.m, x.c, x.d);
    }
}

}  // namespace

void reference(const Problem& p) {
  switch (p.dtype) {
    case DType::float32:
      return reference_as<float, float, float, double>(p);
    case DType::float64:
      return reference_as<double, double, double, double>(p);
    case DType::float16:
      return reference_as<float16_bits, float, float16_bits, double>(p);
    case DType::bfloat16:
      return reference_as<bfloat16_bits, float, bfloat16_bits, double>(p);
    case DType::int8:
      return reference_as<std::int8_t, std::int32_t, std::int32_t, std::int64_t>(p);
    case DType::int32:
      break;
  }
  throw UnsupportedError("the reference multiplies no " + std::string(name_of(p.dtype)));
}

}  // namespace sycl_mat::host
