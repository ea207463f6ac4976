// Products on the tensor units of NVIDIA devices from compute capability 8.0 on: exact where they must be, float32 more accurate than
// multiply-adds and the same as those where TF32 has no say, 16-bit numbers summed as well as in float32. Skipped on any other device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "context.hpp"
#include "hard_numbers.hpp"
#include "kernel_harness.hpp"
#include "ptx_target.hpp"

namespace sycl_mat {
namespace {

using harness::Case;

constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

class MmaSync : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceInfo& info : devices())
      if (compute_capability(info) >= 80 && selector_.empty()) selector_ = info.selector;
    if (selector_.empty()) GTEST_SKIP() << "no NVIDIA device of compute capability 8.0 or newer";
    if (const std::string reason = why_no_mma_sync(); !reason.empty()) GTEST_SKIP() << reason;
    choose_ptx_target();
    context(selector_);
  }
  /// Through the library, forced.
  void multiply(const std::string& kernel, const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmOptions options;
    options.kernel = kernel;
    if (kernel == "mma_sync") options.precision = Precision::tf32;  // also where the planner would not take it
    // One chain of multiply-adds in the order of k: what mma_sync falls back to.
    if (kernel == "tiled") options.params = TiledChoice{{16, 16, 16, 4, 4, 4}, {}};
    gemm(context(selector_), a, b, nullptr, d, options);
    ASSERT_EQ(last_kernel(), kernel);
  }
  void multiply(const std::string& kernel, std::vector<float>& a, std::vector<float>& b, std::vector<float>& d, const Case& s) {
    multiply(kernel, row_major(a.data(), s.m, s.k), row_major(b.data(), s.k, s.n), row_major(d.data(), s.m, s.n));
  }
  /// Through the kernel alone, with gaps and memory that must not be touched, every element checked.
  void check(Case c) {
    if (c.dtype == DType::float32) c.precision = Precision::tf32;
    harness::harness().check("mma_sync", {}, c);
  }
  std::string selector_;
  std::mt19937 random_{20261130};
};

/// Shapes around the edges of the tiles, deep and flat ones, ones that blocks share along K; for each size of tile one that gets it.
const Case shapes[] = {{1, 1, 1},      {1, 130, 7},    {64, 128, 32},  {128, 128, 128}, {127, 129, 31},
                       {129, 127, 33}, {130, 258, 1},  {3, 5, 1030},   {40, 50, 0},     {200, 300, 64},
                       {65, 64, 520},  {300, 30, 160}, {20, 256, 100}, {96, 33, 250},   {140, 513, 48}};

struct Layout {
  DType type;
  bool trans_a, trans_b;
};
std::string layout_name(const testing::TestParamInfo<Layout>& info) {
  return std::string(name_of(info.param.type)) + (info.param.trans_a ? "_T" : "_N") + (info.param.trans_b ? "T" : "N");
}
class MmaSyncLayouts : public MmaSync, public testing::WithParamInterface<Layout> {};

TEST_P(MmaSyncLayouts, SmallIntegersAreExact) {
  const auto [type, trans_a, trans_b] = GetParam();
  for (const Case& shape : shapes)
    for (const index_t gap : {0, 1, 2, 8}) {
      Case c = shape;
      c.dtype = type, c.trans_a = trans_a, c.trans_b = trans_b, c.gap = gap, c.integers = true;
      check(c);
      if (HasFatalFailure()) return;
    }
}
INSTANTIATE_TEST_SUITE_P(All, MmaSyncLayouts,
                         testing::Values(Layout{DType::float32, false, false}, Layout{DType::float32, false, true},
                                         Layout{DType::float32, true, false}, Layout{DType::float32, true, true},
                                         Layout{DType::float64, false, false}, Layout{DType::float64, false, true},
                                         Layout{DType::float64, true, false}, Layout{DType::float64, true, true},
                                         Layout{DType::float16, false, false}, Layout{DType::float16, false, true},
                                         Layout{DType::float16, true, false}, Layout{DType::float16, true, true},
                                         Layout{DType::bfloat16, false, false}, Layout{DType::bfloat16, true, true}),
                         layout_name);

TEST_F(MmaSync, WholeEpilogueStacksAndNegativeDistances) {
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    Case c{.m = 70, .n = 135, .k = 40, .dtype = type, .alpha = -1.5, .beta = 0.75, .batch_outer = 2, .batch_inner = 3, .gap = 3};
    check(c);
    c.backwards = true, c.trans_b = true, c.bias = BiasAxis::column, c.activation = Activation::relu;
    check(c);
    c.beta = 0, c.bias = BiasAxis::row, c.broadcast_a = true, c.activation = Activation::gelu;
    check(c);
    check({.m = 64, .n = 64, .k = 3000, .dtype = type, .alpha = 2, .beta = 1, .bias = BiasAxis::row, .batch_outer = 2});
  }
}

TEST_F(MmaSync, Float64IsAsGoodAsMultiplyAddsAndTheSameEveryTime) {
  std::uniform_real_distribution<double> number(-1, 1);
  for (const bool trans : {false, true})
    for (const Case& s : {Case{1535, 1793, 1025}, Case{12800, 64, 576}, Case{513, 512, 4096}, Case{128, 128, 30000}}) {
      std::vector<double> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), d(std::size_t(s.m * s.n)), again(d);
      for (auto* x : {&a, &b})
        for (double& y : *x) y = number(random_);
      const MatrixView va = trans ? row_major(a.data(), s.k, s.m).transposed() : row_major(a.data(), s.m, s.k);
      const MatrixView vb = trans ? row_major(b.data(), s.n, s.k).transposed() : row_major(b.data(), s.k, s.n);
      multiply("mma_sync", va, vb, row_major(d.data(), s.m, s.n));
      multiply("mma_sync", va, vb, row_major(again.data(), s.m, s.n));
      ASSERT_EQ(d, again);
      for (int sample = 0; sample < 1000; ++sample) {
        const index_t i = index_t(random_() % std::uint32_t(s.m)), j = index_t(random_() % std::uint32_t(s.n));
        long double exact = 0, magnitude = 0;
        for (index_t x = 0; x < s.k; ++x) {
          const long double p = static_cast<long double>(a[std::size_t(i * va.row_stride + x * va.col_stride)]) *
                                b[std::size_t(x * vb.row_stride + j * vb.col_stride)];
          exact += p;
          magnitude += std::fabs(p);
        }
        ASSERT_LE(std::fabs(d[std::size_t(i * s.n + j)] - exact), 4e-15L * magnitude) << s.text() << trans;
      }
    }
}

TEST_F(MmaSync, InfinitiesNansAndSubnormalFloat64) {
  const index_t m = 70, n = 80, k = 100;
  std::vector<double> a(std::size_t(m * k), 1.0), b(std::size_t(k * n), 2.0), d(std::size_t(m * n)), e(d);
  const double infinite = infinity, tiny = 0x1p-1074;
  a[3 * k + 5] = infinite;
  a[4 * k + 5] = -infinite, a[4 * k + 99] = infinite;
  a[6 * k + 7] = not_a_number;
  for (index_t x = 0; x < k; ++x) a[std::size_t(8 * k + x)] = x == 9 ? 1 : 0;
  for (index_t j = 0; j < n; j += 2) b[std::size_t(9 * n + j)] = tiny;
  for (index_t x = 0; x < k; ++x) a[std::size_t(9 * k + x)] = std::numeric_limits<double>::max();
  multiply("mma_sync", row_major(a.data(), m, k), row_major(b.data(), k, n), row_major(d.data(), m, n));
  multiply("tiled", row_major(a.data(), m, k), row_major(b.data(), k, n), row_major(e.data(), m, n));
  int special = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    ASSERT_TRUE(d[i] == e[i] || (std::isnan(d[i]) && std::isnan(e[i]))) << i << ": " << d[i] << ", " << e[i];
    special += !std::isfinite(d[i]);
  }
  EXPECT_EQ(special, 4 * n);
  EXPECT_EQ(d[8 * n], tiny);
}

class MmaSyncLarge : public MmaSync, public testing::WithParamInterface<DType> {};
TEST_P(MmaSyncLarge, ShapesAgainstSampledSums) {
  const DType type = GetParam();
  std::uniform_real_distribution<float> number(-1, 1);
  for (const bool trans : {false, true})
    for (const Case& s : {Case{2048, 2048, 512}, Case{1535, 1793, 1025}, Case{300, 4097, 4093}, Case{12800, 64, 576}, Case{4000, 32, 300},
                          Case{24, 9000, 270}, Case{512, 512, 4096}, Case{128, 128, 30000}}) {
      std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n));
      for (auto* x : {&a, &b})
        for (float& y : *x) y = number(random_);
      std::vector<std::uint16_t> a16, b16, d16;
      std::vector<float> d(std::size_t(s.m * s.n), not_a_number);
      if (type == DType::float16) {
        for (auto [from, to] : {std::pair{&a, &a16}, std::pair{&b, &b16}})
          for (float& x : *from) {
            to->push_back(harness::float_to_half(x));
            x = harness::half_to_float(to->back());
          }
        d16.assign(d.size(), 0x7e00);
      }
      const auto view = [&](std::vector<float>& x, std::vector<std::uint16_t>& x16, index_t rows, index_t cols, bool turned) {
        MatrixView v = turned ? row_major(x.data(), cols, rows).transposed() : row_major(x.data(), rows, cols);
        if (type == DType::float16) v.data = x16.data(), v.dtype = type;
        return v;
      };
      const MatrixView va = view(a, a16, s.m, s.k, trans), vb = view(b, b16, s.k, s.n, trans);
      multiply("mma_sync", va, vb, view(d, d16, s.m, s.n, false));
      const std::string what = s.text() + (trans ? " TT " : " NN ") + std::string(name_of(type));
      int wrong = 0;
      for (int sample = 0; sample < 2000; ++sample) {
        const index_t i = index_t(random_() % std::uint32_t(s.m)), j = index_t(random_() % std::uint32_t(s.n));
        double exact = 0, magnitude = 0;
        for (index_t x = 0; x < s.k; ++x) {
          const double p =
              double(a[std::size_t(i * va.row_stride + x * va.col_stride)]) * b[std::size_t(x * vb.row_stride + j * vb.col_stride)];
          exact += p;
          magnitude += std::fabs(p);
        }
        const auto at = std::size_t(i * s.n + j);
        const double result = type == DType::float16 ? harness::half_to_float(d16[at]) : d[at];
        wrong += !(std::fabs(result - exact) <= 4e-7 * magnitude + (type == DType::float16 ? 0x1p-11 * std::fabs(exact) : 0));
      }
      ASSERT_EQ(wrong, 0) << what;
    }
}
INSTANTIATE_TEST_SUITE_P(Types, MmaSyncLarge, testing::Values(DType::float32, DType::float16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_F(MmaSync, Float32ErrorsAreSmallerThanThoseOfMultiplyAdds) {
  const index_t m = 256, n = 384;
  for (const index_t k : {64, 256, 1000, 8192})
    for (const auto& [name, kind] : test::kinds) {
      test::Data data(kind, m, n, k, random_);
      std::vector<float> results[2] = {std::vector<float>(m * n), std::vector<float>(m * n)};
      const char* kernels[] = {"mma_sync", "tiled"};
      for (int which : {0, 1}) multiply(kernels[which], data.a, data.b, results[which], {m, n, k});
      test::expect_smaller_errors(data, results, name, m, n, k);
    }
}

TEST_F(MmaSync, SumsOf16BitNumbersAreAsGoodAsFloat32) {
  // alpha makes what is left of a long sum large enough for float16 to show it.
  std::uniform_real_distribution<float> uniform(0.5f, 1);
  for (const DType type : {DType::float16, DType::bfloat16})
    for (const index_t k : {1000, 16384, 262144}) {
      const index_t m = 64, n = 64;
      std::vector<std::uint16_t> a(std::size_t(m * k)), b(std::size_t(k * n)), d(std::size_t(m * n));
      const auto store = [&](float x) { return type == DType::float16 ? harness::float_to_half(x) : harness::float_to_bfloat(x); };
      const auto load = [&](std::uint16_t x) { return type == DType::float16 ? harness::half_to_float(x) : harness::bfloat_to_float(x); };
      for (auto* x : {&a, &b})
        for (auto& y : *x) y = store(uniform(random_));
      // The last term takes away what the others sum up to, on average: what is left shows the sums' own error.
      const auto view = [&](std::vector<std::uint16_t>& x, index_t rows, index_t cols) {
        MatrixView v = row_major(reinterpret_cast<float*>(x.data()), rows, cols);
        v.dtype = type;
        return v;
      };
      double worst[2] = {};
      const float middle = 0.5625f * float(k);
      std::vector<std::uint16_t> c(d.size(), store(middle));
      const double offset = load(c[0]);
      for (int which : {0, 1}) {
        GemmOptions options;
        options.kernel = which ? "tiled" : "mma_sync";
        if (which) options.params = TiledChoice{{16, 16, 16, 4, 4, 8}, {}};
        if (type == DType::float16) options.epilogue.alpha = 1.0 / 64, options.epilogue.beta = -1;
        if (type == DType::bfloat16) options.epilogue.beta = -1;
        if (type == DType::float16) std::fill(c.begin(), c.end(), store(middle / 64));
        const double subtract = load(c[0]);
        const MatrixView vc = view(c, m, n);
        gemm(context(selector_), view(a, m, k), view(b, k, n), &vc, view(d, m, n), options);
        for (index_t i = 0; i < m; i += 5)
          for (index_t j = 0; j < n; j += 7) {
            double exact = 0;
            for (index_t x = 0; x < k; ++x) exact += double(load(a[std::size_t(i * k + x)])) * load(b[std::size_t(x * n + j)]);
            const double scale = type == DType::float16 ? 1.0 / 64 : 1, expected = exact * scale - subtract;
            const double rounding = std::fabs(expected) * (type == DType::float16 ? 0x1p-11 : 0x1p-8);
            worst[which] =
                std::max(worst[which], std::max(std::fabs(load(d[std::size_t(i * n + j)]) - expected) - rounding, 0.0) / (exact * scale));
          }
      }
      (void)offset;
      std::printf("%s k %6lld: largest error of the sums %.1e (multiply-adds %.1e)\n", std::string(name_of(type)).c_str(),
                  static_cast<long long>(k), worst[0], worst[1]);
      EXPECT_LE(worst[0], std::max(worst[1], 2e-7)) << name_of(type) << k;
    }
}

TEST_F(MmaSync, SpecialFloat32ValuesGiveWhatMultiplyAddsGive) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{64, 128, 32}, Case{150, 200, 300}, Case{130, 130, 4096}})
    for (const bool in_b : {false, true})
      for (const float special : test::specials) {
        std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), d(std::size_t(s.m * s.n)), e(d);
        for (auto* x : {&a, &b})
          for (float& y : *x) y = normal(random_);
        const index_t line = s.m / 2, depth = s.k - 1;
        // A single special value, and otherwise only zeros in its line: its own effect is not drowned.
        for (index_t x = 0; x < s.k; ++x)
          (in_b ? b[std::size_t(x * s.n + line)] : a[std::size_t(line * s.k + x)]) = x == depth ? special : 0;
        multiply("mma_sync", a, b, d, s);
        multiply("tiled", a, b, e, s);
        int different = 0;
        for (index_t i = 0; i < s.m; ++i)
          for (index_t j = 0; j < s.n; ++j)
            if ((in_b ? j : i) == line) different += !test::same(d[std::size_t(i * s.n + j)], e[std::size_t(i * s.n + j)]);
        EXPECT_EQ(different, 0) << "special " << special << (in_b ? " in B " : " in A ") << s.text();
        for (std::size_t i = 0; i < d.size(); ++i) ASSERT_EQ(std::isfinite(d[i]), std::isfinite(e[i])) << special;
      }
}

TEST_F(MmaSync, SmallFloat32WithoutLowBitsKeepTheirAccuracyAndLargeOnesOverflow) {
  // Their second part is a denormal TF32 number: flushed to zero, it would cost a relative error of 2⁻¹³.
  for (const float small : {0x1.00081p-115f, -0x1.0008p-116f, 0x1p-126f})
    for (const bool in_b : {false, true}) {
      const Case s{70, 130, 40};
      std::vector<float> a(std::size_t(s.m * s.k), 0.0f), b(std::size_t(s.k * s.n), in_b ? small : 0x1.234568p40f);
      std::vector<float> d(std::size_t(s.m * s.n), not_a_number);
      for (index_t i = 0; i < s.m; ++i) a[std::size_t(i * s.k + i % s.k)] = in_b ? 0x1.234568p40f : small;
      multiply("mma_sync", a, b, d, s);
      const double exact = double(small) * 0x1.234568p40;
      for (const float x : d) ASSERT_NEAR(x, exact, std::fabs(exact) * 0x1p-21) << small << in_b;
    }
  const Case s{96, 160, 64};
  std::vector<float> a(96 * 64, 0x1p70f), b(64 * 160, 0x1p70f), d(96 * 160);
  multiply("mma_sync", a, b, d, s);
  for (const float x : d) ASSERT_EQ(x, infinity);
  // Just below the largest number: the big parts alone would overflow.
  a.assign(a.size(), 0);
  for (int i = 0; i < 96; ++i) a[std::size_t(i * 64)] = largest;
  b.assign(b.size(), 1);
  multiply("mma_sync", a, b, d, s);
  for (const float x : d) ASSERT_EQ(x, largest);
}

TEST_F(MmaSync, InfinitiesAndNansOf16BitNumbers) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const index_t m = 70, n = 80, k = 100;
    const auto store = [&](float x) { return type == DType::float16 ? harness::float_to_half(x) : harness::float_to_bfloat(x); };
    const auto load = [&](std::uint16_t x) { return type == DType::float16 ? harness::half_to_float(x) : harness::bfloat_to_float(x); };
    std::vector<std::uint16_t> a(m * k, store(1)), b(k * n, store(2)), d[2] = {std::vector<std::uint16_t>(m * n, 0), {}};
    a[3 * k + 5] = store(infinity);
    a[4 * k + 5] = store(-infinity), a[4 * k + 99] = store(infinity);
    a[6 * k + 7] = store(not_a_number);
    for (index_t j = 0; j < n; j += 2) b[9 * n + j] = store(type == DType::float16 ? 0x1p-24f : 0x1p-130f);  // a subnormal
    for (index_t x = 0; x < k; ++x) a[8 * k + x] = store(x == 9 ? 1.0f : 0.0f);
    a[10 * k + 5] = store(infinity), b[5 * n + 11] = store(0);
    d[1] = d[0];
    for (int which : {0, 1}) {
      GemmOptions options;
      options.kernel = which ? "tiled" : "mma_sync";
      const auto view = [&](std::vector<std::uint16_t>& x, index_t rows, index_t cols) {
        MatrixView v = row_major(reinterpret_cast<float*>(x.data()), rows, cols);
        v.dtype = type;
        return v;
      };
      gemm(context(selector_), view(a, m, k), view(b, k, n), nullptr, view(d[which], m, n), options);
    }
    int different = 0, special = 0;
    for (std::size_t i = 0; i < d[0].size(); ++i) {
      different += !test::same(load(d[0][i]), load(d[1][i]));
      special += !std::isfinite(load(d[0][i]));
    }
    EXPECT_EQ(different, 0) << name_of(type);
    EXPECT_GE(special, 4 * n) << name_of(type);
  }
}

TEST_F(MmaSync, TheSameBitsEveryTime) {
  std::normal_distribution<float> normal;
  for (const Case& s : {Case{512, 512, 512}, Case{1000, 900, 777}, Case{64, 64, 20000}}) {
    std::vector<float> a(std::size_t(s.m * s.k)), b(std::size_t(s.k * s.n)), first(std::size_t(s.m * s.n)), d(first);
    for (auto* x : {&a, &b})
      for (float& y : *x) y = normal(random_);
    for (int repeat = 0; repeat < 12; ++repeat) {
      std::vector<float>& result = repeat ? d : first;
      multiply("mma_sync", a, b, result, s);
      ASSERT_EQ(std::memcmp(result.data(), first.data(), first.size() * 4), 0) << s.text() << " repeat " << repeat;
    }
  }
}

}  // namespace
}  // namespace sycl_mat
