// What the host path and its reference have in common: element types, where the matrices of a stack lie, and the way of the sums into D.
#pragma once

#include <cmath>
#include <type_traits>

#include "../problem.hpp"
#include "host_isa.hpp"
#include "narrow_types.hpp"

namespace sycl_mat::host {

/// The best instruction set that this processor has.
const Isa& isa();

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
  if constexpr (std::is_same_v<Out, float16_bits> || std::is_same_v<Out, bfloat16_bits>)
    return to_narrow<Out>(static_cast<float>(x));
  else
    return static_cast<Out>(x);
}

// Runs of neighbours, in vectors.
inline void widen_run(const float16_bits* from, index_t count, float* to) { isa().widen_f16(from, count, to); }
inline void widen_run(const bfloat16_bits* from, index_t count, float* to) { isa().widen_bf16(from, count, to); }
inline void widen_run(const std::int8_t* from, index_t count, std::int32_t* to) { isa().widen_i8(from, count, to); }
inline void narrow_run(const float* from, index_t count, float16_bits* to) { isa().narrow_f16(from, count, to); }
inline void narrow_run(const float* from, index_t count, bfloat16_bits* to) { isa().narrow_bf16(from, count, to); }
template <class Sum, class Out>
void narrow_run(const Sum* from, index_t count, Out* to) {
  for (index_t i = 0; i < count; ++i) to[i] = narrow<Out>(from[i]);
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
  return {static_cast<const In*>(p.a.data) + at(p.a), static_cast<const In*>(p.b.data) + at(p.b),
          p.epilogue.beta != 0 ? c + at(p.c) : nullptr, static_cast<Out*>(p.d.data) + at(p.d)};
}

template <class T>
void activate_row(T* x, index_t n, Activation activation) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      for (index_t j = 0; j < n; ++j) x[j] = x[j] < 0 ? T(0) : x[j];  // a NaN stays one
      return;
    case Activation::gelu:
      for (index_t j = 0; j < n; ++j) x[j] = static_cast<T>(x[j] * T(0.5) * (T(1) + std::erf(x[j] * T(0.70710678118654752440))));
      return;
    case Activation::sigmoid:
      for (index_t j = 0; j < n; ++j) x[j] = static_cast<T>(T(1) / (T(1) + std::exp(-x[j])));
      return;
    case Activation::tanh:
      for (index_t j = 0; j < n; ++j) x[j] = static_cast<T>(std::tanh(x[j]));
      return;
    case Activation::silu:
      for (index_t j = 0; j < n; ++j) x[j] = static_cast<T>(x[j] / (T(1) + std::exp(-x[j])));
      return;
  }
}

/// D ← act(alpha·sums + beta·C + bias) in rows [begin, end) of D; `sums` begins at the first of them and is used up. Sum may be wider than
/// the accumulator. One simple loop after the other over a row that stays in the first cache: compilers vectorise those.
template <class Sum, class Acc, class Out>
void write_back(const Problem& p, Sum* sums, index_t begin, index_t end, const Out* c, Out* d) {
  const Epilogue& e = p.epilogue;
  const auto alpha = static_cast<Sum>(static_cast<Acc>(e.alpha)), beta = static_cast<Sum>(static_cast<Acc>(e.beta));
  const auto* bias = static_cast<const Acc*>(e.bias);
  const index_t n = p.n;
  for (index_t i = begin; i < end; ++i, sums += n) {
    if (e.alpha != 1)
      for (index_t j = 0; j < n; ++j) sums[j] = times(alpha, sums[j]);
    if (e.beta != 0) {
      const Out* row = c + i * p.c.ld;
      for (index_t j = 0; j < n; ++j) sums[j] = add(sums[j], times(beta, widen<Sum>(row[j])));
    }
    if (e.bias_axis == BiasAxis::column)
      for (index_t j = 0; j < n; ++j) sums[j] = add(sums[j], static_cast<Sum>(bias[j]));
    if (e.bias_axis == BiasAxis::row)
      for (index_t j = 0; j < n; ++j) sums[j] = add(sums[j], static_cast<Sum>(bias[i]));
    activate_row(sums, n, e.activation);
    narrow_run(sums, n, d + i * p.d.ld);
  }
}

}  // namespace sycl_mat::host
