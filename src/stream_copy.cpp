#include "stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
#define SYCL_MAT_STREAMS 1
#include <immintrin.h>
#endif

namespace sycl_mat {
namespace {

using Copy = void (*)(char*, const char*, std::size_t);

/// dst begins at a multiple of `step`; so does bytes.
constexpr std::size_t step = 256, worth_it = 2048;

void plain(char* dst, const char* src, std::size_t bytes) { std::memcpy(dst, src, bytes); }

#ifdef SYCL_MAT_STREAMS
__attribute__((target("avx512f"))) void by_64(char* dst, const char* src, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += step) {
    const __m512i a = _mm512_loadu_si512(src + i), b = _mm512_loadu_si512(src + i + 64), c = _mm512_loadu_si512(src + i + 128),
                  d = _mm512_loadu_si512(src + i + 192);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i + 64), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i + 128), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i + 192), d);
  }
}

__attribute__((target("avx2"))) inline __m256i load(const char* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
__attribute__((target("avx2"))) void by_32(char* dst, const char* src, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += step / 2) {
    const __m256i a = load(src + i), b = load(src + i + 32), c = load(src + i + 64), d = load(src + i + 96);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i + 32), b);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i + 64), c);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i + 96), d);
  }
}
#endif

Copy best() {
#ifdef SYCL_MAT_STREAMS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return by_64;
  if (__builtin_cpu_supports("avx2")) return by_32;
#endif
  return plain;
}

void line(Copy copy, char* to, const char* from, std::size_t bytes) {
  if (bytes < worth_it) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t head = (step - reinterpret_cast<std::uintptr_t>(to) % step) % step, body = (bytes - head) / step * step;
  std::memcpy(to, from, head);
  copy(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

}  // namespace

void stream_copy(void* dst, std::ptrdiff_t dst_step, const void* src, std::ptrdiff_t src_step, std::size_t bytes, std::size_t lines) {
  static const Copy copy = best();
  for (std::size_t i = 0; i < lines; ++i)
    line(copy, static_cast<char*>(dst) + std::ptrdiff_t(i) * dst_step, static_cast<const char*>(src) + std::ptrdiff_t(i) * src_step, bytes);
#ifdef SYCL_MAT_STREAMS
  _mm_sfence();
#endif
}

}  // namespace sycl_mat
