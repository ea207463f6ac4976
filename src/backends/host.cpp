#include "host.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "../families/cpu_thresholds.hpp"
#include "host_isa.hpp"
#include "narrow_types.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat::host {
namespace {

const Isa& isa() {
#ifdef SYCL_MAT_HOST_X86
  static const Isa& best = avx512_isa.available() ? avx512_isa : avx2_isa.available() ? avx2_isa : baseline_isa;
  return best;
#else
  return baseline_isa;
#endif
}

/// Memory of the calling thread that stays for its next product.
template <class T>
T* scratch(int slot, index_t elements) {
  thread_local struct {
    std::unique_ptr<T[]> memory;
    index_t size = 0;
  } slots[3];
  auto& s = slots[slot];
  if (s.size < elements) {
    s.memory = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(elements));
    s.size = elements;
  }
  return s.memory.get();
}

template <class Acc, class T>
Acc widen(T x) {
  return static_cast<Acc>(x);
}
template <class Acc>
Acc widen(float16_bits x) {
  return static_cast<Acc>(static_cast<float>(x));
}
template <class Acc>
Acc widen(bfloat16_bits x) {
  return static_cast<Acc>(static_cast<float>(x));
}

template <class Out, class Acc>
Out narrow(Acc x) {
  if constexpr (std::is_same_v<Out, float16_bits>)
    return to_float16(static_cast<float>(x));
  else if constexpr (std::is_same_v<Out, bfloat16_bits>)
    return to_bfloat16(static_cast<float>(x));
  else
    return static_cast<Out>(x);
}

template <class T>
T activate(T x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? T(0) : x;
    case Activation::gelu: return static_cast<T>(x * T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))));
    case Activation::sigmoid: return static_cast<T>(T(1) / (T(1) + std::exp(-x)));
    case Activation::tanh: return static_cast<T>(std::tanh(x));
    case Activation::silu: return static_cast<T>(x / (T(1) + std::exp(-x)));
  }
  return x;
}

/// Signed overflow wraps on every device; here it must not be undefined.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) * std::make_unsigned_t<T>(b));
  else
    return a * b;
}

/// One product of the stack.
template <class In, class Out>
struct Matrices {
  const In* a;
  const In* b;
  const Out* c;
  Out* d;
};
template <class In, class Out>
Matrices<In, Out> matrices(const Problem& p, index_t outer, index_t inner) {
  const auto at = [&](const Operand& o) { return outer * o.outer + inner * o.inner; };
  const auto* c = static_cast<const Out*>(p.c.data);
  return {static_cast<const In*>(p.a.data) + at(p.a), static_cast<const In*>(p.b.data) + at(p.b), p.epilogue.beta != 0 ? c + at(p.c) : nullptr,
          static_cast<Out*>(p.d.data) + at(p.d)};
}

/// D ← act(alpha·sums + beta·C + bias); `Sum` may be wider than the accumulator.
template <class Sum, class Acc, class Out>
void write_back(const Problem& p, const Sum* sums, const Out* c, Out* d) {
  const Epilogue& e = p.epilogue;
  const auto alpha = static_cast<Sum>(static_cast<Acc>(e.alpha)), beta = static_cast<Sum>(static_cast<Acc>(e.beta));
  const auto* bias = static_cast<const Acc*>(e.bias);
  for (index_t i = 0; i < p.m; ++i)
    for (index_t j = 0; j < p.n; ++j) {
      Sum x = times(alpha, sums[i * p.n + j]);
      if (e.beta != 0) x = add(x, times(beta, widen<Sum>(c[i * p.c.ld + j])));
      if (e.bias_axis == BiasAxis::column) x = add(x, static_cast<Sum>(bias[j]));
      if (e.bias_axis == BiasAxis::row) x = add(x, static_cast<Sum>(bias[i]));
      d[i * p.d.ld + j] = narrow<Out>(activate(x, e.activation));
    }
}

template <class T>
void product(const Product<T>& x) {
  if constexpr (std::is_same_v<T, float>)
    isa().product_f32(x);
  else if constexpr (std::is_same_v<T, double>)
    isa().product_f64(x);
  else
    isa().product_i32(x);
}

template <class T>
void transpose(const T* from, index_t from_ld, index_t rows, index_t cols, T* to) {
  if constexpr (std::is_same_v<T, float>)
    isa().transpose_f32(from, from_ld, rows, cols, to, rows);
  else
    isa().transpose_f64(from, from_ld, rows, cols, to, rows);
}

template <class In, class Acc, class Out>
void run_as(const Problem& p) {
  const bool plain = std::is_same_v<Acc, Out> && !p.has_epilogue();
  for (index_t outer = 0; outer < p.batch_outer; ++outer)
    for (index_t inner = 0; inner < p.batch_inner; ++inner) {
      const auto x = matrices<In, Out>(p, outer, inner);
      Product<Acc> g{p.m, p.n, p.k, nullptr, p.k, 1, nullptr, p.n, nullptr, p.n};
      if constexpr (std::is_same_v<In, Acc>) {
        g.a = x.a;
        g.a_row = p.a.transposed ? 1 : p.a.ld;
        g.a_col = p.a.transposed ? p.a.ld : 1;
        if (p.b.transposed) {
          Acc* b = scratch<Acc>(0, p.k * p.n);
          transpose(x.b, p.b.ld, p.n, p.k, b);
          g.b = b;
        } else {
          g.b = x.b;
          g.b_ld = p.b.ld;
        }
      } else {
        Acc* a = scratch<Acc>(1, p.m * p.k);
        Acc* b = scratch<Acc>(0, p.k * p.n);
        const index_t a_row = p.a.transposed ? 1 : p.a.ld, a_col = p.a.transposed ? p.a.ld : 1;
        const index_t b_row = p.b.transposed ? 1 : p.b.ld, b_col = p.b.transposed ? p.b.ld : 1;
        for (index_t i = 0; i < p.m; ++i)
          for (index_t q = 0; q < p.k; ++q) a[i * p.k + q] = widen<Acc>(x.a[i * a_row + q * a_col]);
        for (index_t q = 0; q < p.k; ++q)
          for (index_t j = 0; j < p.n; ++j) b[q * p.n + j] = widen<Acc>(x.b[q * b_row + j * b_col]);
        g.a = a;
        g.b = b;
      }
      if constexpr (std::is_same_v<Acc, Out>) {
        if (plain) {
          g.d = x.d;
          g.d_ld = p.d.ld;
          product(g);
          continue;
        }
      }
      g.d = scratch<Acc>(2, p.m * p.n);
      product(g);
      write_back<Acc, Acc, Out>(p, g.d, x.c, x.d);
    }
}

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
          for (index_t j = 0; j < p.n; ++j)
            sums[i * p.n + j] = add(sums[i * p.n + j], times(a, widen<Sum>(x.b[q * b_row + j * b_col])));
        }
      }
      write_back<Sum, Acc, Out>(p, sums.get(), x.c, x.d);
    }
}

}  // namespace

bool preferred(const Problem& p, const DeviceInfo& device) {
  return device.is_cpu() && p.precision != Precision::tf32 && on_calling_thread(p, device.compute_units);
}

void run(const Problem& p) {
  switch (p.dtype) {
    case DType::float32: return run_as<float, float, float>(p);
    case DType::float64: return run_as<double, double, double>(p);
    case DType::float16: return run_as<float16_bits, float, float16_bits>(p);
    case DType::bfloat16: return run_as<bfloat16_bits, float, bfloat16_bits>(p);
    case DType::int8: return run_as<std::int8_t, std::int32_t, std::int32_t>(p);
    case DType::int32: break;
  }
  throw UnsupportedError("the host path multiplies no " + std::string(name_of(p.dtype)));
}

void reference(const Problem& p) {
  switch (p.dtype) {
    case DType::float32: return reference_as<float, float, float, double>(p);
    case DType::float64: return reference_as<double, double, double, double>(p);
    case DType::float16: return reference_as<float16_bits, float, float16_bits, double>(p);
    case DType::bfloat16: return reference_as<bfloat16_bits, float, bfloat16_bits, double>(p);
    case DType::int8: return reference_as<std::int8_t, std::int32_t, std::int32_t, std::int64_t>(p);
    case DType::int32: break;
  }
  throw UnsupportedError("the reference multiplies no " + std::string(name_of(p.dtype)));
}

std::string_view instruction_set() { return isa().name; }

}  // namespace sycl_mat::host
