// Dot products of the host path, over the same vector type as host_kernel.hpp, which says how it is included.

namespace sycl_mat::host {
namespace {

/// R long rows with each of F others. Sums over lanes come last; the order of a sum does not depend on R.
template <class T, int R, int F>
void dots_of(const Dots<T>& x, index_t i) {
  using Vector = Vec<T>;
  T total[R][F] = {};
  const T* row = x.rows + i * x.row_ld;
  for (index_t begin = 0; begin < x.k; begin += longest_sum) {
    const index_t end = x.k - begin < longest_sum ? x.k : begin + longest_sum;
    typename Vector::Type sum[R][F];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int f = 0; f < F; ++f) sum[r][f] = Vector::splat(0);
#pragma GCC unroll 1
    for (index_t p = begin; p < end; p += Vector::width) {
      const auto mask = Vector::mask(end - p < Vector::width ? int(end - p) : Vector::width);
      typename Vector::Type other[F];
#pragma GCC unroll 16
      for (int f = 0; f < F; ++f) other[f] = Vector::load_some(x.others + f * x.other_ld + p, mask);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const typename Vector::Type v = Vector::load_some(row + r * x.row_ld + p, mask);
#pragma GCC unroll 16
        for (int f = 0; f < F; ++f) sum[r][f] = Vector::multiply_add(v, other[f], sum[r][f]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int f = 0; f < F; ++f) total[r][f] += Vector::sum(sum[r][f]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int f = 0; f < F; ++f) x.d[(i + r) * x.d_row + f * x.d_other] = total[r][f];
}

template <class T, int F>
void dots_of_all(const Dots<T>& x) {
  index_t i = 0;
  for (; i + 4 <= x.count; i += 4) dots_of<T, 4, F>(x, i);
  for (; i < x.count; ++i) dots_of<T, 1, F>(x, i);
}

template <class T>
void dots(const Dots<T>& x) {
  static_assert(most_dots == 4);
  if (x.few == 1) return dots_of_all<T, 1>(x);
  if (x.few == 2) return dots_of_all<T, 2>(x);
  if (x.few == 3) return dots_of_all<T, 3>(x);
  dots_of_all<T, 4>(x);
}

}  // namespace
}  // namespace sycl_mat::host
