// Every kernel × dtype × layout × shape through the public API, against float64, with canaries around every array.
#include <gtest/gtest.h>

#include "device/oracle.hpp"
#include "kernel.hpp"

namespace sycl_mat {
namespace {

using test::Case;
using test::Guarded;

const Case shapes[] = {{1, 1, 1},    {2, 3, 5},      {16, 16, 16},  {17, 31, 13}, {64, 64, 64},  {65, 63, 67},  {1, 100, 37},
                       {100, 1, 37}, {97, 101, 1},   {1, 1, 1000},  {5, 7, 0},    {128, 96, 64}, {129, 97, 65}, {33, 257, 129},
                       {3, 3, 5000}, {200, 130, 70}, {31, 65, 513}, {6, 64, 512}, {7, 65, 600}};

template <class T>
void run_all(const std::string& kernel) {
  std::mt19937 random(17);
  Context& context = sycl_mat::context();
  using Order = typename Guarded<T>::Order;
  int ran = 0;
  for (const Case& s : shapes)
    for (int layout = 0; layout < 8; ++layout) {
      const auto order = [&](int bit) { return layout & bit ? Order::columns : Order::rows; };
      const std::int64_t gap = layout % 3 == 0 ? 0 : layout % 3 == 1 ? 3 : 16;
      const bool flip = (layout + s.m) % 4 == 3;
      Guarded<T> a(s.m, s.k, order(1), gap, flip), b(s.k, s.n, order(2), gap), c(s.m, s.n, Order::rows, gap),
          d(s.m, s.n, order(4), gap, flip);
      std::normal_distribution<T> normal;
      for (auto* x : {&a, &b, &c, &d}) x->fill([&] { return normal(random); });
      GemmOptions options;
      options.kernel = kernel;
      const bool scaled = layout % 2 == 1;
      options.epilogue.alpha = scaled ? -1.5 : 1;
      options.epilogue.beta = scaled ? 0.75 : 0;
      const std::string what = kernel + " " + test::text_of(s) + " layout " + std::to_string(layout);
      try {
        gemm(context, a.view(), b.view(), scaled ? &c.view() : nullptr, d.view(), options);
      } catch (const UnsupportedError&) {
        continue;  // a specialist that does not do this shape; counted below
      }
      ++ran;
      EXPECT_EQ(last_kernel(), kernel) << what;
      test::expect_product<T>(a, b, scaled ? &c : nullptr, d, options.epilogue.alpha, options.epilogue.beta, what);
      d.expect_only_matrix_written(what);
      a.expect_untouched(what);
      b.expect_untouched(what);
      c.expect_untouched(what);
    }
  EXPECT_GT(ran, 0) << kernel << " computed none of the shapes";
}

bool can(const std::string& name, DType dtype) {
  if (name == "host") return true;
  const Kernel& kernel = find_kernel(name);
  Problem p;
  p.m = p.n = p.k = 64;
  p.a.ld = p.b.ld = p.d.ld = 64;
  p.dtype = p.accumulator = p.out = dtype;
  if (!kernel.why_not) return true;
  for (const auto& [m, n, k] : shapes) {
    p.m = m, p.n = n, p.k = k;
    if (kernel.why_not(p, context().device()).empty()) return true;
  }
  return false;
}

class EveryKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryKernel, Float32) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  run_all<float>(GetParam());
}

TEST_P(EveryKernel, Float64) {
  if (!can(GetParam(), DType::float64)) GTEST_SKIP() << GetParam() << " has no float64 form on this device";
  run_all<double>(GetParam());
}

TEST_P(EveryKernel, SmallIntegersAreExact) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  std::mt19937 random(3);
  std::uniform_int_distribution<int> small(-8, 8);
  int ran = 0;
  for (const Case& s : shapes) {
    Guarded<float> a(s.m, s.k), b(s.k, s.n), d(s.m, s.n);
    for (auto* x : {&a, &b, &d}) x->fill([&] { return float(small(random)); });
    GemmOptions options;
    options.kernel = GetParam();
    try {
      matmul(context(), a.view(), b.view(), d.view(), options);
    } catch (const UnsupportedError&) {
      continue;
    }
    ++ran;
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        long sum = 0;
        for (std::int64_t x = 0; x < s.k; ++x) sum += long(a.at(i, x)) * long(b.at(x, j));
        ASSERT_EQ(d.at(i, j), float(sum)) << GetParam() << " " << test::text_of(s) << " at " << i << ", " << j;
      }
  }
  EXPECT_GT(ran, 0);
}

TEST_P(EveryKernel, NanAndInfinityGoThrough) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  int ran = 0;
  for (const Case& s : {Case{33, 65, 40}, Case{1, 300, 40}, Case{300, 1, 40}, Case{4, 500, 70}}) {
    Guarded<float> a(s.m, s.k), b(s.k, s.n), d(s.m, s.n);
    for (auto* x : {&a, &b, &d}) x->fill([] { return 1.f; });
    a.at(0, 3) = inf;
    b.at(5, 0) = nan;
    if (s.m > 2) a.at(2, 3) = -inf, a.at(2, 4) = inf;
    GemmOptions options;
    options.kernel = GetParam();
    try {
      matmul(context(), a.view(), b.view(), d.view(), options);
    } catch (const UnsupportedError&) {
      continue;
    }
    ++ran;
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const float got = d.at(i, j);
        const std::string where = GetParam() + " " + test::text_of(s) + " at " + std::to_string(i) + ", " + std::to_string(j);
        if (j == 0 || (i == 2 && s.m > 2)) {
          ASSERT_TRUE(std::isnan(got)) << where;
        } else if (i == 0) {
          ASSERT_EQ(got, inf) << where;
        } else {
          ASSERT_EQ(got, float(s.k)) << where;
        }
      }
  }
  EXPECT_GT(ran, 0);
}

TEST_P(EveryKernel, BetaZeroNeverReadsC) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  int ran = 0;
  for (const Case& s : {Case{33, 65, 700}, Case{1, 300, 40}, Case{300, 1, 40}, Case{4, 500, 70}, Case{20, 20, 0}}) {
    Guarded<float> a(s.m, s.k), b(s.k, s.n), d(s.m, s.n);
    for (auto* x : {&a, &b}) x->fill([] { return 1.f; });
    d.fill([] { return std::numeric_limits<float>::quiet_NaN(); });
    GemmOptions options;
    options.kernel = GetParam();
    try {
      gemm(context(), a.view(), b.view(), &d.view(), d.view(), options);
    } catch (const UnsupportedError&) {
      continue;
    }
    ++ran;
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) ASSERT_EQ(d.at(i, j), float(s.k)) << GetParam() << " " << test::text_of(s);
  }
  EXPECT_GT(ran, 0);
}

TEST_P(EveryKernel, Stacks) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  int ran = 0;
  for (const Case& s : {Case{5, 6, 7}, Case{33, 17, 40}, Case{1, 80, 30}, Case{80, 1, 30}, Case{4, 90, 20}}) {
    constexpr std::int64_t batch = 7;
    Guarded<float> a(s.m, s.k, Guarded<float>::Order::rows, 2, false, batch), b(s.k, s.n, Guarded<float>::Order::columns, 1, false, batch),
        d(s.m, s.n, Guarded<float>::Order::rows, 3, false, batch);
    for (auto* x : {&a, &b, &d}) x->fill([&] { return normal(random); });
    GemmOptions options;
    options.kernel = GetParam();
    try {
      matmul(context(), a.view(), b.view(), d.view(), options);
    } catch (const UnsupportedError&) {
      continue;
    }
    ++ran;
    test::expect_product<float>(a, b, nullptr, d, 1, 0, GetParam() + " stack of " + test::text_of(s), batch);
    d.expect_only_matrix_written(GetParam() + " stack");
  }
  EXPECT_GT(ran, 0) << GetParam() << " multiplied no stack";
}

TEST_P(EveryKernel, SameBitsEveryTime) {
  if (!can(GetParam(), DType::float32)) GTEST_SKIP() << GetParam() << " is not for this device";
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  int ran = 0;
  for (const Case& s : {Case{65, 130, 3000}, Case{1, 300, 4000}, Case{300, 1, 4000}, Case{4, 500, 700}}) {
    Guarded<float> a(s.m, s.k), b(s.k, s.n);
    a.fill([&] { return normal(random); });
    b.fill([&] { return normal(random); });
    std::vector<float> first(std::size_t(s.m * s.n)), again(first.size());
    GemmOptions options;
    options.kernel = GetParam();
    try {
      matmul(context(), a.view(), b.view(), row_major(first.data(), s.m, s.n), options);
      for (int repeat = 0; repeat < 5; ++repeat) {
        matmul(context(), a.view(), b.view(), row_major(again.data(), s.m, s.n), options);
        ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * 4), 0) << GetParam() << " " << test::text_of(s);
      }
    } catch (const UnsupportedError&) {
      continue;
    }
    ++ran;
  }
  EXPECT_GT(ran, 0);
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& k : kernels()) out.push_back(k.name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, EveryKernel, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(Planner, ChoosesByItselfAndIsRight) {
  std::mt19937 random(21);
  std::normal_distribution<float> normal;
  for (const Case& s : shapes) {
    Guarded<float> a(s.m, s.k), b(s.k, s.n), d(s.m, s.n);
    for (auto* x : {&a, &b, &d}) x->fill([&] { return normal(random); });
    matmul(context(), a.view(), b.view(), d.view());
    test::expect_product<float>(a, b, nullptr, d, 1, 0, "planned " + test::text_of(s) + " by " + last_kernel());
    EXPECT_FALSE(last_kernel().empty());
  }
}

TEST(Aliasing, ResultOverAnOperand) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(40 * 40);
  for (float& v : x) v = normal(random);
  Guarded<float> a(40, 40), b(40, 40), d(40, 40);
  std::size_t i = 0;
  a.fill([&] { return x[i++]; });
  b.fill([&] { return normal(random); });
  matmul(context(), row_major(x.data(), 40, 40), b.view(), row_major(x.data(), 40, 40));
  i = 0;
  d.fill([&] { return x[i++]; });
  test::expect_product<float>(a, b, nullptr, d, 1, 0, "A overwritten by the result");
}

TEST(Strides, NoAxisOfStrideOne) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> sparse(3 * 20 * 64, 0.f), out(3 * 20 * 64, 7.f);
  Guarded<float> a(20, 30), b(30, 25), d(20, 25);
  for (auto* x : {&a, &b, &d}) x->fill([&] { return normal(random); });
  MatrixView a2 = a.view(), d2 = d.view();
  a2.data = sparse.data();
  a2.row_stride = 64 * 2;
  a2.col_stride = 3;
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 30; ++j) sparse[std::size_t(i * 128 + j * 3)] = a.at(i, j);
  d2.data = out.data();
  d2.row_stride = 128;
  d2.col_stride = 2;
  matmul(context(), a2, b.view(), d2);
  int outside = 0;
  for (std::size_t at = 0; at < out.size(); ++at) {
    const bool inside = at / 128 < 20 && at % 128 < 50 && at % 2 == 0;
    if (!inside && out[at] != 7.f) ++outside;
  }
  EXPECT_EQ(outside, 0);
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 25; ++j) d.at(i, j) = out[std::size_t(i * 128 + j * 2)];
  test::expect_product<float>(a, b, nullptr, d, 1, 0, "strides of 3 and 2");
}

TEST(Events, LaterProductsSeeEarlierResults) {
  std::vector<float> a(256 * 256, 1.f), b(256 * 256, 2.f), c(256 * 256), d(256 * 256);
  GemmOptions later;
  later.wait = false;
  Event first = matmul(context(), row_major(a.data(), 256, 256), row_major(b.data(), 256, 256), row_major(c.data(), 256, 256), later);
  Event second = matmul(context(), row_major(c.data(), 256, 256), row_major(b.data(), 256, 256), row_major(d.data(), 256, 256), later);
  second.wait();
  EXPECT_TRUE(first.done());
  for (float v : d) ASSERT_EQ(v, 256.f * 2 * 256 * 2);
}

}  // namespace
}  // namespace sycl_mat
