// The oneMKL backend against float64: dtypes, layouts, scalars, stacks, and what falls to our own kernels. Skipped where oneMKL is not
// installed; what a missing one says is tested in python/test_onemkl.py, where it can be hidden.
#include "backends/onemkl.hpp"

#include <gtest/gtest.h>

#include "device/kernel_harness.hpp"
#include "sycl_mat/sycl_mat.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// A stack of matrices in a buffer whose other elements hold a value that shows.
class Array {
 public:
  Array(DType type, std::int64_t rows, std::int64_t cols, bool column_major = false, std::int64_t gap = 0, std::int64_t outer = 1,
        std::int64_t inner = 1) {
    const std::int64_t lines = column_major ? cols : rows, length = column_major ? rows : cols, ld = length + gap;
    view.dtype = type;
    view.rows = rows;
    view.cols = cols;
    view.row_stride = column_major ? 1 : ld;
    view.col_stride = column_major ? ld : 1;
    const std::int64_t one = lines * ld + gap;
    if (outer > 1) view.batch.push_back({outer, inner * one + gap});
    if (inner > 1 || outer > 1) view.batch.push_back({inner, one});
    buffer_.resize(std::size_t((outer * (inner * one + gap) + 2 * margin) * size_of(type)));
    for (std::int64_t e = 0; e < std::int64_t(buffer_.size()) / size_of(type); ++e)
      harness::put(buffer_.data() + e * size_of(type), type, canary());
    view.data = buffer_.data() + margin * size_of(type);
  }
  double canary() const { return view.dtype == DType::int8 ? 99 : view.dtype == DType::int32 ? 99999 : NAN; }
  char* at(std::int64_t o, std::int64_t g, std::int64_t i, std::int64_t j) const {
    std::int64_t offset = i * view.row_stride + j * view.col_stride;
    const std::size_t axes = view.batch.size();
    if (axes > 0) offset += g * view.batch[axes - 1].stride;
    if (axes > 1) offset += o * view.batch[0].stride;
    return static_cast<char*>(view.data) + offset * size_of(view.dtype);
  }
  double get(std::int64_t o, std::int64_t g, std::int64_t i, std::int64_t j) const { return harness::get(at(o, g, i, j), view.dtype); }
  void fill(std::mt19937& random, bool integers) {
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<int> whole(-4, 4);
    each([&](char* p) {
      harness::put(p, view.dtype, integers || size_of(view.dtype) == 1 || view.dtype == DType::int32 ? whole(random) : normal(random));
    });
  }
  template <class Do>
  void each(Do what) {
    const std::size_t axes = view.batch.size();
    for (std::int64_t o = 0; o < (axes > 1 ? view.batch[0].extent : 1); ++o)
      for (std::int64_t g = 0; g < (axes > 0 ? view.batch[axes - 1].extent : 1); ++g)
        for (std::int64_t i = 0; i < view.rows; ++i)
          for (std::int64_t j = 0; j < view.cols; ++j) what(at(o, g, i, j));
  }
  /// Elements of the buffer that belong to no matrix and have changed.
  int damaged() {
    std::vector<char> mine(buffer_.size(), 0);
    each([&](char* p) { mine[std::size_t(p - buffer_.data())] = 1; });
    int count = 0;
    for (std::size_t e = 0; e < buffer_.size(); e += std::size_t(size_of(view.dtype))) {
      const double x = harness::get(buffer_.data() + e, view.dtype);
      count += !mine[e] && (std::isnan(canary()) ? !std::isnan(x) : x != canary());
    }
    return count;
  }
  MatrixView view;

 private:
  static constexpr std::int64_t margin = 64;
  std::vector<char> buffer_;
};

struct Case {
  std::int64_t m, n, k, outer = 1, inner = 1;
};

GemmOptions by_onemkl(double alpha = 1, double beta = 0) {
  GemmOptions options;
  options.backend = "onemkl";
  options.epilogue.alpha = alpha;
  options.epilogue.beta = beta;
  return options;
}

void expect_product(const Array& a, const Array& b, const Array* c, const Array& d, const Case& s, double alpha, double beta,
                    const std::string& what) {
  const double u = harness::unit_roundoff(d.view.dtype), sums = a.view.dtype == DType::float64 ? 0x1p-53 : 0x1p-24;
  int wrong = 0;
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t g = 0; g < s.inner; ++g)
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          long double sum = 0, magnitude = 0;
          for (std::int64_t x = 0; x < s.k; ++x) {
            const long double p = static_cast<long double>(a.get(o, g, i, x)) * b.get(o, g, x, j);
            sum += p;
            magnitude += std::fabs(p);
          }
          sum *= alpha;
          magnitude *= std::fabs(alpha);
          if (c) {
            sum += beta * c->get(o, g, i, j);
            magnitude += std::fabs(beta * c->get(o, g, i, j));
          }
          // γ(K) of the accumulator, and for the 16-bit types one rounding of each of product, scaled product and result.
          const double bound = a.view.dtype == DType::int8 ? 0
                                                           : (double(s.k) + 8) * sums * double(magnitude) +
                                                                 (size_of(a.view.dtype) == 2 ? 4 * u * double(magnitude) : 0);
          const double error = std::fabs(double(d.get(o, g, i, j) - sum));
          if (!(error <= bound) && ++wrong <= 3)
            ADD_FAILURE() << what << " (" << o << ", " << g << ", " << i << ", " << j << "): " << d.get(o, g, i, j) << ", exact "
                          << double(sum);
        }
  EXPECT_EQ(wrong, 0) << what;
}

class OneMkl : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    try {
      onemkl::require();
    } catch (const UnsupportedError& e) {
      GTEST_SKIP() << e.what();
    }
    if (GetParam() == DType::float64 && !context().device().has_fp64) GTEST_SKIP() << "no float64 on this device";
  }
};

TEST_P(OneMkl, EveryLayoutScalarAndStack) {
  const DType type = GetParam(), out = harness::out_of(type);
  std::mt19937 random(5);
  const Case cases[] = {{1, 1, 1},    {2, 3, 5},      {17, 31, 13},    {1, 100, 37},     {100, 1, 37},    {64, 64, 64},
                        {65, 63, 67}, {33, 129, 300}, {4, 5, 6, 1, 7}, {9, 4, 17, 3, 1}, {6, 7, 8, 3, 4}, {3, 2, 9, 5, 2}};
  for (const Case& s : cases)
    for (int layout = 0; layout < 8; ++layout) {
      const std::int64_t gap = layout % 3 * 2;
      Array a(type, s.m, s.k, layout & 1, gap, s.outer, s.inner), b(type, s.k, s.n, layout & 2, gap, s.outer, s.inner);
      Array c(out, s.m, s.n, layout & 4, gap + 1, s.outer, s.inner), d(out, s.m, s.n, layout & 4, gap, s.outer, s.inner);
      for (Array* x : {&a, &b, &c, &d}) x->fill(random, false);
      const bool scaled = type != DType::int8 && layout % 2 == 1;
      const double alpha = scaled ? -1.5 : 1, beta = scaled ? 0.75 : 0;
      const std::string what = std::string(name_of(type)) + " " + std::to_string(s.m) + "×" + std::to_string(s.n) + "×" +
                               std::to_string(s.k) + " stack " + std::to_string(s.outer) + "×" + std::to_string(s.inner) + " layout " +
                               std::to_string(layout);
      gemm(context(), a.view, b.view, scaled ? &c.view : nullptr, d.view, by_onemkl(alpha, beta));
      EXPECT_EQ(last_kernel(), "onemkl") << what;
      expect_product(a, b, scaled ? &c : nullptr, d, s, alpha, beta, what);
      EXPECT_EQ(d.damaged(), 0) << what;
    }
}

TEST_P(OneMkl, AddsToCInPlace) {
  const DType type = GetParam();
  if (type == DType::int8) GTEST_SKIP() << "int8 products with scalars are ours";
  std::mt19937 random(6);
  const Case s{20, 30, 40, 1, 3};
  Array a(type, s.m, s.k, false, 0, 1, 3), b(type, s.k, s.n, false, 0, 1, 3), d(type, s.m, s.n, false, 2, 1, 3);
  for (Array* x : {&a, &b, &d}) x->fill(random, false);
  Array before(type, s.m, s.n, false, 2, 1, 3);
  for (std::int64_t g = 0; g < 3; ++g)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) harness::put(before.at(0, g, i, j), type, d.get(0, g, i, j));
  gemm(context(), a.view, b.view, &d.view, d.view, by_onemkl(0.5, -2));
  EXPECT_EQ(last_kernel(), "onemkl");
  expect_product(a, b, &before, d, s, 0.5, -2, "in place");
}

TEST_P(OneMkl, BroadcastStacksAndManySmallOnes) {
  const DType type = GetParam(), out = harness::out_of(type);
  std::mt19937 random(7);
  const Case s{4, 4, 4, 1, size_of(type) >= 4 ? 500 : 50};
  Array a(type, s.m, s.k), b(type, s.k, s.n, true, 0, 1, s.inner), d(out, s.m, s.n, false, 0, 1, s.inner);
  for (Array* x : {&a, &b}) x->fill(random, false);
  gemm(context(), a.view, b.view, nullptr, d.view, by_onemkl());
  EXPECT_EQ(last_kernel(), "onemkl");
  expect_product(a, b, nullptr, d, s, 1, 0, "A broadcast");
}

TEST_P(OneMkl, WithBetaZeroNothingOfTheResultIsRead) {
  const DType type = GetParam();
  if (type == DType::int8) GTEST_SKIP() << "int8 has no NaN";
  for (const std::int64_t k : {1, 70}) {
    const Case s{30, 40, k};
    std::mt19937 random(8);
    Array a(type, s.m, s.k), b(type, s.k, s.n), d(type, s.m, s.n);  // d is full of NaN
    for (Array* x : {&a, &b}) x->fill(random, false);
    gemm(context(), a.view, b.view, nullptr, d.view, by_onemkl());
    expect_product(a, b, nullptr, d, s, 1, 0, "NaN in D, K = " + std::to_string(k));
  }
}

TEST_P(OneMkl, NanAndInfinityGoThrough) {
  const DType type = GetParam();
  if (type == DType::int8) GTEST_SKIP() << "int8 has neither";
  std::mt19937 random(9);
  Array a(type, 8, 8), b(type, 8, 8), d(type, 8, 8);
  for (Array* x : {&a, &b}) x->fill(random, true);
  harness::put(a.at(0, 0, 2, 3), type, NAN);
  harness::put(a.at(0, 0, 5, 1), type, inf);
  for (std::int64_t j = 0; j < 8; ++j) harness::put(b.at(0, 0, 1, j), type, j % 2 ? -1 : 2);
  gemm(context(), a.view, b.view, nullptr, d.view, by_onemkl());
  for (std::int64_t j = 0; j < 8; ++j) {
    EXPECT_TRUE(std::isnan(d.get(0, 0, 2, j)));
    EXPECT_EQ(d.get(0, 0, 5, j), j % 2 ? -inf : inf);
  }
}

TEST_P(OneMkl, LargeIntegersAreExact) {
  const DType type = GetParam();
  const std::int64_t k = type == DType::int8 ? 5001 : type == DType::float32 || type == DType::float64 ? 4096 : 64;
  const Case s{9, 11, k};
  std::mt19937 random(10);
  Array a(type, s.m, s.k), b(type, s.k, s.n), d(harness::out_of(type), s.m, s.n);
  for (Array* x : {&a, &b}) x->fill(random, true);
  if (type == DType::int8) a.each([&](char* p) { harness::put(p, type, 127); });
  if (type == DType::int8) b.each([&](char* p) { harness::put(p, type, double(int(random() % 255) - 127)); });
  gemm(context(), a.view, b.view, nullptr, d.view, by_onemkl());
  EXPECT_EQ(last_kernel(), "onemkl");
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::int64_t x = 0; x < k; ++x) sum += a.get(0, 0, i, x) * b.get(0, 0, x, j);
      if (std::fabs(sum) > (type == DType::bfloat16 ? 256 : 2048) && size_of(type) == 2) continue;  // not representable
      EXPECT_EQ(d.get(0, 0, i, j), sum) << i << ", " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, OneMkl, testing::Values(DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8),
                         [](const auto& p) { return std::string(name_of(p.param)); });

class OneMklFallsBack : public OneMkl {};

/// The product is right, ours, and explain() says why.
void expect_ours(const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d, const GemmOptions& options,
                 const std::string& because) {
  const Explanation e = explain(context(), a, b, c, d, options);
  EXPECT_NE(e.reason.find("not by oneMKL: "), std::string::npos) << e.reason;
  EXPECT_NE(e.reason.find(because), std::string::npos) << e.reason;
  EXPECT_NE(e.kernel, "onemkl");
  gemm(context(), a, b, c, d, options);
  EXPECT_NE(last_kernel(), "onemkl");
}

TEST_P(OneMklFallsBack, WithAReason) {
  const DType type = GetParam();
  std::mt19937 random(11);
  const Case s{12, 14, 16};
  Array a(type, s.m, s.k), b(type, s.k, s.n), d(type, s.m, s.n);
  for (Array* x : {&a, &b}) x->fill(random, false);
  std::vector<float> bias(14, 2.f);
  GemmOptions options = by_onemkl();
  options.epilogue.bias = bias.data();
  options.epilogue.bias_axis = BiasAxis::column;
  expect_ours(a.view, b.view, nullptr, d.view, options, "bias");
  options = by_onemkl();
  options.epilogue.activation = Activation::relu;
  expect_ours(a.view, b.view, nullptr, d.view, options, "activation");
  MatrixView repeated = a.view;
  repeated.row_stride = 0;
  expect_ours(repeated, b.view, nullptr, d.view, by_onemkl(), "leading dimension");
  for (std::int64_t i = 1; i < s.m; ++i) EXPECT_EQ(d.get(0, 0, i, 3), d.get(0, 0, 0, 3));
  MatrixView no_columns = a.view, no_rows = b.view;
  no_columns.cols = no_rows.rows = 0;
  expect_ours(no_columns, no_rows, nullptr, d.view, by_onemkl(), "K is 0");
  for (std::int64_t i = 0; i < s.m; ++i) EXPECT_EQ(d.get(0, 0, i, 3), 0);
  MatrixView backwards = a.view;
  backwards.data = a.at(0, 0, s.m - 1, 0);
  backwards.row_stride = -s.k;
  expect_ours(backwards, b.view, nullptr, d.view, by_onemkl(), "leading dimension");
}

INSTANTIATE_TEST_SUITE_P(Types, OneMklFallsBack, testing::Values(DType::float32),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST(Backends, UnknownNamesListTheKnownOnes) {
  float x[1] = {1};
  GemmOptions options;
  options.backend = "cublas";
  try {
    matmul(context(), row_major(x, 1, 1), row_major(x, 1, 1), row_major(x, 1, 1), options);
    FAIL() << "no error";
  } catch (const UnsupportedError& e) {
    for (const char* name : {"cublas", "sycl", "onemkl", "auto"})
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
  }
}

TEST(Backends, WhatFailsAfterItsSubmissionReachesWhoeverWaits) {
  Context::State& state = context().state();
  state.queue.submit([](sycl::handler& h) { h.host_task([] { throw std::runtime_error("from within"); }); });
  try {
    state.wait();
    FAIL() << "no error";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("from within"), std::string::npos) << e.what();
  }
  float x[1] = {3}, y[1] = {0};
  matmul(context(), row_major(x, 1, 1), row_major(x, 1, 1), row_major(y, 1, 1));  // and the next product is not affected
  EXPECT_EQ(y[0], 9);
}

/// The tuning file of a test, in the place of the user's.
class Measured : public testing::Test {
 protected:
  void SetUp() override { setenv("SYCL_MAT_TUNING_FILE", file_.c_str(), 1); }
  void TearDown() override {
    unsetenv("SYCL_MAT_TUNING_FILE");
    std::filesystem::remove(file_);
    std::filesystem::remove(file_.string() + ".lock");
    tuned_afresh();
  }
  /// Writes one record for 300×300×300 and waits until the database has seen the file.
  void measured(const std::string& kernel) {
    TunedRecord r;
    r.fingerprint = context().device().fingerprint;
    r.architecture = context().device().architecture;
    r.driver_version = context().device().driver_version;
    r.kernel = kernel;
    r.shape = {300, 300, 300, 1};
    r.shape_class = shape_class(r.shape);
    r.gflops = 1e9;
    r.measured = utc_now();
    merge_into(file_, std::vector{r});
    tuned_afresh();
  }
  std::string kernel_for(const std::string& backend) {
    GemmOptions options;
    options.backend = backend;
    const MatrixView x = row_major(x_.data(), 300, 300), y = row_major(y_.data(), 300, 300);
    matmul(context(), x, x, y, options);
    EXPECT_EQ(y_[7], 300);
    return explain(context(), x, x, nullptr, y, options).kernel;
  }

 private:
  static void tuned_afresh() {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the files are looked at twice a second
    tuning_generation();
  }
  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("sycl_mat_onemkl_test_" + std::to_string(std::random_device()()) + ".json");
  std::vector<float> x_ = std::vector<float>(300 * 300, 1.f), y_ = std::vector<float>(300 * 300);
};

TEST_F(Measured, OneMklRunsWhereItWasFasterAndTheCallerLeavesItOpen) {
  if (!onemkl::usable()) GTEST_SKIP() << "oneMKL is not installed";
  EXPECT_NE(kernel_for("auto"), "onemkl");
  measured("onemkl");
  EXPECT_EQ(kernel_for("auto"), "onemkl");
  EXPECT_NE(kernel_for("sycl"), "onemkl");
}

TEST_F(Measured, AKernelThatThisVersionDoesNotHaveIsNoObstacle) {
  measured("a_kernel_of_tomorrow");
  EXPECT_NE(kernel_for("sycl"), "a_kernel_of_tomorrow");
  EXPECT_NE(kernel_for("auto"), "a_kernel_of_tomorrow");
}

TEST(Backends, AForcedKernelIsNotOneMkls) {
  float x[1] = {1};
  GemmOptions options = by_onemkl();
  options.kernel = "tiled";
  EXPECT_THROW(matmul(context(), row_major(x, 1, 1), row_major(x, 1, 1), row_major(x, 1, 1), options), UnsupportedError);
}

}  // namespace
}  // namespace sycl_mat
