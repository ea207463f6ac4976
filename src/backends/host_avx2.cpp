// The host path for processors with AVX2 and FMA. Standard headers come before the switch: what they define inline must stay as everywhere.
#include "host_isa.hpp"

#ifdef SYCL_MAT_HOST_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#include "host_sum_x86.hpp"

namespace sycl_mat::host {
namespace {

// A window of this, from 8 − count on, is the mask of the first count lanes.
alignas(64) constexpr std::int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
alignas(64) constexpr std::int64_t long_lanes[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

template <class T>
struct Vec;

/// Past the caches, in sixteens of bytes: NumPy's arrays lie no better.
inline void stream_halves(void* to, __m256i x) {
  auto* halves = static_cast<__m128i*>(to);
  _mm_stream_si128(halves, _mm256_castsi256_si128(x));
  _mm_stream_si128(halves + 1, _mm256_extracti128_si256(x, 1));
}

template <>
struct Vec<float> {
  using Type = __m256;
  using Half = void;
  using Mask = __m256i;
  static constexpr int width = 8, max_vectors = 3;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 6 : 4; }
  static inline Mask mask(int count) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 - count)); }
  static inline Type splat(float x) { return _mm256_set1_ps(x); }
  static inline Type load(const float* p) { return _mm256_loadu_ps(p); }
  static inline Type load_some(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static inline void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
  static inline void stream(float* p, Type x) { stream_halves(p, _mm256_castps_si256(x)); }
  static inline void store_some(float* p, Type x, Mask m) { _mm256_maskstore_ps(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  static inline float sum(Type x) { return sum_of_lanes(x); }
};

template <>
struct Vec<double> {
  using Type = __m256d;
  using Half = void;
  using Mask = __m256i;
  static constexpr int width = 4, max_vectors = 3;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 6 : 4; }
  static inline Mask mask(int count) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(long_lanes + 4 - count)); }
  static inline Type splat(double x) { return _mm256_set1_pd(x); }
  static inline Type load(const double* p) { return _mm256_loadu_pd(p); }
  static inline Type load_some(const double* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static inline void store(double* p, Type x) { _mm256_storeu_pd(p, x); }
  static inline void stream(double* p, Type x) { stream_halves(p, _mm256_castpd_si256(x)); }
  static inline void store_some(double* p, Type x, Mask m) { _mm256_maskstore_pd(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_pd(a, b, c); }
  static inline double sum(Type x) { return sum_of_lanes(x); }
};

template <>
struct Vec<std::int32_t> {
  using Type = __m256i;
  using Half = void;
  using Mask = __m256i;
  static constexpr int width = 8, max_vectors = 3;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 6 : 4; }
  static inline Mask mask(int count) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 - count)); }
  static inline Type splat(std::int32_t x) { return _mm256_set1_epi32(x); }
  static inline Type load(const std::int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static inline Type load_some(const std::int32_t* p, Mask m) { return _mm256_maskload_epi32(p, m); }
  static inline void store(std::int32_t* p, Type x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static inline void stream(std::int32_t* p, Type x) { stream_halves(p, x); }
  static inline void store_some(std::int32_t* p, Type x, Mask m) { _mm256_maskstore_epi32(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_add_epi32(_mm256_mullo_epi32(a, b), c); }
};

struct Wide {
  static constexpr index_t width = 8;
  static inline __m128i eight(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
  static inline void widen(const float16_bits* from, float* to) { _mm256_storeu_ps(to, _mm256_cvtph_ps(eight(from))); }
  static inline void widen(const bfloat16_bits* from, float* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_slli_epi32(_mm256_cvtepu16_epi32(eight(from)), 16));
  }
  static inline void widen(const std::int8_t* from, std::int32_t* to) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi32(bytes));
  }
  static inline void narrow(const float* from, float16_bits* to) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
  }
  static inline void narrow(const float* from, bfloat16_bits* to) {
    const __m256 x = _mm256_loadu_ps(from);
    const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(high, _mm256_set1_epi32(1)));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16), quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i result = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  }
};

}  // namespace
}  // namespace sycl_mat::host

#include "host_convert.hpp"
#include "host_dots.hpp"
#include "host_kernel.hpp"
#include "host_rows.hpp"
#include "host_transpose_x86.hpp"

namespace sycl_mat::host {

const Isa avx2_isa = {"avx2",
                      [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); },
                      product<float>,
                      product<double>,
                      product<std::int32_t>,
                      dots<float>,
                      dots<double>,
                      scaled_rows<float>,
                      scaled_rows<double>,
                      rows_at_once,
                      [] { _mm_sfence(); },
                      transpose_by_blocks<float>,
                      transpose_by_blocks<double>,
                      widen<float16_bits, float>,
                      widen<bfloat16_bits, float>,
                      widen<std::int8_t, std::int32_t>,
                      narrow<float16_bits>,
                      narrow<bfloat16_bits>};

}  // namespace sycl_mat::host

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
