// Float32 numbers that are hard to multiply by way of TF32: of which splitting into two parts loses something.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace sycl_mat::test {

/// Data on which a cheaper splitting fails: one scale for a matrix, sums in the tensor units, dropped small parts.
enum class Kind { normal, uniform, wide, scaled_rows_and_columns, scaled_k, cancelling, small, large };

struct Data {
  std::vector<float> a, b;
  Data(Kind kind, std::int64_t m, std::int64_t n, std::int64_t k, std::mt19937& random) : a(std::size_t(m * k)), b(std::size_t(k * n)) {
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform;
    std::uniform_int_distribution<int> exponent(-20, 20);
    std::vector<int> rows(static_cast<std::size_t>(m)), columns(static_cast<std::size_t>(n)), depths(static_cast<std::size_t>(k));
    for (auto* x : {&rows, &columns, &depths})
      for (int& e : *x) e = exponent(random);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t x = 0; x < k; ++x) {
        float& v = a[std::size_t(i * k + x)];
        v = kind == Kind::uniform ? uniform(random) : normal(random);
        if (kind == Kind::wide) v = std::ldexp(v, exponent(random));
        if (kind == Kind::scaled_rows_and_columns) v = std::ldexp(v, rows[std::size_t(i)]);
        if (kind == Kind::scaled_k) v = std::ldexp(v, depths[std::size_t(x)]);
        if (kind == Kind::cancelling && x >= k / 2) v = -a[std::size_t(i * k + x - k / 2)];
        if (kind == Kind::small) v *= 0x1p-50f;
        if (kind == Kind::large) v *= 0x1p55f;
      }
    for (std::int64_t x = 0; x < k; ++x)
      for (std::int64_t j = 0; j < n; ++j) {
        float& v = b[std::size_t(x * n + j)];
        v = kind == Kind::uniform ? uniform(random) : normal(random);
        if (kind == Kind::wide) v = std::ldexp(v, exponent(random));
        if (kind == Kind::scaled_rows_and_columns) v = std::ldexp(v, columns[std::size_t(j)]);
        if (kind == Kind::scaled_k) v = std::ldexp(v, -depths[std::size_t(x)]);
        if (kind == Kind::cancelling && x >= k / 2) v = b[std::size_t((x - k / 2) * n + j)] * (1 + 0x1p-20f * normal(random));
        if (kind == Kind::small) v *= 0x1p-50f;
        if (kind == Kind::large) v *= 0x1p55f;
      }
  }
};

inline constexpr std::pair<const char*, Kind> kinds[] = {
    {"normal", Kind::normal},     {"uniform", Kind::uniform},
    {"wide", Kind::wide},         {"rows and columns scaled", Kind::scaled_rows_and_columns},
    {"k scaled", Kind::scaled_k}, {"cancelling", Kind::cancelling},
    {"small", Kind::small},       {"large", Kind::large}};

/// Errors of both kernels' results relative to Σ|a·b|, of a sample of rows and columns; printed; the first kernel's are the smaller ones,
/// except for sums so short that the planner leaves them to multiply-adds.
inline void expect_smaller_errors(const Data& data, const std::vector<float> (&results)[2], const char* name, std::int64_t m,
                                  std::int64_t n, std::int64_t k) {
  double worst[2] = {}, squares[2] = {};
  int count = 0;
  for (std::int64_t i = 0; i < m; i += 3)
    for (std::int64_t j = 0; j < n; j += 5, ++count) {
      double exact = 0, magnitude = 0;
      for (std::int64_t x = 0; x < k; ++x) {
        const double p = double(data.a[std::size_t(i * k + x)]) * data.b[std::size_t(x * n + j)];
        exact += p;
        magnitude += std::fabs(p);
      }
      for (int which : {0, 1}) {
        const double error = std::fabs(results[which][std::size_t(i * n + j)] - exact) / magnitude;
        if (!(error <= worst[which])) worst[which] = error;
        squares[which] += error * error;
      }
    }
  std::printf("k %5lld %-24s largest error %.1e (multiply-adds %.1e), root mean square %.1e (%.1e)\n", static_cast<long long>(k), name,
              worst[0], worst[1], std::sqrt(squares[0] / count), std::sqrt(squares[1] / count));
  if (k < 256) return;
  EXPECT_LE(worst[0], worst[1]) << name << " k " << k;
  EXPECT_LE(squares[0], squares[1]) << name << " k " << k;
}

/// What TF32 cannot hold. The last ones have bits below 2⁻¹³⁶, which TF32's second part cannot hold.
inline const float specials[] = {std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(),
                                 std::bit_cast<float>(0x7fffffffu),
                                 std::bit_cast<float>(0x7f800001u),
                                 std::numeric_limits<float>::max(),
                                 -std::numeric_limits<float>::max(),
                                 std::bit_cast<float>(0x7f7ff000u),
                                 std::numeric_limits<float>::denorm_min(),
                                 0x1.000002p-126f,
                                 -0x1.fffffep-114f,
                                 -0x1.8p-141f};

/// Bits, except that one NaN is as good as another.
inline bool same(float x, float y) { return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, 4) == 0; }

}  // namespace sycl_mat::test
