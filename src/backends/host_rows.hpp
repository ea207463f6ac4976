// Scaled rows of the host path, over the same vector type as host_kernel.hpp, which says how it is included.

namespace sycl_mat::host {
namespace {

/// V vectors of results (the last one's first `some` where V is 1) and R rows, from row q and result c on. `add`: sums of rows before are
/// there.
template <class T, int F, int R, int V>
inline void visit_sums(const Rows<T>& x, index_t q, index_t c, bool add, int some = Vec<T>::width) {
  using Vector = Vec<T>;
  const auto mask = Vector::mask(some);
  const auto get = [&](const T* p) { return V > 1 ? Vector::load(p) : Vector::load_some(p, mask); };
  typename Vector::Type sum[F][V];
#pragma GCC unroll 16
  for (int f = 0; f < F; ++f)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[f][v] = add ? get(x.sums + f * x.sums_ld + c + v * Vector::width) : Vector::splat(0);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const typename Vector::Type row = get(x.rows + (q + r) * x.row_ld + c + v * Vector::width);
#pragma GCC unroll 16
      for (int f = 0; f < F; ++f) sum[f][v] = Vector::multiply_add(Vector::splat(x.x[f * x.x_few + (q + r) * x.x_step]), row, sum[f][v]);
    }
#pragma GCC unroll 16
  for (int f = 0; f < F; ++f)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      T* to = x.sums + f * x.sums_ld + c + v * Vector::width;
      V > 1 ? Vector::store(to, sum[f][v]) : Vector::store_some(to, sum[f][v], mask);
    }
}

template <class T, int F, int R>
void visit_rows(const Rows<T>& x, index_t q, index_t begin, index_t end) {
  constexpr int width = Vec<T>::width, vectors = Vec<T>::max_vectors;
  index_t c = begin;
  for (; c + vectors * width <= end; c += vectors * width) visit_sums<T, F, R, vectors>(x, q, c, q > 0);
  for (; c < end; c += width) visit_sums<T, F, R, 1>(x, q, c, q > 0, end - c < width ? int(end - c) : width);
}

template <class T, int F>
void scaled_rows_of(const Rows<T>& x) {
  // Sums that the second cache holds: memory is read in long pieces, a group of rows in as many streams as prefetchers follow.
  constexpr index_t chunk = 32768 / sizeof(T);
  for (index_t begin = 0; begin < x.count; begin += chunk) {
    const index_t end = x.count - begin < chunk ? x.count : begin + chunk;
    index_t q = 0;
    for (; q + 8 <= x.k; q += 8) visit_rows<T, F, 8>(x, q, begin, end);
    for (; q < x.k; ++q) visit_rows<T, F, 1>(x, q, begin, end);
  }
}

template <class T>
void scaled_rows(const Rows<T>& x) {
  static_assert(most_rows == 2);
  x.few == 1 ? scaled_rows_of<T, 1>(x) : scaled_rows_of<T, 2>(x);
}

}  // namespace
}  // namespace sycl_mat::host
