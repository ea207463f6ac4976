// The device side's only vocabulary: work-item ids, barrier, local memory, vectors, element types, accessors, the write-back.
//
// Two bodies behind one set of names. By default the compiler's own builtins, so that a kernel includes no header of the machine,
// builds in a third of the time, and needs no C++ library where it is compiled at run time. With SYCL_MAT_STANDARD_SYCL the standard
// SYCL headers, for ahead-of-time compilers and for editors.
#pragma once

#include "gemm_args.hpp"

// ---- default constants shared by all kernels; program.cpp replaces the lines between the two marks -------------------------------
// constants: begin
constexpr int ELEMENT = 0;     // type of A and B: 0 float32, 1 float64, 2 float16, 3 bfloat16, 4 int8
constexpr int TRANS_A = 0;     // 1: lda is the distance between A's columns
constexpr int TRANS_B = 0;     // 1: ldb is the distance between B's columns
constexpr int BETA = 0;        // 0: C is never read
constexpr int BIAS = 0;        // 0 none, 1 one value a column, 2 one value a row
constexpr int ACTIVATION = 0;  // 0 none, 1 relu, 2 gelu, 3 sigmoid, 4 tanh, 5 silu
// constants: end

// Everything ends up inside the kernel: a call on the device costs registers, and local memory must be the kernel's own.
#define SYCL_MAT_INLINE static inline __attribute__((always_inline))
#define SYCL_MAT_MEMBER inline __attribute__((always_inline))  // of a class
#define SYCL_MAT_LAMBDA __attribute__((always_inline))         // behind a lambda's parameters

// ---- what the two bodies provide: group_id, local_id, lane, barrier, device_fence, fetch_add, exp/erf/tanh, local_memory, KERNEL --------
// Dimension 0 varies fastest: 0 columns, 1 rows, 2 batch (the launch range counts the other way round).
#ifdef SYCL_MAT_STANDARD_SYCL
#include <sycl/sycl.hpp>

#define KERNEL(dimensions) \
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((::sycl::ext::oneapi::experimental::nd_range_kernel<dimensions>)) void
#define KERNEL_WITH_SUB_GROUP(dimensions, size) KERNEL(dimensions)
#define ENTRY(name)

namespace sycl_mat {
SYCL_MAT_INLINE auto this_item() { return ::sycl::ext::oneapi::this_work_item::get_nd_item<3>(); }
SYCL_MAT_INLINE int group_id(int dimension) { return int(this_item().get_group(2 - dimension)); }
SYCL_MAT_INLINE int group_count(int dimension) { return int(this_item().get_group_range(2 - dimension)); }
SYCL_MAT_INLINE int local_id(int dimension) { return int(this_item().get_local_id(2 - dimension)); }
SYCL_MAT_INLINE void barrier() { ::sycl::group_barrier(this_item().get_group()); }
SYCL_MAT_INLINE void device_fence() { ::sycl::atomic_fence(::sycl::memory_order::acq_rel, ::sycl::memory_scope::device); }
SYCL_MAT_INLINE int fetch_add(int* counter, int value) {
  return ::sycl::atomic_ref<int, ::sycl::memory_order::acq_rel, ::sycl::memory_scope::device>(*counter).fetch_add(value);
}
SYCL_MAT_INLINE int lane() { return int(::sycl::ext::oneapi::this_work_item::get_sub_group().get_local_linear_id()); }
template <class T>
SYCL_MAT_INLINE T from_lane(T x, int lane) {
  return ::sycl::group_broadcast(::sycl::ext::oneapi::this_work_item::get_sub_group(), x, lane);
}
SYCL_MAT_INLINE float exp_of(float x) { return ::sycl::exp(x); }
SYCL_MAT_INLINE double exp_of(double x) { return ::sycl::exp(x); }
SYCL_MAT_INLINE float erf_of(float x) { return ::sycl::erf(x); }
SYCL_MAT_INLINE double erf_of(double x) { return ::sycl::erf(x); }
SYCL_MAT_INLINE float tanh_of(float x) { return ::sycl::tanh(x); }
SYCL_MAT_INLINE double tanh_of(double x) { return ::sycl::tanh(x); }

template <class T>
using local_memory_of = ::sycl::ext::oneapi::experimental::work_group_static<T>;
template <class T>
T& contents(local_memory_of<T>& memory) {
  return *&memory;
}
}  // namespace sycl_mat

#else

#define SYCL_MAT_BUILTIN __attribute__((sycl_device))
SYCL_MAT_BUILTIN __SIZE_TYPE__ __spirv_BuiltInWorkgroupId(int);
SYCL_MAT_BUILTIN __SIZE_TYPE__ __spirv_BuiltInNumWorkgroups(int);
SYCL_MAT_BUILTIN __SIZE_TYPE__ __spirv_BuiltInLocalInvocationId(int);
SYCL_MAT_BUILTIN __attribute__((convergent)) void __spirv_ControlBarrier(int execution, int memory, int semantics) noexcept;
SYCL_MAT_BUILTIN __attribute__((convergent)) void __spirv_MemoryBarrier(int memory, int semantics) noexcept;
SYCL_MAT_BUILTIN int __spirv_AtomicIAdd(__attribute__((opencl_global)) int*, int scope, int semantics, int value) noexcept;
SYCL_MAT_BUILTIN __attribute__((pure)) int __spirv_BuiltInSubgroupLocalInvocationId();
SYCL_MAT_BUILTIN __attribute__((convergent)) float __spirv_GroupBroadcast(int scope, float, int lane) noexcept;
SYCL_MAT_BUILTIN __attribute__((convergent)) double __spirv_GroupBroadcast(int scope, double, int lane) noexcept;
SYCL_MAT_BUILTIN __attribute__((convergent)) int __spirv_GroupBroadcast(int scope, int, int lane) noexcept;
SYCL_MAT_BUILTIN float __spirv_ocl_exp(float) noexcept;
SYCL_MAT_BUILTIN double __spirv_ocl_exp(double) noexcept;
SYCL_MAT_BUILTIN float __spirv_ocl_erf(float) noexcept;
SYCL_MAT_BUILTIN double __spirv_ocl_erf(double) noexcept;
SYCL_MAT_BUILTIN float __spirv_ocl_tanh(float) noexcept;
SYCL_MAT_BUILTIN double __spirv_ocl_tanh(double) noexcept;

#ifdef __NVPTX__
// The run-time compiler's PTX back end crashes on a struct among an entry point's arguments (2026.2). So the kernel itself is an ordinary
// function there, and ENTRY makes an entry point of the same name whose last arguments are Args cut into 16-byte integers, which
// launch.cpp passes. LAUNCH_BOUNDS may be defined anew before ENTRY, as names and values of further attributes.
#define KERNEL(dimensions) static inline __attribute__((always_inline)) void
#define KERNEL_WITH_SUB_GROUP(dimensions, size) KERNEL(dimensions)
#define LAUNCH_BOUNDS_NAMES
#define LAUNCH_BOUNDS_VALUES
#define ENTRY(name)                                                                                                                \
  extern "C" [[__sycl_detail__::add_ir_attributes_function("sycl-nd-range-kernel" LAUNCH_BOUNDS_NAMES, 3 LAUNCH_BOUNDS_VALUES)]]   \
  __attribute__((sycl_device, always_inline)) void name(                                                                           \
      const sycl_mat::in_t* __restrict__ a, const sycl_mat::in_t* __restrict__ b, const sycl_mat::out_t* c, sycl_mat::out_t* d,    \
      const sycl_mat::acc_t* __restrict__ bias, void* scratch, __int128 w0, __int128 w1, __int128 w2, __int128 w3, __int128 w4,    \
      __int128 w5, __int128 w6, __int128 w7, __int128 w8, __int128 w9, __int128 w10, __int128 w11, __int128 w12) {                 \
    sycl_mat::name(a, b, c, d, bias, scratch, sycl_mat::args_of_words({{w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12}})); \
  }
#else
#define ENTRY(name)
#define KERNEL(dimensions) \
  extern "C" [[__sycl_detail__::add_ir_attributes_function("sycl-nd-range-kernel", dimensions)]] __attribute__((sycl_device)) void
// A required sub-group size, 0: the compiler's choice. Unknown attributes are ignored, so the name decides. Inlined into the entry point
// that the front end wraps around it: that one gets a module of its own, and would find no body there.
#define KERNEL_WITH_SUB_GROUP(dimensions, size)                                                                      \
  extern "C"[[__sycl_detail__::add_ir_attributes_function(                                                           \
      "sycl-nd-range-kernel", (size) > 0 ? "sycl-sub-group-size" : "sycl-mat-no-sub-group-size", dimensions, size)]] \
      __attribute__((sycl_device, always_inline)) void
#endif

namespace sycl_mat {
SYCL_MAT_INLINE int group_id(int dimension) { return int(__spirv_BuiltInWorkgroupId(dimension)); }
SYCL_MAT_INLINE int group_count(int dimension) { return int(__spirv_BuiltInNumWorkgroups(dimension)); }
SYCL_MAT_INLINE int local_id(int dimension) { return int(__spirv_BuiltInLocalInvocationId(dimension)); }
// Scope 2: the work-group; semantics: sequentially consistent (0x10) over local memory (0x100) and, for the second, global (0x200).
SYCL_MAT_INLINE void barrier() { __spirv_ControlBarrier(2, 2, 0x110); }
// Scope 1: the device; semantics: acquire and release (0x8) over global memory (0x200).
SYCL_MAT_INLINE void device_fence() { __spirv_MemoryBarrier(1, 0x208); }
SYCL_MAT_INLINE int fetch_add(int* counter, int value) {
  return __spirv_AtomicIAdd((__attribute__((opencl_global)) int*)counter, 1, 0x208, value);
}
// A work-item's place in its sub-group, and the value that another lane holds (scope 3: the sub-group; a constant lane costs nothing).
SYCL_MAT_INLINE int lane() { return __spirv_BuiltInSubgroupLocalInvocationId(); }
template <class T>
SYCL_MAT_INLINE T from_lane(T x, int lane) {
  return __spirv_GroupBroadcast(3, x, lane);
}
SYCL_MAT_INLINE float exp_of(float x) { return __spirv_ocl_exp(x); }
SYCL_MAT_INLINE double exp_of(double x) { return __spirv_ocl_exp(x); }
SYCL_MAT_INLINE float erf_of(float x) { return __spirv_ocl_erf(x); }
SYCL_MAT_INLINE double erf_of(double x) { return __spirv_ocl_erf(x); }
SYCL_MAT_INLINE float tanh_of(float x) { return __spirv_ocl_tanh(x); }
SYCL_MAT_INLINE double tanh_of(double x) { return __spirv_ocl_tanh(x); }

/// Memory that a work-group shares: declare `static local_memory_of<T> name;` beside the kernel and take `contents(name)`.
/// T must be a struct with `alignas`: an array alone is aligned to its element only.
template <class T>
struct [[__sycl_detail__::wg_scope]] local_memory_of {
  T data;
};
template <class T>
SYCL_MAT_INLINE T& contents(local_memory_of<T>& memory) {
  return memory.data;
}
}  // namespace sycl_mat
#endif

namespace sycl_mat {

// ---- element types -------------------------------------------------------------------------------------------------------------
// in_t: A and B. acc_t: sums, alpha, beta and bias. out_t: C and D. bfloat16 travels as its 16 bits.

template <int element>
struct Types;
template <>
struct Types<0> {
  using in = float;
  using acc = float;
  using out = float;
};
template <>
struct Types<1> {
  using in = double;
  using acc = double;
  using out = double;
};
template <>
struct Types<2> {
  using in = _Float16;
  using acc = float;
  using out = _Float16;
};
template <>
struct Types<3> {
  using in = unsigned short;
  using acc = float;
  using out = unsigned short;
};
template <>
struct Types<4> {
  using in = signed char;
  using acc = int;
  using out = int;
};
using in_t = Types<ELEMENT>::in;
using acc_t = Types<ELEMENT>::acc;
using out_t = Types<ELEMENT>::out;
using Args = GemmArgs<acc_t>;

#ifdef __NVPTX__
/// Args as entry points for PTX get them.
struct ArgsWords {
  __int128 words[13];
};
SYCL_MAT_INLINE Args args_of_words(const ArgsWords& words) {
  static_assert(sizeof(Args) <= sizeof(ArgsWords));
  Args g;
  __builtin_memcpy(&g, &words, sizeof(g));
  return g;
}
#endif

/// An element of A, B, C or D as an accumulator.
template <class Stored>
SYCL_MAT_INLINE acc_t widen(Stored x) {
  if constexpr (ELEMENT == 3) {
    return __builtin_bit_cast(float, unsigned(x) << 16);
  } else {
    return acc_t(x);
  }
}

/// An accumulator as an element of D, rounded to the nearest, ties to even.
SYCL_MAT_INLINE out_t narrow(acc_t x) {
  if constexpr (ELEMENT == 3) {
    const unsigned bits = __builtin_bit_cast(unsigned, float(x));
    if (x != x) return out_t((bits >> 16) | 0x40);  // rounding could turn a NaN's mantissa into that of infinity
    return out_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  } else {
    return out_t(x);
  }
}

/// a·b + c with one rounding: the same bits on every device and whatever the compiler contracts.
template <class Accumulator>
SYCL_MAT_INLINE Accumulator multiply_add(Accumulator a, Accumulator b, Accumulator c) {
  if constexpr (ELEMENT == 4) {
    return int(unsigned(a) * unsigned(b) + unsigned(c));  // wraps, as NumPy's int32 does
  } else {
    return __builtin_elementwise_fma(a, b, c);
  }
}

// ---- vectors -------------------------------------------------------------------------------------------------------------------
template <class T, int n>
struct VectorOf {
  typedef T type __attribute__((ext_vector_type(n)));
  typedef T anywhere __attribute__((ext_vector_type(n), aligned(sizeof(T))));
};
/// n elements (1, 2, 4, 8 or 16), aligned to their size …
template <class T, int n>
using Vector = typename VectorOf<T, n>::type;
/// … and the same at any element's address.
template <class T, int n>
using UnalignedVector = typename VectorOf<T, n>::anywhere;

template <int n, class T>
SYCL_MAT_INLINE Vector<T, n> load_unaligned(const T* from) {
  return *reinterpret_cast<const UnalignedVector<T, n>*>(from);
}
template <int n, class T>
SYCL_MAT_INLINE Vector<T, n> load_aligned(const T* from) {
  return *reinterpret_cast<const Vector<T, n>*>(from);
}

/// The same from global memory that nobody writes while the kernel runs. For PTX in words of the instruction itself: where another path
/// loads the same address without knowing its alignment, the optimiser joins the two and keeps the worse.
template <int n, class T>
SYCL_MAT_INLINE Vector<T, n> load_constant_aligned(const T* from) {
#ifdef __NVPTX__
  if constexpr (n * sizeof(T) % 16 == 0) {
    using Result = Vector<T, n>;
    struct Words {
      unsigned w[n * sizeof(T) / 4];
    } words;
#pragma unroll
    for (unsigned i = 0; i < n * sizeof(T) / 4; i += 4)
      asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
          : "=r"(words.w[i]), "=r"(words.w[i + 1]), "=r"(words.w[i + 2]), "=r"(words.w[i + 3])
          : "l"(reinterpret_cast<const char*>(from) + i * 4));
    return __builtin_bit_cast(Result, words);
  }
#endif
  return load_aligned<n>(from);
}

template <bool condition, class Yes, class No>
struct ChoiceOf {
  using type = Yes;
};
template <class Yes, class No>
struct ChoiceOf<false, Yes, No> {
  using type = No;
};
template <bool condition, class Yes, class No>
using Choice = typename ChoiceOf<condition, Yes, No>::type;

/// A number as a type, for lambdas that need one at compile time.
template <int n>
struct Number {
  static constexpr int value = n;
};

constexpr int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
SYCL_MAT_INLINE index min(index a, index b) { return a < b ? a : b; }

// ---- operands ------------------------------------------------------------------------------------------------------------------
/// Where the matrices of one product of the stack begin.
struct Matrices {
  const in_t* a;
  const in_t* b;
  const out_t* c;
  out_t* d;
};
SYCL_MAT_INLINE Matrices matrices(const in_t* a, const in_t* b, const out_t* c, out_t* d, const Args& g, int batch) {
  const index outer = batch / g.batch_inner, inner = batch % g.batch_inner;
  return {a + outer * g.a_outer + inner * g.a_inner, b + outer * g.b_outer + inner * g.b_inner,
          BETA ? c + outer * g.c_outer + inner * g.c_inner : c, d + outer * g.d_outer + inner * g.d_inner};
}

/// Offset of A's element in row i and column p, and of B's in row p and column j, whatever their layouts.
SYCL_MAT_INLINE index at_a(const Args& g, index i, index p) { return TRANS_A ? i + p * g.lda : i * g.lda + p; }
SYCL_MAT_INLINE index at_b(const Args& g, index p, index j) { return TRANS_B ? p + j * g.ldb : p * g.ldb + j; }

/// The same elements as accumulators, zero beyond the matrix's edges: for tiles that hang over them.
SYCL_MAT_INLINE acc_t a_or_zero(const in_t* a, const Args& g, index i, index p) {
  return i < g.m && p < g.k ? widen(a[at_a(g, i, p)]) : acc_t(0);
}
SYCL_MAT_INLINE acc_t b_or_zero(const in_t* b, const Args& g, index p, index j) {
  return p < g.k && j < g.n ? widen(b[at_b(g, p, j)]) : acc_t(0);
}

/// n neighbours along k of A's row i, and n neighbours along a row of B: one load where they lie together and inside the matrix,
/// element by element elsewhere.
template <int n>
SYCL_MAT_INLINE Vector<in_t, n> chunk_of_a(const in_t* a, const Args& g, index i, index p) {
  if (!TRANS_A && i < g.m && p + n <= g.k) return load_unaligned<n>(a + at_a(g, i, p));
  Vector<in_t, n> chunk{};
  for (int e = 0; e < n; ++e)
    if (i < g.m && p + e < g.k) chunk[e] = a[at_a(g, i, p + e)];
  return chunk;
}
template <int n>
SYCL_MAT_INLINE Vector<in_t, n> chunk_of_b(const in_t* b, const Args& g, index p, index j) {
  if (!TRANS_B && p < g.k && j + n <= g.n) return load_unaligned<n>(b + at_b(g, p, j));
  Vector<in_t, n> chunk{};
  for (int e = 0; e < n; ++e)
    if (p < g.k && j + e < g.n) chunk[e] = b[at_b(g, p, j + e)];
  return chunk;
}

// ---- write-back ----------------------------------------------------------------------------------------------------------------
/// act(x): gelu in its erf form.
template <class Accumulator>
SYCL_MAT_INLINE Accumulator activate(Accumulator x) {
  if constexpr (ACTIVATION == 1) {
    return x < 0 ? Accumulator(0) : x;  // a NaN stays one
  } else if constexpr (ACTIVATION == 2 && ELEMENT != 4) {
    return x * Accumulator(0.5) * (Accumulator(1) + erf_of(x * Accumulator(0.70710678118654752440)));
  } else if constexpr (ACTIVATION == 3 && ELEMENT != 4) {
    return Accumulator(1) / (Accumulator(1) + exp_of(-x));
  } else if constexpr (ACTIVATION == 4 && ELEMENT != 4) {
    return tanh_of(x);
  } else if constexpr (ACTIVATION == 5 && ELEMENT != 4) {
    return x / (Accumulator(1) + exp_of(-x));
  } else {
    return x;
  }
}

/// D's element (i, j) for the sum Σ A·B: act(alpha·sum + beta·C + bias). Reads C only with BETA. `c` is the matrix's beginning.
SYCL_MAT_INLINE out_t epilogue(acc_t sum, index i, index j, const out_t* c, const acc_t* bias, const Args& g) {
  acc_t x = g.alpha * sum;
  if constexpr (BETA) x = multiply_add(g.beta, widen(c[i * g.ldc + j]), x);
  if constexpr (BIAS == 1) x += bias[j];
  if constexpr (BIAS == 2) x += bias[i];
  return narrow(activate(x));
}

}  // namespace sycl_mat
