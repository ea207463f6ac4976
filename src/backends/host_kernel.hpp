// The register block of the host path, over a vector type that the including file defines (struct Vec<T>: width, max_rows(vectors),
// max_vectors, load, load_some, store, store_some, stream or a class Stream, splat, multiply_add, Mask, mask, sum but for integers, and
// Half: a vector of half as many, void where it would take as long). Included once an instruction set, after that set was switched on:
// everything here has internal linkage, so that no other file's code is compiled for a processor it may not meet.

namespace sycl_mat::host {
namespace {

#if defined(__GNUC__)
#define SYCL_MAT_HOST_INLINE inline __attribute__((always_inline))
#else
#define SYCL_MAT_HOST_INLINE inline
#endif

/// The same pointer, which the compiler does not know to be another one plus something.
template <class T>
SYCL_MAT_HOST_INLINE const T* on_its_own(const T* pointer) {
#if defined(__GNUC__)
  __asm__("" : "+r"(pointer));
#endif
  return pointer;
}

/// Elements of a vector half as long, 0 where there is none.
template <class Vector>
constexpr int half_width = 0;
template <class Vector>
  requires(Vector::Half::width > 0)
constexpr int half_width<Vector> = Vector::Half::width;

/// Whether results past the caches leave in whole lines, made of two vectors each.
template <class Vector>
constexpr bool in_lines = requires { typename Vector::Stream; };

/// R rows × V vectors. PARTIAL: of the last vector only the mask's lanes are there. FETCH: the next product's lines are, where there is
/// one.
template <class Vector, int R, int V, bool PARTIAL, bool FETCH = true, class T>
SYCL_MAT_HOST_INLINE void register_block(const Product<T>& x, index_t i, index_t j, typename Vector::Mask mask) {
  typename Vector::Type sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[r][v] = Vector::splat(0);
  const T* b = x.b + j;
  const index_t a_row = x.a_row, a_col = x.a_col, b_ld = x.b_ld, depth = x.k;
  // A pointer for every three rows: what compilers make of R multiples of a_row runs out of registers.
  constexpr int triples = (R + 2) / 3;
  const T* a[triples];
#pragma GCC unroll 16
  for (int t = 0; t < triples; ++t) a[t] = on_its_own(x.a + (i + 3 * t) * a_row);
  // Meanwhile a line a step of the next product comes closer. Where there is none, or enough came, a line that is here already: one loop.
  const index_t line = i / R * depth;
  const bool fetch = line < x.next_lines;
  const char* next_a = fetch ? reinterpret_cast<const char*>(x.a + x.a_step) + line * 64 : reinterpret_cast<const char*>(b);
  const char* next_b = fetch ? reinterpret_cast<const char*>(x.b + x.b_step) + line * 64 : reinterpret_cast<const char*>(b);
  const index_t next = fetch ? 64 : 0;
#pragma GCC unroll 1
  for (index_t p = 0; p < depth; ++p) {
    typename Vector::Type row[V];
#pragma GCC unroll 16
    for (int v = 0; v < V - PARTIAL; ++v) row[v] = Vector::load(b + v * Vector::width);
    if constexpr (PARTIAL) row[V - 1] = Vector::load_some(b + (V - 1) * Vector::width, mask);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const typename Vector::Type element = Vector::splat(a[r / 3][r % 3 * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = Vector::multiply_add(element, row[v], sum[r][v]);
    }
#pragma GCC unroll 16
    for (int t = 0; t < triples; ++t) a[t] += a_col;
    b += b_ld;
    if constexpr (FETCH) {
      __builtin_prefetch(next_a, 0, 2);
      __builtin_prefetch(next_b, 0, 2);
      next_a += next;
      next_b += next;
    }
  }
  T* d = x.d + i * x.d_ld + j;
  const index_t d_ld = x.d_ld;
  if constexpr (!PARTIAL && in_lines<Vector>) {
    if (x.stream) {
      typename Vector::Stream stream(d, *x.line);  // rows are V vectors long: all that is streamed comes in its order
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) stream.put(sum[r][v], r + v == 0);
      stream.leave(*x.line);
      return;
    }
  } else if constexpr (!PARTIAL) {
    if (x.stream) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r, d += d_ld)
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) Vector::stream(d + v * Vector::width, sum[r][v]);
      return;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, d += d_ld) {
#pragma GCC unroll 16
    for (int v = 0; v < V - PARTIAL; ++v) Vector::store(d + v * Vector::width, sum[r][v]);
    if constexpr (PARTIAL) Vector::store_some(d + (V - 1) * Vector::width, sum[r][V - 1], mask);
  }
}

/// The same for at most V vectors.
template <class Vector, int R, int V, bool PARTIAL, class T>
SYCL_MAT_HOST_INLINE void register_block_of(int vectors, const Product<T>& x, index_t i, index_t j, typename Vector::Mask mask) {
  if constexpr (V > 0) {
    if (vectors == V)
      register_block<Vector, R, V, PARTIAL>(x, i, j, mask);
    else
      register_block_of<Vector, R, V - 1, PARTIAL>(vectors, x, i, j, mask);
  }
}

/// At most half a vector's columns of R rows, in half the time.
template <int R, bool FETCH, class T>
SYCL_MAT_HOST_INLINE void half_block(int columns, const Product<T>& x, index_t i, index_t j) {
  using Half = typename Vec<T>::Half;
  if (columns == Half::width)
    register_block<Half, R, 1, false, FETCH>(x, i, j, Half::mask(columns));
  else
    register_block<Half, R, 1, true, FETCH>(x, i, j, Half::mask(columns));
}

/// All columns of R rows.
template <class T, int R>
void strip(const Product<T>& x, index_t i) {
  using Vector = Vec<T>;
  constexpr int most = R <= Vector::max_rows(Vector::max_vectors) ? Vector::max_vectors : R <= Vector::max_rows(2) ? 2 : 1;
  constexpr index_t columns = most * Vector::width;
  index_t j = 0;
  for (; j + columns <= x.n; j += columns) register_block<Vector, R, most, false>(x, i, j, Vector::mask(Vector::width));
  const int rest = int(x.n - j), vectors = rest / Vector::width, some = rest % Vector::width;
  if (some > half_width<Vector>) return register_block_of<Vector, R, most, true>(vectors + 1, x, i, j, Vector::mask(some));
  register_block_of<Vector, R, most - 1, false>(vectors, x, i, j, Vector::mask(Vector::width));
  if constexpr (half_width<Vector> > 0) {
    if (some > 0 && x.n > half_width<Vector>)
      half_block<R, false>(some, x, i, j + vectors * Vector::width);  // whole vectors fetched before
    else if (some > 0)
      half_block<R, true>(some, x, i, 0);
  }
}

/// The strip of each number of rows.
template <class T, class Rows>
struct Strips;
template <class T, int... R>
struct Strips<T, std::integer_sequence<int, R...>> {
  static constexpr void (*of_rows[])(const Product<T>&, index_t) = {strip<T, R + 1>...};
};

template <class T>
int most_rows_for(index_t n) {
  using Vector = Vec<T>;
  const index_t vectors = (n + Vector::width - 1) / Vector::width;
  return Vector::max_rows(vectors > Vector::max_vectors ? Vector::max_vectors : int(vectors));
}
int rows_at_once(index_t n, int bytes) { return bytes == 8 ? most_rows_for<double>(n) : most_rows_for<float>(n); }

/// The products of x, `line` the one in work where they are streamed.
template <class T>
SYCL_MAT_HOST_INLINE void products(const Product<T>& x, LineInWork* line) {
  constexpr auto& strips = Strips<T, std::make_integer_sequence<int, Vec<T>::max_rows(1)>>::of_rows;
  const int most_rows = most_rows_for<T>(x.n);
  // As even as possible: 13 rows are 5 + 4 + 4. (Few divisions: each takes as long as a row of the smallest products.)
  const index_t panels = (x.m + most_rows - 1) / most_rows;
  const int rows = panels > 1 ? int(x.m / panels) : int(x.m), longer = int(x.m - rows * panels);
  const auto strip_of_more = strips[longer > 0 ? rows : 0], strip_of_rows = strips[rows - 1];
  Product<T> one = x;
  one.line = line;
  for (index_t g = 0; g < x.count; ++g) {
    index_t i = 0;
    for (int p = 0; p < longer; ++p, i += rows + 1) strip_of_more(one, i);
    for (; i < x.m; i += rows) strip_of_rows(one, i);
    one.a += x.a_step, one.b += x.b_step, one.d += x.d_step;
  }
}

/// Apart from the others: a line's memory makes a function's begin longer, which the smallest products would feel.
template <class T>
#if defined(__GNUC__)
__attribute__((noinline))
#endif
void streamed_products(const Product<T>& x) {
  LineInWork line;
  products(x, &line);
  Vec<T>::Stream::end(x.d + x.count * x.m * x.n, line);
}

template <class T>
void product(const Product<T>& x) {
  if constexpr (in_lines<Vec<T>>)
    if (x.stream) return streamed_products(x);
  products(x, nullptr);
}

}  // namespace
}  // namespace sycl_mat::host
