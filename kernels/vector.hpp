// Wide vectors of the hand-vectorised CPU kernels: loads that widen, stores that narrow, transposes in registers, write-back.
#pragma once

#include "device.hpp"

// constants: begin
constexpr int WIDTH = 16;    // accumulators in the processor's native vector
constexpr int PREFETCH = 0;  // 1: the processor is an x86 one, whose instruction for it is known here
// constants: end

namespace sycl_mat {
typedef float float_vector __attribute__((ext_vector_type(WIDTH)));
typedef double double_vector __attribute__((ext_vector_type(WIDTH)));
}  // namespace sycl_mat
#ifndef SYCL_MAT_STANDARD_SYCL
SYCL_MAT_BUILTIN sycl_mat::float_vector __spirv_ocl_exp(sycl_mat::float_vector) noexcept;
SYCL_MAT_BUILTIN sycl_mat::double_vector __spirv_ocl_exp(sycl_mat::double_vector) noexcept;
SYCL_MAT_BUILTIN sycl_mat::float_vector __spirv_ocl_erf(sycl_mat::float_vector) noexcept;
SYCL_MAT_BUILTIN sycl_mat::double_vector __spirv_ocl_erf(sycl_mat::double_vector) noexcept;
SYCL_MAT_BUILTIN sycl_mat::float_vector __spirv_ocl_tanh(sycl_mat::float_vector) noexcept;
SYCL_MAT_BUILTIN sycl_mat::double_vector __spirv_ocl_tanh(sycl_mat::double_vector) noexcept;
#endif

#define SYCL_MAT_INLINE static inline __attribute__((always_inline))
#define SYCL_MAT_CALL static __attribute__((noinline))

namespace sycl_mat {

typedef acc_t vec __attribute__((ext_vector_type(WIDTH)));
// Any address: callers' arrays may even be off their element's alignment, and x86 vectors do not care.
typedef acc_t vec_anywhere __attribute__((ext_vector_type(WIDTH), aligned(1)));
typedef in_t in_vec_anywhere __attribute__((ext_vector_type(WIDTH), aligned(1)));
typedef out_t out_vec __attribute__((ext_vector_type(WIDTH)));
typedef out_t out_vec_anywhere __attribute__((ext_vector_type(WIDTH), aligned(1)));
typedef unsigned unsigned_vec __attribute__((ext_vector_type(WIDTH)));

/// Sums can be kept in D itself: it is of their type.
constexpr bool sums_in_d = ELEMENT != 2 && ELEMENT != 3;
/// A and B are of the accumulator's type: the micro-kernel can read them where they are.
constexpr bool same_type = ELEMENT < 2;

SYCL_MAT_INLINE vec splat(acc_t x) { return (vec)(x); }

SYCL_MAT_INLINE vec load(const acc_t* from) { return *reinterpret_cast<const vec_anywhere*>(from); }
SYCL_MAT_INLINE void store(acc_t* to, vec x) { *reinterpret_cast<vec_anywhere*>(to) = x; }

template <int element>
SYCL_MAT_INLINE auto multiply_add_of(auto a, auto b, auto c) {
  if constexpr (element == 4) {
    return a * b + c;
  } else {
    return __builtin_elementwise_fma(a, b, c);
  }
}
SYCL_MAT_INLINE vec multiply_add(vec a, vec b, vec c) { return multiply_add_of<ELEMENT>(a, b, c); }

/// WIDTH stored elements, each as an accumulator.
SYCL_MAT_INLINE vec load_wide(const in_t* from) {
  const auto x = *reinterpret_cast<const in_vec_anywhere*>(from);
  if constexpr (ELEMENT == 3) {
    return __builtin_convertvector(__builtin_bit_cast(float_vector, __builtin_convertvector(x, unsigned_vec) << 16), vec);
  } else {
    return __builtin_convertvector(x, vec);
  }
}
/// The same of C, whose type is D's.
SYCL_MAT_INLINE vec load_c(const out_t* from) {
  const auto x = *reinterpret_cast<const out_vec_anywhere*>(from);
  if constexpr (ELEMENT == 3) {
    return __builtin_convertvector(__builtin_bit_cast(float_vector, __builtin_convertvector(x, unsigned_vec) << 16), vec);
  } else {
    return __builtin_convertvector(x, vec);
  }
}

/// Accumulators as elements of D, to nearest, ties to even (see narrow()).
SYCL_MAT_INLINE out_vec narrow(vec x) {
  if constexpr (ELEMENT == 3) {
    const auto single = __builtin_convertvector(x, float_vector);
    const auto bits = __builtin_bit_cast(unsigned_vec, single);
    const auto rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const auto quiet = (bits >> 16) | 0x40;
    return __builtin_convertvector(single != single ? quiet : rounded, out_vec);
  } else {
    return __builtin_convertvector(x, out_vec);
  }
}
SYCL_MAT_INLINE void store_d(out_t* to, vec x) { *reinterpret_cast<out_vec_anywhere*>(to) = narrow(x); }

// `count` < WIDTH elements: eight, four, two, one of them, as the bits of `count` say.
template <int n = WIDTH / 2, class T>
SYCL_MAT_INLINE void copy_bits(T* to, const T* from, int count) {
  if (count & n) {
    __builtin_memcpy(to, from, n * sizeof(T));
    to += n;
    from += n;
  }
  if constexpr (n > 1) copy_bits<n / 2>(to, from, count);
}

/// `count` < WIDTH stored elements as accumulators, the rest zeros.
SYCL_MAT_INLINE vec load_wide_some(const in_t* from, int count) {
  in_t buffer[WIDTH] = {};
  copy_bits(buffer, from, count);
  return load_wide(buffer);
}
SYCL_MAT_INLINE vec load_c_some(const out_t* from, int count) {
  out_t buffer[WIDTH] = {};
  copy_bits(buffer, from, count);
  return load_c(buffer);
}
SYCL_MAT_INLINE vec load_some(const acc_t* from, int count) {
  acc_t buffer[WIDTH] = {};
  copy_bits(buffer, from, count);
  return load(buffer);
}
SYCL_MAT_INLINE void store_some(acc_t* to, vec x, int count) {
  acc_t buffer[WIDTH];
  store(buffer, x);
  copy_bits(to, buffer, count);
}
SYCL_MAT_INLINE void store_d_some(out_t* to, vec x, int count) {
  out_t buffer[WIDTH];
  store_d(buffer, x);
  copy_bits(to, buffer, count);
}

SYCL_MAT_INLINE acc_t sum_of_lanes(vec x) {
  acc_t buffer[WIDTH];
  store(buffer, x);
#pragma unroll
  for (int h = WIDTH / 2; h > 0; h /= 2)
#pragma unroll
    for (int l = 0; l < h; ++l) buffer[l] += buffer[l + h];
  return buffer[0];
}

/// Asks for the cache line at an address, which may lie outside of the arrays.
SYCL_MAT_INLINE void fetch(const void* from) {
#if !defined(__NVPTX__) && !defined(SYCL_MAT_STANDARD_SYCL)
  // (__builtin_prefetch becomes a call into the driver.)
  if constexpr (PREFETCH != 0) __asm__ volatile("prefetcht0 (%0)" : : "r"(from));
#endif
}

// ---- transpose -----------------------------------------------------------------------------------------------------------------
template <class Int, Int... lanes>
struct Lanes {};
using AllLanes = __make_integer_seq<Lanes, int, WIDTH>;

// One butterfly: rows a and b exchange the halves (of size h) of each pair of halves.
template <int h, int... l>
SYCL_MAT_INLINE vec first_halves(vec a, vec b, Lanes<int, l...>) {
  return __builtin_shufflevector(a, b, ((l & h) == 0 ? l : WIDTH + l - h)...);
}
template <int h, int... l>
SYCL_MAT_INLINE vec second_halves(vec a, vec b, Lanes<int, l...>) {
  return __builtin_shufflevector(a, b, ((l & h) == 0 ? l + h : WIDTH + l)...);
}
template <int h>
SYCL_MAT_INLINE void butterflies(vec* rows) {
#pragma unroll
  for (int i = 0; i < WIDTH; ++i)
    if ((i & h) == 0) {
      const vec a = rows[i], b = rows[i + h];
      rows[i] = first_halves<h>(a, b, AllLanes{});
      rows[i + h] = second_halves<h>(a, b, AllLanes{});
    }
  if constexpr (h > 1) butterflies<h / 2>(rows);
}

/// Elements as transpose() reads them: one by one, widened.
struct Widened {
  const in_t* from;
  index ld;
  SYCL_MAT_MEMBER vec row(int r, int c) const { return load_wide(from + r * ld + c); }
  SYCL_MAT_MEMBER acc_t at(int r, int c) const { return widen(from[r * ld + c]); }
};

template <class Source>
SYCL_MAT_CALL void transpose_block(Source from, int r0, int c0, acc_t* to, index to_ld) {
  vec rows[WIDTH];
#pragma unroll
  for (int r = 0; r < WIDTH; ++r) rows[r] = from.row(r0 + r, c0);
  butterflies<WIDTH / 2>(rows);
#pragma unroll
  for (int r = 0; r < WIDTH; ++r) store(to + r * to_ld, rows[r]);
}

/// to[c·to_ld + r] = from's (r, c), any rows × cols: whole blocks of WIDTH × WIDTH in registers, the rest element by element.
template <class Source>
SYCL_MAT_CALL void transpose(Source from, int rows, int cols, acc_t* to, index to_ld) {
  const int whole_rows = rows / WIDTH * WIDTH, whole_cols = cols / WIDTH * WIDTH;
#pragma clang loop unroll(disable)
  for (int r = 0; r < whole_rows; r += WIDTH)
#pragma clang loop unroll(disable)
    for (int c = 0; c < whole_cols; c += WIDTH) transpose_block(from, r, c, to + c * to_ld + r, to_ld);
#pragma clang loop unroll(disable) vectorize(disable)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(disable) vectorize(disable)
    for (int c = r < whole_rows ? whole_cols : 0; c < cols; ++c) to[c * to_ld + r] = from.at(r, c);
}

// ---- write-back ----------------------------------------------------------------------------------------------------------------
template <int activation>
SYCL_MAT_INLINE auto activated(auto x) {
  if constexpr (activation == 1) {
    return x < 0 ? 0 : x;  // a NaN stays one
#ifndef SYCL_MAT_STANDARD_SYCL
  } else if constexpr (activation == 2) {
    return x * acc_t(0.5) * (acc_t(1) + __spirv_ocl_erf(x * acc_t(0.70710678118654752440)));
  } else if constexpr (activation == 3) {
    return acc_t(1) / (acc_t(1) + __spirv_ocl_exp(-x));
  } else if constexpr (activation == 4) {
    return __spirv_ocl_tanh(x);
  } else if constexpr (activation == 5) {
    return x / (acc_t(1) + __spirv_ocl_exp(-x));
#else
  } else if constexpr (activation != 0) {
    for (int l = 0; l < WIDTH; ++l) x[l] = activate(acc_t(x[l]));
    return x;
#endif
  } else {
    return x;
  }
}
/// act(x) of every lane, as activate() does for one.
SYCL_MAT_INLINE vec activate(vec x) { return activated < ELEMENT == 4 && ACTIVATION != 1 ? 0 : ACTIVATION > (x); }

/// WIDTH finished sums (alpha·A·B + beta·C) of D's row i from column j on: bias and activation.
SYCL_MAT_INLINE vec finish(vec x, index i, index j, const acc_t* bias, int count) {
  if constexpr (BIAS == 1) x += count == WIDTH ? load(bias + j) : load_some(bias + j, count);
  if constexpr (BIAS == 2) x += bias[i];
  return activate(x);
}

}  // namespace sycl_mat
