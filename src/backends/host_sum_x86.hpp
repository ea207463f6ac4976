// The sum of an AVX register's lanes. Included, like host_kernel.hpp, after the instruction set was switched on.

namespace sycl_mat::host {
namespace {

inline float sum_of_lanes(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline double sum_of_lanes(__m256d x) {
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

}  // namespace
}  // namespace sycl_mat::host
