// The register block of the host path, over a vector type that the including file defines (struct Vec<T>: width, max_rows(vectors),
// max_vectors, load, load_some, store, store_some, stream, splat, multiply_add, Mask, mask, and sum but for integers). Included once an
// instruction set, after that set was switched on: everything here has internal linkage, so that no other file's code is compiled for a
// processor it may not meet.

namespace sycl_mat::host {
namespace {

#if defined(__GNUC__)
#define SYCL_MAT_HOST_INLINE inline __attribute__((always_inline))
#else
#define SYCL_MAT_HOST_INLINE inline
#endif

/// R rows × V vectors, of which the last one may be partial.
template <class T, int R, int V>
SYCL_MAT_HOST_INLINE void register_block(const Product<T>& x, index_t i, index_t j, typename Vec<T>::Mask mask) {
  using Vector = Vec<T>;
  typename Vector::Type sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[r][v] = Vector::splat(0);
  const T* a = x.a + i * x.a_row;
  const T* b = x.b + j;
  const index_t a_row = x.a_row, a_col = x.a_col, b_ld = x.b_ld, depth = x.k;
  // Meanwhile a line a step of the next product comes closer. Where there is none, or enough came, a line that is here already: one loop.
  const index_t line = i / R * depth;
  const bool fetch = line < x.next_lines;
  const char* next_a = fetch ? x.next_a + line * 64 : reinterpret_cast<const char*>(a);
  const char* next_b = fetch ? x.next_b + line * 64 : reinterpret_cast<const char*>(a);
  const index_t next = fetch ? 64 : 0;
#pragma GCC unroll 1
  for (index_t p = 0; p < depth; ++p) {
    typename Vector::Type row[V];
#pragma GCC unroll 16
    for (int v = 0; v < V - 1; ++v) row[v] = Vector::load(b + v * Vector::width);
    row[V - 1] = Vector::load_some(b + (V - 1) * Vector::width, mask);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename Vector::Type element = Vector::splat(a[r * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = Vector::multiply_add(element, row[v], sum[r][v]);
    }
    a += a_col;
    b += b_ld;
    __builtin_prefetch(next_a, 0, 2);
    __builtin_prefetch(next_b, 0, 2);
    next_a += next;
    next_b += next;
  }
  T* d = x.d + i * x.d_ld + j;
  if (x.stream && x.n - j >= V * Vector::width) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) Vector::stream(d + r * x.d_ld + v * Vector::width, sum[r][v]);
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V - 1; ++v) Vector::store(d + r * x.d_ld + v * Vector::width, sum[r][v]);
    Vector::store_some(d + r * x.d_ld + (V - 1) * Vector::width, sum[r][V - 1], mask);
  }
}

/// All columns of R rows.
template <class T, int R>
void strip(const Product<T>& x, index_t i) {
  using Vector = Vec<T>;
  constexpr int most = R <= Vector::max_rows(Vector::max_vectors) ? Vector::max_vectors : R <= Vector::max_rows(2) ? 2 : 1;
  constexpr index_t columns = most * Vector::width;
  const auto all = Vector::mask(Vector::width);
  index_t j = 0;
  for (; j + columns <= x.n; j += columns) register_block<T, R, most>(x, i, j, all);
  const int rest = int(x.n - j);
  if (rest == 0) return;
  const int vectors = (rest + Vector::width - 1) / Vector::width;
  const auto mask = Vector::mask(rest - (vectors - 1) * Vector::width);
  if (vectors == 1) return register_block<T, R, 1>(x, i, j, mask);
  if constexpr (most >= 2)
    if (vectors == 2) return register_block<T, R, 2>(x, i, j, mask);
  if constexpr (most >= 3)
    if (vectors == 3) return register_block<T, R, 3>(x, i, j, mask);
  if constexpr (most >= 4) register_block<T, R, 4>(x, i, j, mask);
}

template <class T, int R>
SYCL_MAT_HOST_INLINE void strip_of(int rows, const Product<T>& x, index_t i) {
  if constexpr (R > 0) {
    if (rows == R)
      strip<T, R>(x, i);
    else
      strip_of<T, R - 1>(rows, x, i);
  }
}

template <class T>
int most_rows_for(index_t n) {
  using Vector = Vec<T>;
  const index_t vectors = (n + Vector::width - 1) / Vector::width;
  return Vector::max_rows(vectors > Vector::max_vectors ? Vector::max_vectors : int(vectors));
}
int rows_at_once(index_t n, int bytes) { return bytes == 8 ? most_rows_for<double>(n) : most_rows_for<float>(n); }

template <class T>
void product(const Product<T>& x) {
  using Vector = Vec<T>;
  const int most_rows = most_rows_for<T>(x.n);
  // As even as possible: 13 rows are 5 + 4 + 4. (Few divisions: each takes as long as a row of the smallest products.)
  const index_t panels = (x.m + most_rows - 1) / most_rows;
  const int rows = panels > 1 ? int(x.m / panels) : int(x.m), longer = int(x.m - rows * panels);
  for (index_t p = 0, i = 0; p < panels; ++p) {
    const int r = rows + (p < longer);
    strip_of<T, Vector::max_rows(1)>(r, x, i);
    i += r;
  }
}

}  // namespace
}  // namespace sycl_mat::host
