// float16 and bfloat16 products on Hopper's tensor units: exact where they must be, and no worse than multiply-adds in float32 beyond what
// the last rounding hides. Skipped on any other device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/narrow_types.hpp"
#include "context.hpp"
#include "oracle.hpp"

namespace sycl_mat {
namespace {

using test::Case;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A matrix of 16-bit numbers (or a stack) inside a larger buffer of NaNs, which must stay as they are.
class Narrow {
 public:
  Narrow(DType type, std::int64_t rows, std::int64_t cols, bool by_columns = false, std::int64_t gap = 0, bool flip = false,
         std::int64_t batch = 1)
      : batch_(batch) {
    const std::int64_t lines = by_columns ? cols : rows, length = by_columns ? rows : cols, ld = length + gap, one = lines * ld + gap;
    buffer_.assign(std::size_t(2 * margin + one * batch), canary);
    view_.data = buffer_.data() + margin + (flip && lines > 0 ? (lines - 1) * ld : 0);
    view_.dtype = type;
    view_.rows = rows;
    view_.cols = cols;
    (by_columns ? view_.col_stride : view_.row_stride) = flip ? -ld : ld;
    (by_columns ? view_.row_stride : view_.col_stride) = 1;
    if (batch != 1) view_.batch = {{batch, one}};
  }
  const MatrixView& view() const { return view_; }
  float at(std::int64_t i, std::int64_t j, std::int64_t g = 0) const {
    const std::uint16_t bits = *place(i, j, g);
    return view_.dtype == DType::float16 ? float(float16_bits{bits}) : float(bfloat16_bits{bits});
  }
  void set(std::int64_t i, std::int64_t j, float x, std::int64_t g = 0) { *place(i, j, g) = bits_of(x); }
  std::uint16_t bits_of(float x) const { return view_.dtype == DType::float16 ? to_float16(x).bits : to_bfloat16(x).bits; }
  template <class Make>
  void fill(Make make) {
    for (std::int64_t g = 0; g < batch_; ++g)
      for (std::int64_t i = 0; i < view_.rows; ++i)
        for (std::int64_t j = 0; j < view_.cols; ++j) set(i, j, make(), g);
    before_ = buffer_;
  }
  void expect_untouched(const std::string& what) const { EXPECT_EQ(buffer_, before_) << what << ": an input was written"; }
  void expect_only_matrix_written(const std::string& what) {
    std::vector<std::uint16_t> now = buffer_;
    for (std::int64_t g = 0; g < batch_; ++g)
      for (std::int64_t i = 0; i < view_.rows; ++i)
        for (std::int64_t j = 0; j < view_.cols; ++j) now[std::size_t(place(i, j, g) - buffer_.data())] = canary;
    for (const std::uint16_t x : now)
      if (x != canary) {
        ADD_FAILURE() << what << ": something outside the result was written";
        return;
      }
  }
  const std::vector<std::uint16_t>& buffer() const { return buffer_; }

 private:
  static constexpr std::int64_t margin = 256;
  static constexpr std::uint16_t canary = 0x7fed;  // a NaN of either type: read by mistake, it poisons the result
  std::uint16_t* place(std::int64_t i, std::int64_t j, std::int64_t g) const {
    const std::int64_t matrix = view_.batch.empty() ? 0 : g * view_.batch[0].stride;
    return static_cast<std::uint16_t*>(view_.data) + matrix + i * view_.row_stride + j * view_.col_stride;
  }
  std::int64_t batch_;
  MatrixView view_;
  std::vector<std::uint16_t> buffer_, before_;
};

/// Half the distance of two neighbouring numbers, relative to the larger, and the smallest number.
double last_bit(DType type) { return type == DType::float16 ? 0x1p-11 : 0x1p-8; }
double smallest(DType type) { return type == DType::float16 ? 0x1p-24 : 0x1p-133; }

class Wgmma16 : public ::testing::TestWithParam<DType> {
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
    gemm(device(), a, b, c, d, options);
    ASSERT_EQ(last_kernel(), kernel);
  }
  Narrow matrix(std::int64_t rows, std::int64_t cols, bool by_columns = false, std::int64_t gap = 0, bool flip = false,
                std::int64_t batch = 1) const {
    return {GetParam(), rows, cols, by_columns, gap, flip, batch};
  }
  /// Σ a·b in float64 and Σ |a·b|.
  struct Sum {
    double exact = 0, magnitude = 0;
  };
  static Sum sum_of(const Narrow& a, const Narrow& b, std::int64_t i, std::int64_t j, std::int64_t g = 0) {
    Sum s;
    for (std::int64_t x = 0; x < a.view().cols; ++x) {
      const double product = double(a.at(i, x, g)) * b.at(x, j, g);
      s.exact += product;
      s.magnitude += std::fabs(product);
    }
    return s;
  }
  /// The result's own rounding, and a sum of k terms in float32.
  double bound(std::int64_t k, double exact, double magnitude) const {
    return last_bit(GetParam()) * std::fabs(exact) + smallest(GetParam()) + test::bound<float>(k, magnitude);
  }
  std::string selector_;
  std::mt19937 random_{20261130};
};

/// A·B of small integers, row by row.
std::vector<int> integer_product(const Narrow& a, const Narrow& b) {
  const std::int64_t m = a.view().rows, n = b.view().cols, k = a.view().cols;
  std::vector<int> row(static_cast<std::size_t>(k)), columns(std::size_t(n * k)), product(std::size_t(m * n));
  for (std::int64_t x = 0; x < k; ++x)
    for (std::int64_t j = 0; j < n; ++j) columns[std::size_t(j * k + x)] = int(b.at(x, j));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t x = 0; x < k; ++x) row[std::size_t(x)] = int(a.at(i, x));
    for (std::int64_t j = 0; j < n; ++j) {
      int sum = 0;
      for (std::int64_t x = 0; x < k; ++x) sum += row[std::size_t(x)] * columns[std::size_t(j * k + x)];
      product[std::size_t(i * n + j)] = sum;
    }
  }
  return product;
}

/// Shapes around the tiles' edges, deep and flat ones, ones that are shared out along K.
const Case shapes[] = {{1, 1, 1},    {1, 130, 7},    {64, 128, 64},   {128, 256, 64}, {127, 255, 63},  {129, 257, 65}, {130, 258, 1},
                       {3, 5, 4097}, {200, 300, 64}, {257, 255, 100}, {65, 64, 2048}, {128, 256, 320}, {96, 33, 1000}, {300, 513, 192}};

TEST_P(Wgmma16, SmallIntegersAreExactInEveryLayout) {
  std::uniform_int_distribution<int> integer(-1, 1), few(0, 7);
  for (const Case& s : shapes)
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true})
        for (const int gap : {0, 3, 4, 8}) {
          // Few enough of them that every sum is a number of the type.
          Narrow a = matrix(s.m, s.k, trans_a, gap), b = matrix(s.k, s.n, trans_b, gap), d = matrix(s.m, s.n, false, gap);
          a.fill([&] { return float(s.k > 500 && few(random_) ? 0 : integer(random_)); });
          b.fill([&] { return float(integer(random_)); });
          const std::string what = test::text_of(s) + (trans_a ? " T" : " N") + (trans_b ? "T" : "N") + " gap " + std::to_string(gap);
          multiply("wgmma16", a.view(), b.view(), d.view());
          const auto exact = integer_product(a, b);
          int wrong = 0;
          for (std::int64_t i = 0; i < s.m; ++i)
            for (std::int64_t j = 0; j < s.n; ++j) wrong += !(d.at(i, j) == float(exact[std::size_t(i * s.n + j)]));
          ASSERT_EQ(wrong, 0) << what;
          d.expect_only_matrix_written(what);
          a.expect_untouched(what);
          b.expect_untouched(what);
        }
}

TEST_P(Wgmma16, StacksNegativeDistancesAndEpilogue) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{130, 70, 200}, Case{64, 256, 96}, Case{128, 512, 128}})
    for (const std::int64_t gap : {0, 3, 8}) {
      constexpr int batch = 5;
      Narrow a = matrix(s.m, s.k, false, gap, true, batch), b = matrix(s.k, s.n, true, gap, true, batch),
             c = matrix(s.m, s.n, false, 5, false, batch), d = matrix(s.m, s.n, false, gap, true, batch);
      for (auto* x : {&a, &b, &c}) x->fill([&] { return normal(random_); });
      Epilogue epilogue;
      epilogue.alpha = -1.5;
      epilogue.beta = 0.75;
      multiply("wgmma16", a.view(), b.view(), d.view(), &c.view(), epilogue);
      int wrong = 0;
      for (int g = 0; g < batch; ++g)
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t j = 0; j < s.n; ++j) {
            const Sum sum = sum_of(a, b, i, j, g);
            const double exact = -1.5 * sum.exact + 0.75 * c.at(i, j, g);
            const double magnitude = 1.5 * sum.magnitude + 0.75 * std::fabs(c.at(i, j, g));
            wrong += !(std::fabs(d.at(i, j, g) - exact) <= bound(s.k, exact, magnitude));
          }
      EXPECT_EQ(wrong, 0) << test::text_of(s) << " gap " << gap;
      d.expect_only_matrix_written(test::text_of(s));
    }
}

TEST_P(Wgmma16, BiasAndActivations) {
  const std::int64_t m = 100, n = 141, k = 50;
  std::normal_distribution<float> normal;
  Narrow a = matrix(m, k), b = matrix(k, n);
  for (auto* x : {&a, &b}) x->fill([&] { return normal(random_) / 4; });
  for (const bool rows : {false, true})
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::sigmoid}) {
      std::vector<float> bias(std::size_t(rows ? m : n));
      for (float& x : bias) x = normal(random_);
      Narrow d = matrix(m, n);
      Epilogue epilogue;
      epilogue.bias = bias.data();
      epilogue.bias_axis = rows ? BiasAxis::row : BiasAxis::column;
      epilogue.activation = activation;
      multiply("wgmma16", a.view(), b.view(), d.view(), nullptr, epilogue);
      int wrong = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const Sum sum = sum_of(a, b, i, j);
          double x = sum.exact + bias[std::size_t(rows ? i : j)];
          if (activation == Activation::relu) x = std::max(0.0, x);
          if (activation == Activation::gelu) x = x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
          if (activation == Activation::sigmoid) x = 1 / (1 + std::exp(-x));
          wrong += !(std::fabs(d.at(i, j) - x) <= bound(k, x, 4 * (sum.magnitude + 4)));
        }
      EXPECT_EQ(wrong, 0) << rows << " activation " << int(activation);
    }
}

TEST_P(Wgmma16, SpecialValuesSpreadAsIeeeSays) {
  const float big = GetParam() == DType::float16 ? 65504.0f : 0x1.fep127f;
  const std::int64_t m = 130, n = 200, k = 300;
  std::uniform_real_distribution<float> positive(0.5f, 1.0f);
  for (const float special : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), big, float(smallest(GetParam()))})
    for (const bool in_b : {false, true}) {
      Narrow a = matrix(m, k), b = matrix(k, n), d = matrix(m, n);
      for (auto* x : {&a, &b}) x->fill([&] { return positive(random_); });
      // A line of zeros but for the special value: its own effect is not drowned.
      const std::int64_t line = 77;
      for (std::int64_t x = 0; x < k; ++x) in_b ? b.set(x, line, x == k - 1 ? special : 0.0f) : a.set(line, x, x == k - 1 ? special : 0.0f);
      multiply("wgmma16", a.view(), b.view(), d.view());
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const float got = d.at(i, j);
          if ((in_b ? j : i) != line) {
            ASSERT_TRUE(got > 0 && std::isfinite(got)) << special << " " << i << " " << j << " " << got;
            continue;
          }
          const double exact = double(special) * (in_b ? a.at(i, k - 1) : b.at(k - 1, j));
          if (std::isnan(special))
            ASSERT_TRUE(std::isnan(got)) << i << " " << j;
          else if (std::isinf(special))
            ASSERT_EQ(got, special) << i << " " << j;
          else
            ASSERT_LE(std::fabs(got - exact), last_bit(GetParam()) * std::fabs(exact) + smallest(GetParam()) / 2) << special;
        }
    }
  // Opposite infinities, infinity times zero, and sums beyond the largest number.
  Narrow a = matrix(64, 64), b = matrix(64, 128), d = matrix(64, 128);
  for (auto* x : {&a, &b}) x->fill([] { return 1.0f; });
  a.set(3, 5, infinity), a.set(3, 40, -infinity), a.set(9, 1, infinity), b.set(1, 7, 0);
  for (std::int64_t x = 0; x < 64; ++x) a.set(20, x, big);
  multiply("wgmma16", a.view(), b.view(), d.view());
  for (std::int64_t j = 0; j < 128; ++j) {
    EXPECT_TRUE(std::isnan(d.at(3, j))) << j;
    EXPECT_TRUE(j == 7 ? std::isnan(d.at(9, j)) : d.at(9, j) == infinity) << j;
    EXPECT_EQ(d.at(20, j), infinity) << j;
    EXPECT_EQ(d.at(4, j), j == 7 ? 63 : 64) << j;
  }
}

/// Sums that the last rounding does not hide: the second half of the terms takes away the first, but for a small rest.
TEST_P(Wgmma16, ErrorsAgainstThoseOfMultiplyAdds) {
  enum class Kind { normal, uniform, wide, cancelling };
  const std::pair<const char*, Kind> kinds[] = {
      {"normal", Kind::normal}, {"uniform", Kind::uniform}, {"wide", Kind::wide}, {"cancelling", Kind::cancelling}};
  const std::int64_t m = 256, n = 384;
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  std::uniform_int_distribution<int> exponent(-3, 3);
  for (const std::int64_t k : {64, 256, 1024, 4096, 8192, 16384, 65536})
    for (const auto& [name, kind] : kinds) {
      Narrow a = matrix(m, k), b = matrix(k, n);
      const auto number = [&, kind = kind] {
        if (kind == Kind::wide) return std::ldexp(normal(random_), exponent(random_));
        return kind == Kind::normal ? normal(random_) : uniform(random_);
      };
      a.fill(number), b.fill(number);
      if (kind == Kind::cancelling) {
        for (std::int64_t x = k / 2; x < k; ++x) {
          for (std::int64_t i = 0; i < m; ++i) a.set(i, x, -a.at(i, x - k / 2));
          for (std::int64_t j = 0; j < n; ++j) b.set(x, j, b.at(x - k / 2, j));
        }
      }
      const char* kernels[] = {"wgmma16", "tiled"};
      double worst[2] = {}, squares[2] = {}, beyond[2] = {};
      int count = 0;
      Narrow results[2] = {matrix(m, n), matrix(m, n)};
      for (const int which : {0, 1}) multiply(kernels[which], a.view(), b.view(), results[which].view());
      for (std::int64_t i = 0; i < m; i += 9)
        for (std::int64_t j = 0; j < n; j += 7) {
          const Sum sum = sum_of(a, b, i, j);
          ++count;
          for (const int which : {0, 1}) {
            const double error = std::fabs(results[which].at(i, j) - sum.exact);
            EXPECT_LE(error, bound(k, sum.exact, sum.magnitude)) << kernels[which] << " " << name << " k " << k;
            worst[which] = std::max(worst[which], error / sum.magnitude);
            squares[which] += error * error / (sum.magnitude * sum.magnitude);
            // What is beyond half the distance to the next number.
            beyond[which] = std::max(beyond[which], (error - last_bit(GetParam()) * std::fabs(sum.exact)) / sum.magnitude);
          }
        }
      std::printf(
          "%s k %5lld %-10s largest error %.2e (multiply-adds %.2e), root mean square %.2e (%.2e), beyond the rounding %.1e (%.1e)\n",
          std::string(name_of(GetParam())).c_str(), static_cast<long long>(k), name, worst[0], worst[1], std::sqrt(squares[0] / count),
          std::sqrt(squares[1] / count), beyond[0], beyond[1]);
      // No larger than multiply-adds', but for a hundredth of what rounding a result as large as Σ|a·b| costs.
      EXPECT_LE(std::sqrt(squares[0] / count), 1.02 * std::sqrt(squares[1] / count) + 0.01 * last_bit(DType::float16)) << name << " " << k;
    }
}

TEST_P(Wgmma16, TheSameBitsEveryTime) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{512, 512, 512}, Case{1000, 900, 777}, Case{64, 64, 20000}, Case{1536, 1664, 160}}) {
    Narrow a = matrix(s.m, s.k), b = matrix(s.k, s.n), first = matrix(s.m, s.n);
    for (auto* x : {&a, &b}) x->fill([&] { return normal(random_); });
    multiply("wgmma16", a.view(), b.view(), first.view());
    for (int repeat = 1; repeat < 10; ++repeat) {
      Narrow d = matrix(s.m, s.n);
      multiply("wgmma16", a.view(), b.view(), d.view());
      ASSERT_EQ(d.buffer(), first.buffer()) << test::text_of(s) << " repeat " << repeat;
    }
  }
}

TEST_P(Wgmma16, LargeShapesAgainstSampledSums) {
  std::normal_distribution<float> normal;
  std::vector<float> pool(1 << 16);
  for (float& x : pool) x = normal(random_);
  for (const Case& s : {Case{2048, 2048, 2048}, Case{1535, 1793, 1025}, Case{4095, 1027, 333}, Case{3200, 64, 576}, Case{4096, 1536, 264},
                        Case{2048, 2304, 8200}})
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true}) {
        Narrow a = matrix(s.m, s.k, trans_a), b = matrix(s.k, s.n, trans_b), d = matrix(s.m, s.n);
        std::size_t at = random_() % 4096;
        for (auto* x : {&a, &b}) x->fill([&] { return pool[at = (at + 1) % 65521]; });
        multiply("wgmma16", a.view(), b.view(), d.view());
        for (int sample = 0; sample < 2000; ++sample) {
          const std::int64_t i = std::int64_t(random_() % std::uint32_t(s.m)), j = std::int64_t(random_() % std::uint32_t(s.n));
          const Sum sum = sum_of(a, b, i, j);
          ASSERT_LE(std::fabs(d.at(i, j) - sum.exact), last_bit(GetParam()) * std::fabs(sum.exact) + 1e-6 * sum.magnitude)
              << test::text_of(s) << trans_a << trans_b << " " << i << " " << j;
        }
      }
}

TEST_P(Wgmma16, WithoutTermsOnlyTheRestIsLeft) {
  Narrow a = matrix(70, 0), b = matrix(0, 90), c = matrix(70, 90), d = matrix(70, 90);
  c.fill([] { return 3.0f; });
  Epilogue epilogue;
  epilogue.beta = 2;
  multiply("wgmma16", a.view(), b.view(), d.view(), &c.view(), epilogue);
  for (std::int64_t i = 0; i < 70; ++i)
    for (std::int64_t j = 0; j < 90; ++j) ASSERT_EQ(d.at(i, j), 6);
}

TEST_P(Wgmma16, ThePlannerTakesItUnlessMultiplyAddsAreAskedFor) {
  Narrow a = matrix(512, 512), d = matrix(512, 512);
  a.fill([] { return 1.0f; });
  GemmOptions options;
  gemm(device(), a.view(), a.view(), nullptr, d.view(), options);
  EXPECT_EQ(last_kernel(), "wgmma16");
  options.precision = Precision::ieee;
  gemm(device(), a.view(), a.view(), nullptr, d.view(), options);
  EXPECT_NE(last_kernel(), "wgmma16");
}

INSTANTIATE_TEST_SUITE_P(Types, Wgmma16, ::testing::Values(DType::float16, DType::bfloat16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace sycl_mat
