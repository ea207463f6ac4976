// The host path for processors with AVX-512. Standard headers come before the switch: what they define inline must stay as everywhere.
#include "host_isa.hpp"

#ifdef SYCL_MAT_HOST_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512dq,avx2,fma")
#endif

#include "host_sum_x86.hpp"

namespace sycl_mat::host {
namespace {

template <class T>
struct Vec;

/// Vectors one behind the other, past the caches in whole cache lines wherever in one they begin: NumPy's arrays lie 16 bytes behind.
class LineStream {
 public:
  LineStream(void* d, const LineInWork& w)
      : line_(static_cast<char*>(d) - offset(d) * 4), first_(offset(d)), begun_(w.begun), last_(_mm512_load_si512(w.last)) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    index_ = _mm512_add_epi32(lanes, _mm512_set1_epi32(16 - first_));
  }
  inline void put(__m512i x, bool may_be_first) {
    const __m512i full = _mm512_permutex2var_epi32(last_, index_, x);
    if (may_be_first && !begun_)
      _mm512_mask_storeu_epi32(line_, __mmask16(0xffffu << first_), full);
    else
      _mm512_stream_si512(reinterpret_cast<__m512i*>(line_), full);
    last_ = x;
    line_ += 64;
  }
  inline void put(__m512 x, bool may_be_first) { put(_mm512_castps_si512(x), may_be_first); }
  inline void put(__m512d x, bool may_be_first) { put(_mm512_castpd_si512(x), may_be_first); }
  inline void leave(LineInWork& w) const {
    _mm512_store_si512(w.last, last_);
    w.begun = true;
  }
  /// What is left before d.
  static void end(void* d, const LineInWork& w) {
    const int some = offset(d);
    char* line = static_cast<char*>(d) - some * 4;
    _mm512_mask_storeu_epi32(line, __mmask16((1u << some) - 1),
                             _mm512_maskz_loadu_epi32(__mmask16((1u << some) - 1), w.last + (16 - some) * 4));
  }

 private:
  static int offset(const void* d) { return int(reinterpret_cast<std::uintptr_t>(d) % 64 / 4); }
  char* line_;
  int first_;
  bool begun_;
  __m512i last_, index_;
};

/// Rests of at most half a vector: these take half the time.
template <class T>
struct HalfVec;

template <>
struct HalfVec<float> {
  using Type = __m256;
  using Mask = __mmask8;
  static constexpr int width = 8;
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(float x) { return _mm256_set1_ps(x); }
  static inline Type load(const float* p) { return _mm256_loadu_ps(p); }
  static inline Type load_some(const float* p, Mask m) { return _mm256_maskz_loadu_ps(m, p); }
  static inline void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
  static inline void stream(float* p, Type x) { store(p, x); }
  static inline void store_some(float* p, Type x, Mask m) { _mm256_mask_storeu_ps(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
};

template <>
struct HalfVec<double> {
  using Type = __m256d;
  using Mask = __mmask8;
  static constexpr int width = 4;
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(double x) { return _mm256_set1_pd(x); }
  static inline Type load(const double* p) { return _mm256_loadu_pd(p); }
  static inline Type load_some(const double* p, Mask m) { return _mm256_maskz_loadu_pd(m, p); }
  static inline void store(double* p, Type x) { _mm256_storeu_pd(p, x); }
  static inline void stream(double* p, Type x) { store(p, x); }
  static inline void store_some(double* p, Type x, Mask m) { _mm256_mask_storeu_pd(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_fmadd_pd(a, b, c); }
};

template <>
struct HalfVec<std::int32_t> {
  using Type = __m256i;
  using Mask = __mmask8;
  static constexpr int width = 8;
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(std::int32_t x) { return _mm256_set1_epi32(x); }
  static inline Type load(const std::int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static inline Type load_some(const std::int32_t* p, Mask m) { return _mm256_maskz_loadu_epi32(m, p); }
  static inline void store(std::int32_t* p, Type x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static inline void stream(std::int32_t* p, Type x) { store(p, x); }
  static inline void store_some(std::int32_t* p, Type x, Mask m) { _mm256_mask_storeu_epi32(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm256_add_epi32(_mm256_mullo_epi32(a, b), c); }
};

template <>
struct Vec<float> {
  using Type = __m512;
  using Half = HalfVec<float>;
  using Stream = LineStream;
  using Mask = __mmask16;
  static constexpr int width = 16, max_vectors = 4;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 8 : 6; }
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(float x) { return _mm512_set1_ps(x); }
  static inline Type load(const float* p) { return _mm512_loadu_ps(p); }
  static inline Type load_some(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static inline void store(float* p, Type x) { _mm512_storeu_ps(p, x); }
  static inline void store_some(float* p, Type x, Mask m) { _mm512_mask_storeu_ps(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
  // (maskz: of the plain forms GCC 12 warns that they use a variable before it is set.)
  static inline float sum(Type x) {
    return sum_of_lanes(_mm256_add_ps(_mm512_maskz_extractf32x8_ps(255, x, 0), _mm512_maskz_extractf32x8_ps(255, x, 1)));
  }
};

template <>
struct Vec<double> {
  using Type = __m512d;
  using Half = HalfVec<double>;
  using Stream = LineStream;
  using Mask = __mmask8;
  static constexpr int width = 8, max_vectors = 4;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 8 : 6; }
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(double x) { return _mm512_set1_pd(x); }
  static inline Type load(const double* p) { return _mm512_loadu_pd(p); }
  static inline Type load_some(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static inline void store(double* p, Type x) { _mm512_storeu_pd(p, x); }
  static inline void store_some(double* p, Type x, Mask m) { _mm512_mask_storeu_pd(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm512_fmadd_pd(a, b, c); }
  static inline double sum(Type x) {
    return sum_of_lanes(_mm256_add_pd(_mm512_maskz_extractf64x4_pd(255, x, 0), _mm512_maskz_extractf64x4_pd(255, x, 1)));
  }
};

template <>
struct Vec<std::int32_t> {
  using Type = __m512i;
  using Half = HalfVec<std::int32_t>;
  using Stream = LineStream;
  using Mask = __mmask16;
  static constexpr int width = 16, max_vectors = 4;
  static constexpr int max_rows(int vectors) { return vectors <= 2 ? 8 : 6; }
  static inline Mask mask(int count) { return Mask((1u << count) - 1); }
  static inline Type splat(std::int32_t x) { return _mm512_set1_epi32(x); }
  static inline Type load(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  static inline Type load_some(const std::int32_t* p, Mask m) { return _mm512_maskz_loadu_epi32(m, p); }
  static inline void store(std::int32_t* p, Type x) { _mm512_storeu_si512(p, x); }
  static inline void store_some(std::int32_t* p, Type x, Mask m) { _mm512_mask_storeu_epi32(p, m, x); }
  static inline Type multiply_add(Type a, Type b, Type c) { return _mm512_add_epi32(_mm512_mullo_epi32(a, b), c); }
};

struct Wide {
  static constexpr index_t width = 16;
  static inline void widen(const float16_bits* from, float* to) {
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  }
  static inline void widen(const bfloat16_bits* from, float* to) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    _mm512_storeu_si512(to, _mm512_slli_epi32(bits, 16));
  }
  static inline void widen(const std::int8_t* from, std::int32_t* to) {
    _mm512_storeu_si512(to, _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static inline void narrow(const float* from, float16_bits* to) {
    const __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
  }
  static inline void narrow(const float* from, bfloat16_bits* to) {
    const __m512 x = _mm512_loadu_ps(from);
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i half = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(high, _mm512_set1_epi32(1)));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16), quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __m512i result = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(result));
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

const Isa avx512_isa = {
    "avx512",
    [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"); },
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
