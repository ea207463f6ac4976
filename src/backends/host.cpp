#include "host.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "../families/cpu_thresholds.hpp"
#include "host_team.hpp"
#include "host_write_back.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat::host {

const Isa& isa() {
#ifdef SYCL_MAT_HOST_X86
  static const Isa& best = avx512_isa.available() ? avx512_isa : avx2_isa.available() ? avx2_isa : baseline_isa;
  return best;
#else
  return baseline_isa;
#endif
}

namespace {

/// Memory of the calling thread that stays for its next product.
template <class T>
T* scratch(int slot, index_t elements) {
  thread_local struct {
    std::unique_ptr<T[]> memory;
    index_t size = 0;
  } slots[4];
  auto& s = slots[slot];
  if (s.size < elements) {
    s.memory = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(elements));
    s.size = elements;
  }
  return s.memory.get();
}

// What the instruction set has for each type of accumulator.
void compute(const Product<float>& x) { isa().product_f32(x); }
void compute(const Product<double>& x) { isa().product_f64(x); }
void compute(const Product<std::int32_t>& x) { isa().product_i32(x); }
void compute(const Dots<float>& x) { isa().dots_f32(x); }
void compute(const Dots<double>& x) { isa().dots_f64(x); }
void compute(const Rows<float>& x) { isa().rows_f32(x); }
void compute(const Rows<double>& x) { isa().rows_f64(x); }

template <class T>
void transpose(const T* from, index_t from_ld, index_t rows, index_t cols, T* to, index_t to_ld) {
  if constexpr (std::is_same_v<T, float>)
    isa().transpose_f32(from, from_ld, rows, cols, to, to_ld);
  else if constexpr (std::is_same_v<T, double>)
    isa().transpose_f64(from, from_ld, rows, cols, to, to_ld);
  else
    for (index_t c = 0; c < cols; ++c)
      for (index_t r = 0; r < rows; ++r) to[c * to_ld + r] = from[r * from_ld + c];
}

/// B as the register blocks read it: row-major, of the accumulator's type. Copied to scratch where it is not.
template <class In, class Acc>
std::pair<const Acc*, index_t> readable_b(const Problem& p, const In* b) {
  if constexpr (std::is_same_v<In, Acc>) {
    if (!p.b.transposed) return {b, p.b.ld};
  }
  Acc* copy = scratch<Acc>(0, p.k * p.n);
  if constexpr (std::is_same_v<In, Acc>) {
    transpose(b, p.b.ld, p.n, p.k, copy, p.n);
  } else {
    // Widened as it lies, and transposed then.
    const index_t lines = p.b.transposed ? p.n : p.k, length = p.b.transposed ? p.k : p.n;
    Acc* wide = p.b.transposed ? scratch<Acc>(3, p.k * p.n) : copy;
    for (index_t line = 0; line < lines; ++line) widen_run(b + line * p.b.ld, length, wide + line * length);
    if (p.b.transposed) transpose(wide, p.k, p.n, p.k, copy, p.n);
  }
  return {copy, p.n};
}

/// Whether results go past the caches: they are too many to stay, lie at multiples of 16 bytes, and are written from first to last by whole
/// vectors, so that lines are filled before they leave (4096×4096×1, written in pieces of six rows, took three times as long).
bool streams(const Problem& p) {
  const double elements = double(p.batch()) * (double(p.m) * double(p.k) + double(p.k) * double(p.n) + double(p.m) * double(p.n));
  const index_t size = size_of(p.out), row = p.n * size;
  return elements * double(size) > streamed_bytes && p.dtype == p.out && !p.has_epilogue() && row % 64 == 0 && row <= 256 &&
         p.d.ld == p.n && p.d.inner == p.m * p.n && (p.batch_outer == 1 || p.d.outer * size % 16 == 0) &&
         reinterpret_cast<std::uintptr_t>(p.d.data) % 16 == 0;
}

/// Rows [begin, end) of one product, or of `count` of them where those need nothing but their sums.
template <class In, class Acc, class Out>
void rows_of(const Problem& p, const Matrices<In, Out>& x, std::pair<const Acc*, index_t> b, index_t begin, index_t end, bool stream,
             index_t count = 1) {
  const index_t m = end - begin, a_row = p.a.transposed ? 1 : p.a.ld, a_col = p.a.transposed ? p.a.ld : 1;
  Product<Acc> g{m, p.n, p.k, nullptr, a_row, a_col, b.first, b.second, nullptr, p.n};
  if constexpr (std::is_same_v<In, Acc>) {
    g.a = x.a + begin * a_row;  // one element at a time: any strides do
  } else {
    // Widened as it lies.
    const index_t lines = p.a.transposed ? p.k : m, length = p.a.transposed ? m : p.k;
    Acc* a = scratch<Acc>(1, m * p.k);
    for (index_t line = 0; line < lines; ++line) widen_run(x.a + begin * a_row + line * p.a.ld, length, a + line * length);
    g.a = a;
    (p.a.transposed ? g.a_col : g.a_row) = length;
  }
  if constexpr (std::is_same_v<Acc, Out>) {
    if (!p.has_epilogue()) {
      g.d = x.d + begin * p.d.ld;
      g.d_ld = p.d.ld;
      g.stream = stream;
      g.count = count;
      if (p.batch_inner > 1) {
        g.a_step = p.a.inner, g.b_step = p.b.inner, g.d_step = p.d.inner;
        g.next_lines = std::max(p.m, p.n) * p.k * static_cast<index_t>(sizeof(Acc)) / 64;
      }
      return compute(g);
    }
  }
  g.d = scratch<Acc>(2, m * p.n);
  compute(g);
  write_back<Acc, Acc, Out>(p, g.d, begin, end, x.c, x.d);
}

/// Rows of the longer operand of a product that is done by dot products.
index_t rows_of_longer(const Problem& p) { return p.n <= most_dots ? p.m : p.n; }

/// Rows [begin, end) of the longer operand against all of the other.
template <class T>
void dots_with_rows(const Problem& p, const Matrices<T, T>& x, index_t begin, index_t end) {
  const bool long_a = p.n <= most_dots;
  Dots<T> g{end - begin, long_a ? p.n : p.m, p.k, x.a + begin * p.a.ld, p.a.ld, x.b, p.b.ld, nullptr, 1, 1};
  if (!long_a) g.rows = x.b + begin * p.b.ld, g.row_ld = p.b.ld, g.others = x.a, g.other_ld = p.a.ld;
  (long_a ? g.d_row : g.d_other) = p.has_epilogue() ? p.n : p.d.ld;
  g.d = p.has_epilogue() ? scratch<T>(2, g.count * g.few) : x.d + begin * g.d_row;
  compute(g);
  if (p.has_epilogue()) write_back<T, T, T>(p, g.d, long_a ? begin : 0, long_a ? end : p.m, x.c, x.d);
}

/// A product with one or two rows or columns whose long operand lies along the results. What is dealt out does not depend on the number of
/// threads: runs of many results, or parts of K, whose sums are added up in their order. The calling thread takes the first ones, helpers
/// the last.
template <class T>
void scaled_rows(const Problem& p, const Matrices<T, T>& x) {
  const bool long_b = few_rows_of_b(p);
  const index_t few = long_b ? p.m : p.n, count = long_b ? p.n : p.m;
  const Operand& small = long_b ? p.a : p.b;
  const bool along_k = long_b ? !small.transposed : small.transposed;
  const Rows<T> all{
      count,   few,  p.k, long_b ? x.b : x.a, long_b ? p.b.ld : p.a.ld, long_b ? x.a : x.b, along_k ? small.ld : 1, along_k ? 1 : small.ld,
      nullptr, count};
  // Long runs, as memory likes them, but enough of them to keep all busy until the end.
  constexpr index_t shortest = 2048, longest = std::max<index_t>(shortest, 32768 / sizeof(T));
  const index_t run = std::clamp((count / 8 + 63) / 64 * 64, shortest, longest);
  const index_t runs = count >= 8 * shortest ? (count + run - 1) / run : 1;
  // Each part's sums are fetched from the core that made them: four parts, more only where there is more to balance.
  const index_t megabytes = p.k * count * index_t{sizeof(T)} >> 20;
  const index_t even_parts = std::max<index_t>(1, std::min(p.k / 16, std::clamp<index_t>(megabytes, team_threads, 16)));
  const index_t parts = std::max(runs > 1 ? 1 : even_parts, (p.k + longest_sum - 1) / longest_sum);
  T* sums = scratch<T>(2, parts * few * count);
  run_in_team(static_cast<int>(parts * runs), [&](int i) {
    const index_t k0 = p.k * (i / runs) / parts, k1 = p.k * (i / runs + 1) / parts, c0 = i % runs * run;
    Rows<T> part = all;
    part.k = k1 - k0, part.x += k0 * all.x_step, part.rows += k0 * all.row_ld + c0;
    part.count = runs > 1 ? std::min(run, count - c0) : count;
    part.sums = sums + i / runs * few * count + c0;
    compute(part);
  });
  T* d = p.has_epilogue() ? scratch<T>(1, p.m * p.n) : x.d;
  const index_t d_ld = p.has_epilogue() ? p.n : p.d.ld, d_few = long_b ? d_ld : 1, d_count = long_b ? 1 : d_ld;
  for (index_t f = 0; f < few; ++f) {
    T* total = sums + f * count;
    for (index_t i = 1; i < parts; ++i)
      for (index_t c = 0; c < count; ++c) total[c] += sums[(i * few + f) * count + c];
    for (index_t c = 0; c < count; ++c) d[f * d_few + c * d_count] = total[c];
  }
  if (p.has_epilogue()) write_back<T, T, T>(p, d, 0, p.m, x.c, x.d);
}

template <class In, class Acc, class Out>
void one_of_stack(const Problem& p, index_t number, bool stream) {
  const index_t outer = p.batch_outer == 1 ? 0 : number / p.batch_inner;  // divisions take as long as the smallest products
  const auto x = matrices<In, Out>(p, outer, number - outer * p.batch_inner);
  if constexpr (std::is_same_v<In, Acc> && std::is_same_v<Acc, Out>)
    if (host_takes_dots(p)) return dots_with_rows<In>(p, x, 0, rows_of_longer(p));
  rows_of<In, Acc, Out>(p, x, readable_b<In, Acc>(p, x.b), 0, p.m, stream);
}

template <class In, class Acc, class Out>
void part_of_stack(const Problem& p, index_t begin, index_t end, bool stream) {
  const bool plain = std::is_same_v<In, Acc> && std::is_same_v<Acc, Out> && !p.has_epilogue() && !p.b.transposed && p.batch_outer == 1;
  if (plain && begin < end) {
    const auto x = matrices<In, Out>(p, 0, begin);
    rows_of<In, Acc, Out>(p, x, readable_b<In, Acc>(p, x.b), 0, p.m, stream, end - begin);
  } else {
    for (index_t g = begin; g < end; ++g) one_of_stack<In, Acc, Out>(p, g, stream);
  }
  if (stream) isa().finish_streams();
}

template <class In, class Acc, class Out>
void run_as(const Problem& p) {
  const double products = double(p.m) * double(p.n) * double(p.k);
  if (products < team_in_products / 2 && p.batch_outer == 1 && p.batch_inner == 1) return one_of_stack<In, Acc, Out>(p, 0, false);
  const double one = products * (sizeof(Acc) / 4.) + call_in_products;
  const index_t batch = p.batch();
  const bool stream = streams(p);
  if (host_takes_rows(p)) {
    if constexpr (std::is_same_v<In, Acc> && std::is_same_v<Acc, Out>)
      for (index_t g = 0; g < batch; ++g) scaled_rows<In>(p, matrices<In, Out>(p, g / p.batch_inner, g % p.batch_inner));
  } else if (double(batch) * one < team_in_products) {
    part_of_stack<In, Acc, Out>(p, 0, batch, stream);
  } else if (one < team_in_products || batch >= 4 * threads()) {
    // The stack is dealt out, in runs that are worth fetching, and long enough for memory to be read as one stream.
    const index_t run = std::max({index_t{1}, batch / 128, static_cast<index_t>(team_in_products / 2 / one)});
    run_in_team(static_cast<int>((batch + run - 1) / run),
                [&](int i) { part_of_stack<In, Acc, Out>(p, i * run, std::min(batch, (i + 1) * run), stream); });
  } else if (host_takes_dots(p)) {
    // The rows of each longer operand are, unless what comes after the sums asks for whole rows of the result.
    if constexpr (std::is_same_v<In, Acc> && std::is_same_v<Acc, Out>) {
      const index_t count = rows_of_longer(p);
      const int parts = p.has_epilogue() && p.n > most_dots ? 1 : static_cast<int>(std::min<index_t>(count, 4 * threads()));
      for (index_t g = 0; g < batch; ++g) {
        const auto x = matrices<In, Out>(p, g / p.batch_inner, g % p.batch_inner);
        run_in_team(parts, [&](int i) { dots_with_rows<In>(p, x, count * i / parts, count * (i + 1) / parts); });
      }
    }
  } else {
    // The rows of each product are.
    // Where A's columns are widened, a few panels at once: they are read in runs of as many elements.
    const int rows = isa().rows_at_once(p.n, sizeof(Acc)) * (!std::is_same_v<In, Acc> && p.a.transposed ? 4 : 1);
    const int panels = static_cast<int>((p.m + rows - 1) / rows);
    for (index_t g = 0; g < batch; ++g) {
      const auto x = matrices<In, Out>(p, g / p.batch_inner, g % p.batch_inner);
      // A member that takes part makes its own copy of B where one is needed: fetching half of it from another core's cache takes longer.
      static std::atomic<std::uint64_t> products_so_far{0};
      const std::uint64_t number = ++products_so_far;
      run_in_team(panels, [&](int i) {
        thread_local std::uint64_t has_b_of = 0;
        thread_local std::pair<const Acc*, index_t> b;
        if (has_b_of != number) b = readable_b<In, Acc>(p, x.b), has_b_of = number;
        rows_of<In, Acc, Out>(p, x, b, p.m * i / panels, p.m * (i + 1) / panels, stream);
        if (stream) isa().finish_streams();
      });
    }
  }
}

}  // namespace

bool preferred(const Problem& p, const DeviceInfo& device) {
  return device.is_cpu() && p.precision != Precision::tf32 && on_calling_thread(p, device);
}

void run(const Problem& p) {
  switch (p.dtype) {
    case DType::float32:
      return run_as<float, float, float>(p);
    case DType::float64:
      return run_as<double, double, double>(p);
    case DType::float16:
      return run_as<float16_bits, float, float16_bits>(p);
    case DType::bfloat16:
      return run_as<bfloat16_bits, float, bfloat16_bits>(p);
    case DType::int8:
      return run_as<std::int8_t, std::int32_t, std::int32_t>(p);
    case DType::int32:
      break;
  }
  throw UnsupportedError("the host path multiplies no " + std::string(name_of(p.dtype)));
}

std::string_view instruction_set() { return isa().name; }

}  // namespace sycl_mat::host
