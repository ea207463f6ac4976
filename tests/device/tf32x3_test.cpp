// float32 products on Hopper's tensor units: exact where they must be, more accurate than multiply-adds everywhere, and the same as those
// where TF32 has no say (infinities, NaN, the largest and the smallest numbers). Skipped on any other device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "context.hpp"
#include "hard_numbers.hpp"
#include "oracle.hpp"

namespace sycl_mat {
namespace {

using test::Case;
using test::Guarded;
using Order = Guarded<float>::Order;

constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

class Tf32x3 : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceInfo& info : devices())
      if (info.architecture == "nvidia-sm90" && info.backend == "cuda") selector_ = info.selector;
    if (selector_.empty()) GTEST_SKIP() << "no device of compute capability 9.0";
  }
  Context& device() { return context(selector_); }
  void multiply(const std::string& kernel, const MatrixView& a, const MatrixView& b, const MatrixView& d, const MatrixView* c = nullptr,
                const Epilogue& epilogue = {}) {
    GemmOptions options;
    options.kernel = kernel;
    options.epilogue = epilogue;
    if (kernel == "tf32x3") options.precision = Precision::tf32;  // also where the planner would not take it
    // One chain of multiply-adds in the order of k: what tf32x3 falls back to.
    if (kernel == "tiled") options.params = TiledChoice{{16, 16, 16, 4, 4, 4}, {}};
    gemm(device(), a, b, c, d, options);
    ASSERT_EQ(last_kernel(), kernel);
  }
  std::string selector_;
  std::mt19937 random_{20261130};
};

/// Shapes around the tiles' edges, deep and flat ones, ones that are shared out along K.
const Case shapes[] = {{1, 1, 1},    {1, 130, 7},    {64, 128, 32},   {128, 128, 128}, {127, 129, 31},  {129, 127, 33}, {130, 258, 1},
                       {3, 5, 4097}, {200, 300, 64}, {257, 255, 100}, {65, 64, 2048},  {128, 256, 160}, {96, 33, 1000}, {300, 513, 96}};

TEST_F(Tf32x3, SmallIntegersAreExactInEveryLayout) {
  std::uniform_int_distribution<int> integer(-8, 8);
  for (const Case& s : shapes)
    for (const Order order_a : {Order::rows, Order::columns})
      for (const Order order_b : {Order::rows, Order::columns})
        for (const int gap : {0, 3, 4}) {
          Guarded<float> a(s.m, s.k, order_a, gap), b(s.k, s.n, order_b, gap), d(s.m, s.n, Order::rows, gap);
          a.fill([&] { return float(integer(random_)); });
          b.fill([&] { return float(integer(random_)); });
          d.fill([&] { return not_a_number; });
          const std::string what = test::text_of(s) + (order_a == Order::rows ? " N" : " T") + (order_b == Order::rows ? "N" : "T") +
                                   " gap " + std::to_string(gap);
          multiply("tf32x3", a.view(), b.view(), d.view());
          int wrong = 0;
          for (std::int64_t i = 0; i < s.m; ++i)
            for (std::int64_t j = 0; j < s.n; ++j) {
              double sum = 0;
              for (std::int64_t k = 0; k < s.k; ++k) sum += double(a.at(i, k)) * b.at(k, j);
              wrong += d.at(i, j) != float(sum);
            }
          ASSERT_EQ(wrong, 0) << what;
          d.expect_only_matrix_written(what);
          a.expect_untouched(what);
          b.expect_untouched(what);
        }
}

TEST_F(Tf32x3, StacksNegativeDistancesAndEpilogue) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{130, 70, 200}, Case{64, 256, 96}}) {
    constexpr int batch = 5;
    Guarded<float> a(s.m, s.k, Order::rows, 2, true, batch), b(s.k, s.n, Order::columns, 1, true, batch),
        c(s.m, s.n, Order::rows, 5, false, batch), d(s.m, s.n, Order::rows, 3, true, batch);
    for (auto* x : {&a, &b, &c, &d}) x->fill([&] { return normal(random_); });
    Epilogue epilogue;
    epilogue.alpha = -1.5;
    epilogue.beta = 0.75;
    multiply("tf32x3", a.view(), b.view(), d.view(), &c.view(), epilogue);
    test::expect_product(a, b, &c, d, -1.5, 0.75, test::text_of(s), batch);
    d.expect_only_matrix_written(test::text_of(s));
  }
}

TEST_F(Tf32x3, BiasAndActivation) {
  const std::int64_t m = 100, n = 140, k = 50;
  std::normal_distribution<float> normal;
  std::vector<float> a(m * k), b(k * n), d(m * n), bias(n);
  for (auto* x : {&a, &b, &bias})
    for (float& y : *x) y = normal(random_);
  Epilogue epilogue;
  epilogue.bias = bias.data();
  epilogue.bias_axis = BiasAxis::column;
  epilogue.activation = Activation::relu;
  multiply("tf32x3", row_major(a.data(), m, k), row_major(b.data(), k, n), row_major(d.data(), m, n), nullptr, epilogue);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = bias[std::size_t(j)];
      for (std::int64_t x = 0; x < k; ++x) sum += double(a[std::size_t(i * k + x)]) * b[std::size_t(x * n + j)];
      ASSERT_NEAR(d[std::size_t(i * n + j)], std::max(0.0, sum), 1e-4);
    }
}

TEST_F(Tf32x3, ErrorsAreSmallerThanThoseOfMultiplyAdds) {
  const std::int64_t m = 256, n = 384;
  for (const std::int64_t k : {32, 64, 96, 128, 192, 256, 384, 512, 1000, 8192})
    for (const auto& [name, kind] : test::kinds) {
      const test::Data data(kind, m, n, k, random_);
      std::vector<float> results[2] = {std::vector<float>(m * n), std::vector<float>(m * n)};
      const char* kernels[] = {"tf32x3", "tiled"};
      for (int which : {0, 1})
        multiply(kernels[which], row_major(const_cast<float*>(data.a.data()), m, k), row_major(const_cast<float*>(data.b.data()), k, n),
                 row_major(results[which].data(), m, n));
      test::expect_smaller_errors(data, results, name, m, n, k);
    }
}

TEST_F(Tf32x3, SpecialValuesGiveWhatMultiplyAddsGive) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{64, 128, 32}, Case{150, 200, 300}, Case{130, 130, 4096}})
    for (const bool in_b : {false, true})
      for (const float special : test::specials) {
        std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), d(std::size_t(s.m * s.n)), e(d);
        for (auto* x : {&a, &b})
          for (float& y : *x) y = normal(random_);
        const std::int64_t line = s.m / 2, depth = s.k - 1;
        // A single special value, and otherwise only zeros in its line: its own effect is not drowned.
        for (std::int64_t x = 0; x < s.k; ++x)
          (in_b ? b[std::size_t(x * s.n + line)] : a[std::size_t(line * s.k + x)]) = x == depth ? special : 0;
        multiply("tf32x3", row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(d.data(), s.m, s.n));
        multiply("tiled", row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(e.data(), s.m, s.n));
        int different = 0, affected = 0;
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t j = 0; j < s.n; ++j) {
            if ((in_b ? j : i) != line) continue;
            ++affected;
            different += !test::same(d[std::size_t(i * s.n + j)], e[std::size_t(i * s.n + j)]);
          }
        ASSERT_GT(affected, 0);
        EXPECT_EQ(different, 0) << "special " << special << (in_b ? " in B " : " in A ") << test::text_of(s);
        for (std::size_t i = 0; i < d.size(); ++i) ASSERT_EQ(std::isfinite(d[i]), std::isfinite(e[i])) << special;
      }
}

TEST_F(Tf32x3, SmallNumbersWithoutLowBitsKeepTheirAccuracy) {
  // Their second part is a denormal TF32 number: flushed to zero, it would cost a relative error of 2⁻¹³.
  for (const float small : {0x1.00081p-115f, -0x1.0008p-116f, 0x1p-126f})
    for (const bool in_b : {false, true}) {
      const std::int64_t m = 70, n = 130, k = 40;
      std::vector<float> a(std::size_t(m * k), 0.0f), b(std::size_t(k * n), 0.0f), d(std::size_t(m * n), not_a_number);
      for (std::int64_t i = 0; i < m; ++i) a[std::size_t(i * k + i % k)] = in_b ? 0x1.234568p40f : small;
      for (std::int64_t x = 0; x < k; ++x)
        for (std::int64_t j = 0; j < n; ++j) b[std::size_t(x * n + j)] = in_b ? small : 0x1.234568p40f;
      multiply("tf32x3", row_major(a.data(), m, k), row_major(b.data(), k, n), row_major(d.data(), m, n));
      const double exact = double(small) * 0x1.234568p40;
      for (const float x : d) ASSERT_NEAR(x, exact, std::fabs(exact) * 0x1p-21) << small << in_b;
    }
}

/// 56 tiles, each shared by a cluster of two blocks (tests/unit/ptx_target_test.cpp sees to it that they are).
constexpr Case in_pairs{897, 780, 640};

TEST_F(Tf32x3, PairsOfBlocksAreExact) {
  const Case s = in_pairs;
  std::uniform_int_distribution<int> integer(-8, 8);
  for (const Order order_a : {Order::rows, Order::columns})
    for (const Order order_b : {Order::rows, Order::columns})
      for (const int gap : {0, 3}) {
        Guarded<float> a(s.m, s.k, order_a, gap), b(s.k, s.n, order_b, gap), d(s.m, s.n, Order::rows, gap);
        for (auto* x : {&a, &b}) x->fill([&] { return float(integer(random_)); });
        d.fill([&] { return not_a_number; });
        multiply("tf32x3", a.view(), b.view(), d.view());
        int wrong = 0;
        for (std::int64_t i = 0; i < s.m; i += i % 128 == 63 || i == s.m - 2 ? 1 : 21)
          for (std::int64_t j = 0; j < s.n; ++j) {
            double sum = 0;
            for (std::int64_t k = 0; k < s.k; ++k) sum += double(a.at(i, k)) * b.at(k, j);
            wrong += d.at(i, j) != float(sum);
          }
        const std::string what = std::string(order_a == Order::rows ? "N" : "T") + (order_b == Order::rows ? "N" : "T");
        ASSERT_EQ(wrong, 0) << what << " gap " << gap;
        d.expect_only_matrix_written(what);
      }
}

TEST_F(Tf32x3, PairsOfBlocksFindSpecialValues) {
  // Whichever block of a pair meets one, in whichever half of the tile's rows.
  const Case s = in_pairs;
  std::normal_distribution<float> normal;
  for (const bool in_b : {false, true})
    for (const float special : test::specials)
      for (const std::int64_t depth : {std::int64_t(0), s.k - 1}) {
        std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), d(std::size_t(s.m * s.n)), e(d);
        for (auto* x : {&a, &b})
          for (float& y : *x) y = normal(random_);
        const std::int64_t lines[] = {10, 100, 383, (in_b ? s.n : s.m) - 1};
        for (const std::int64_t line : lines)
          for (std::int64_t x = 0; x < s.k; ++x)
            (in_b ? b[std::size_t(x * s.n + line)] : a[std::size_t(line * s.k + x)]) = x == depth ? special : 0;
        multiply("tf32x3", row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(d.data(), s.m, s.n));
        multiply("tiled", row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(e.data(), s.m, s.n));
        int different = 0;
        for (const std::int64_t line : lines)
          for (std::int64_t other = 0; other < (in_b ? s.m : s.n); ++other) {
            const std::size_t at = std::size_t(in_b ? other * s.n + line : line * s.n + other);
            different += !test::same(d[at], e[at]);
          }
        EXPECT_EQ(different, 0) << "special " << special << (in_b ? " in B" : " in A") << ", depth " << depth;
      }
}

TEST_F(Tf32x3, ProductsThatOverflowAndStacksOfThem) {
  std::vector<float> a(96 * 64, 0x1p70f), b(64 * 160, 0x1p70f), d(96 * 160);
  multiply("tf32x3", row_major(a.data(), 96, 64), row_major(b.data(), 64, 160), row_major(d.data(), 96, 160));
  for (const float x : d) ASSERT_EQ(x, infinity);
  // Just below the largest number: the big parts alone would overflow.
  a.assign(a.size(), 0);
  for (int i = 0; i < 96; ++i) a[std::size_t(i * 64)] = largest;
  b.assign(b.size(), 1);
  multiply("tf32x3", row_major(a.data(), 96, 64), row_major(b.data(), 64, 160), row_major(d.data(), 96, 160));
  for (const float x : d) ASSERT_EQ(x, largest);
}

TEST_F(Tf32x3, TheSameBitsEveryTime) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{512, 512, 512}, Case{1000, 900, 777}, Case{64, 64, 20000}, Case{1536, 1664, 160}, in_pairs}) {
    std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), first(std::size_t(s.m * s.n)), d(first);
    for (auto* x : {&a, &b})
      for (float& y : *x) y = normal(random_);
    for (int repeat = 0; repeat < 12; ++repeat) {
      std::vector<float>& result = repeat ? d : first;
      multiply("tf32x3", row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(result.data(), s.m, s.n));
      ASSERT_EQ(std::memcmp(result.data(), first.data(), first.size() * 4), 0) << test::text_of(s) << " repeat " << repeat;
    }
  }
}

TEST_F(Tf32x3, LargeShapesAgainstSampledSums) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{2048, 2048, 2048}, Case{1535, 1793, 1025}, Case{4095, 1027, 333}, Case{12800, 64, 576}})
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true}) {
        std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), d(std::size_t(s.m * s.n), not_a_number);
        for (auto* x : {&a, &b})
          for (float& y : *x) y = normal(random_);
        const MatrixView va = trans_a ? row_major(a.data(), s.k, s.m).transposed() : row_major(a.data(), s.m, s.k);
        const MatrixView vb = trans_b ? row_major(b.data(), s.n, s.k).transposed() : row_major(b.data(), s.k, s.n);
        multiply("tf32x3", va, vb, row_major(d.data(), s.m, s.n));
        for (int sample = 0; sample < 4000; ++sample) {
          const std::int64_t i = std::int64_t(random_() % std::uint32_t(s.m)), j = std::int64_t(random_() % std::uint32_t(s.n));
          double exact = 0, magnitude = 0;
          for (std::int64_t x = 0; x < s.k; ++x) {
            const double p =
                double(a[std::size_t(i * va.row_stride + x * va.col_stride)]) * b[std::size_t(x * vb.row_stride + j * vb.col_stride)];
            exact += p;
            magnitude += std::fabs(p);
          }
          ASSERT_LE(std::fabs(d[std::size_t(i * s.n + j)] - exact), 4e-7 * magnitude)
              << test::text_of(s) << trans_a << trans_b << " " << i << " " << j;
        }
      }
}

TEST_F(Tf32x3, ThePlannerTakesItUnlessMultiplyAddsAreAskedFor) {
  std::vector<float> a(512 * 512, 1), d(512 * 512);
  GemmOptions options;
  gemm(device(), row_major(a.data(), 512, 512), row_major(a.data(), 512, 512), nullptr, row_major(d.data(), 512, 512), options);
  EXPECT_EQ(last_kernel(), "tf32x3");
  gemm(device(), row_major(a.data(), 512, 255), row_major(a.data(), 255, 512), nullptr, row_major(d.data(), 512, 512), options);
  EXPECT_NE(last_kernel(), "tf32x3") << "short sums";
  options.precision = Precision::ieee;
  gemm(device(), row_major(a.data(), 512, 512), row_major(a.data(), 512, 512), nullptr, row_major(d.data(), 512, 512), options);
  EXPECT_NE(last_kernel(), "tf32x3");
}

}  // namespace
}  // namespace sycl_mat
