#include "slices.hpp"

namespace sycl_mat {
namespace {

constexpr std::size_t axes_a_launch = 2;

MatrixView at(MatrixView v, std::int64_t i) {
  v.data = static_cast<char*>(v.data) + i * v.batch.front().stride * size_of(v.dtype);
  v.batch.erase(v.batch.begin());
  return v;
}

void cut(const Operands& o, std::vector<Operands>& out) {
  if (o.d.batch.size() <= axes_a_launch) {
    out.push_back(o);
    return;
  }
  for (std::int64_t i = 0; i < o.d.batch.front().extent; ++i) {
    Operands slice{at(o.a, i), at(o.b, i), at(o.d, i), std::nullopt, o.bias};
    if (o.c) slice.c = at(*o.c, i);
    cut(slice, out);
  }
}

}  // namespace

std::vector<Operands> slices(const Operands& o) {
  std::vector<Operands> out;
  cut(o, out);
  return out;
}

}  // namespace sycl_mat
