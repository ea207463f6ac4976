#include "slices.hpp"

namespace sycl_mat {
namespace {

MatrixView at(MatrixView v, std::int64_t i) {
  v.data = static_cast<char*>(v.data) + i * v.batch.front().stride * size_of(v.dtype);
  v.batch.erase(v.batch.begin());
  return v;
}

}  // namespace

Operands slice_at(const Operands& o, std::int64_t i) {
  Operands slice{at(o.a, i), at(o.b, i), at(o.d, i), std::nullopt, o.bias};
  if (o.c) slice.c = at(*o.c, i);
  return slice;
}

Operands first_slice(const Operands& o) {
  Operands first = o;
  while (first.d.batch.size() > batch_axes_a_launch) first = slice_at(first, 0);
  return first;
}

}  // namespace sycl_mat
