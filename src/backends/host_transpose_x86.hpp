// Transposes in AVX registers: 8 × 8 floats, 4 × 4 doubles. Included, like host_kernel.hpp, after the instruction set was switched on.

namespace sycl_mat::host {
namespace {

constexpr index_t transpose_block(float) { return 8; }
constexpr index_t transpose_block(double) { return 4; }

inline void transpose_in_registers(const float* from, index_t from_ld, float* to, index_t to_ld) {
  __m256 r[8], s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_ld);
  // Pairs, then fours, then halves change places.
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44), r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44), r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

inline void transpose_in_registers(const double* from, index_t from_ld, double* to, index_t to_ld) {
  __m256d r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = _mm256_loadu_pd(from + i * from_ld);
  const __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
  const __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(a, c, 0x20));
  _mm256_storeu_pd(to + to_ld, _mm256_permute2f128_pd(b, d, 0x20));
  _mm256_storeu_pd(to + 2 * to_ld, _mm256_permute2f128_pd(a, c, 0x31));
  _mm256_storeu_pd(to + 3 * to_ld, _mm256_permute2f128_pd(b, d, 0x31));
}

template <class T>
void transpose_by_blocks(const T* from, index_t from_ld, index_t rows, index_t cols, T* to, index_t to_ld) {
  constexpr index_t block = transpose_block(T{});
  const index_t whole_rows = rows / block * block, whole_cols = cols / block * block;
  for (index_t r = 0; r < whole_rows; r += block)
    for (index_t c = 0; c < whole_cols; c += block) transpose_in_registers(from + r * from_ld + c, from_ld, to + c * to_ld + r, to_ld);
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) to[c * to_ld + r] = from[r * from_ld + c];
}

}  // namespace
}  // namespace sycl_mat::host
