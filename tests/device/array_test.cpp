// Device memory and copies to, from and within it, as on a GPU whose memory the processor does not reach: the CPU device, masked.
#include "sycl_mat/array.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "context.hpp"
#include "device.hpp"
#include "sycl_mat/sycl_mat.hpp"

namespace sycl_mat {
namespace {

enum class Kind { cpu, integrated, discrete };

/// Leaked on purpose, like every context.
Context& masked(Kind kind) {
  const sycl::device device = select_device("cpu");
  DeviceInfo info = describe(device);
  if (kind != Kind::cpu) {
    info.type = "gpu";
    info.usm_system = false;
    info.unified_memory = kind == Kind::integrated;
  }
  return *std::make_unique<Context>(std::make_unique<Context::State>(device, info)).release();
}

class Arrays : public testing::TestWithParam<Kind> {
 protected:
  Arrays() : context_(masked(GetParam())) { options_.kernel = "tiled"; }
  Context& context_;
  GemmOptions options_;
};

/// A matrix of small integers somewhere in memory that knows what belongs where.
class Matrix {
 public:
  Matrix(Context& context, std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride, float seed)
      : context_(context), memory_(context, bytes, MemoryKind::device), view_(row_major(base() + middle, rows, cols)) {
    view_.row_stride = row_stride;
    view_.col_stride = col_stride;
    std::vector<float> host(elements, canary);
    values_.resize(static_cast<std::size_t>(rows * cols));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j)
        host[static_cast<std::size_t>(middle + i * row_stride + j * col_stride)] = values_[static_cast<std::size_t>(i * cols + j)] =
            float((i * 7 + j * 3 + std::int64_t(seed)) % 5 - 2);
    copy(context_, row_major(base(), 1, elements), row_major(host.data(), 1, elements));
  }
  const MatrixView& view() const { return view_; }
  float original(std::int64_t i, std::int64_t j) const { return values_[static_cast<std::size_t>(i * view_.cols + j)]; }

  /// What lies there now, in C order. Everything around it must be untouched.
  std::vector<float> now() {
    std::vector<float> host(elements), out;
    copy(context_, row_major(host.data(), 1, elements), row_major(base(), 1, elements));
    for (std::int64_t i = 0; i < view_.rows; ++i)
      for (std::int64_t j = 0; j < view_.cols; ++j) {
        float& x = host[static_cast<std::size_t>(middle + i * view_.row_stride + j * view_.col_stride)];
        out.push_back(x);
        x = canary;
      }
    for (const float x : host) EXPECT_EQ(x, canary) << "written outside the matrix";
    return out;
  }

 private:
  static constexpr std::int64_t elements = 40000, middle = 20000;
  static constexpr std::size_t bytes = elements * sizeof(float);
  static constexpr float canary = 12345;
  float* base() const { return static_cast<float*>(memory_.data()); }
  Context& context_;
  DeviceMemory memory_;
  MatrixView view_;
  std::vector<float> values_;
};

struct Layout {
  std::int64_t row, col;
};
constexpr Layout layouts[] = {{60, 1}, {1, 60}, {130, 2}, {3, 181}, {-130, -2}, {65, 1}, {-65, 1}};

TEST_P(Arrays, OfEveryKindAreKnownByPointer) {
  for (const auto kind : {MemoryKind::device, MemoryKind::shared, MemoryKind::host}) {
    const DeviceMemory memory(context_, 1000, kind);
    EXPECT_EQ(kind_of(context_, static_cast<char*>(memory.data()) + 500), kind);
    EXPECT_EQ(host_reachable(context_, memory.data()), kind != MemoryKind::device || GetParam() == Kind::cpu);
  }
  int ordinary = 0;
  EXPECT_EQ(kind_of(context_, &ordinary), std::nullopt);
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u);
}

TEST_P(Arrays, CopiesBetweenAllLayouts) {
  for (const Layout from : layouts)
    for (const Layout to : layouts) {
      Matrix source(context_, 50, 60, from.row, from.col, 1), target(context_, 50, 60, to.row, to.col, 2);
      std::vector<float> host(50 * 60);
      const std::vector<float> expected = source.now();
      copy(context_, target.view(), source.view());
      EXPECT_EQ(target.now(), expected);
      copy(context_, row_major(host.data(), 50, 60), source.view());
      EXPECT_EQ(host, expected);
      std::iota(host.begin(), host.end(), 0.f);
      copy(context_, target.view(), row_major(host.data(), 50, 60));
      EXPECT_EQ(target.now(), host);
    }
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u);
}

TEST_P(Arrays, CopyOfOverlappingViews) {
  Matrix x(context_, 50, 60, 60, 1, 1);
  std::vector<float> expected = x.now();
  std::reverse(expected.begin(), expected.end());
  Matrix y(context_, 50, 60, 60, 1, 1);
  MatrixView backwards = y.view();
  backwards.data = static_cast<float*>(backwards.data) + 50 * 60 - 1;
  backwards.row_stride = -60;
  backwards.col_stride = -1;
  copy(context_, y.view(), backwards);
  EXPECT_EQ(y.now(), expected);
}

TEST_P(Arrays, OperandsThatNoKernelReads) {
  for (const Layout layout : layouts) {
    Matrix a(context_, 50, 40, layout.row, layout.col, 1), b(context_, 40, 60, layout.row, layout.col, 2),
        c(context_, 50, 60, layout.row, layout.col, 3);
    for (const Layout to : layouts) {
      Matrix d(context_, 50, 60, to.row, to.col, 4);
      options_.epilogue.beta = 2;
      gemm(context_, a.view(), b.view(), &c.view(), d.view(), options_);
      std::vector<float> expected;
      for (int i = 0; i < 50; ++i)
        for (int j = 0; j < 60; ++j) {
          float sum = 2 * c.original(i, j);
          for (int k = 0; k < 40; ++k) sum += a.original(i, k) * b.original(k, j);
          expected.push_back(sum);
        }
      EXPECT_EQ(d.now(), expected) << layout.row << " " << layout.col << " to " << to.row << " " << to.col;
    }
  }
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u);
}

TEST_P(Arrays, ResultOverAnOperand) {
  Matrix a(context_, 50, 50, 130, 2, 1), b(context_, 50, 50, 60, 1, 2);
  gemm(context_, a.view(), b.view(), nullptr, a.view(), options_);
  std::vector<float> expected;
  for (int i = 0; i < 50; ++i)
    for (int j = 0; j < 50; ++j) {
      float sum = 0;
      for (int k = 0; k < 50; ++k) sum += a.original(i, k) * b.original(k, j);
      expected.push_back(sum);
    }
  EXPECT_EQ(a.now(), expected);
}

/// Memory given back while products that use it are under way goes to later products, and to nobody else before they are done.
TEST_P(Arrays, TemporariesAreGivenBackWhileInUse) {
  constexpr std::int64_t n = 100;
  std::vector<float> ones(n * n, 1.f), host(n * n);
  options_.wait = false;
  for (const auto kind : {MemoryKind::device, MemoryKind::shared, MemoryKind::host}) {
    const auto made = [&](float value) {
      DeviceMemory memory(context_, n * n * sizeof(float), kind);
      std::fill(host.begin(), host.end(), value);
      copy(context_, row_major(memory.data(), n, n), row_major(host.data(), n, n));
      return memory;
    };
    const DeviceMemory one = made(1);
    DeviceMemory x = made(2);
    for (int step = 0; step < 3; ++step) {
      DeviceMemory y(context_, n * n * sizeof(float), kind);
      gemm(context_, row_major(x.data(), n, n), row_major(one.data(), n, n), nullptr, row_major(y.data(), n, n), options_);
      x = std::move(y);  // the operand's memory is free for the next
    }
    copy(context_, row_major(host.data(), n, n), row_major(x.data(), n, n));
    EXPECT_EQ(host, std::vector<float>(n * n, 2e6f));
  }
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u);
}

TEST_P(Arrays, WhatCannotBe) {
  const DeviceMemory memory(context_, 400, MemoryKind::device);
  std::vector<float> host(100);
  EXPECT_THROW(copy(context_, row_major(memory.data(), 10, 10), row_major(host.data(), 5, 20)), SizeError);
  EXPECT_THROW(copy(context_, row_major(memory.data(), 5, 10, DType::float64), row_major(host.data(), 5, 10)), UnsupportedError);
  EXPECT_THROW(DeviceMemory(context_, std::size_t(1) << 60, MemoryKind::device), OutOfMemoryError);
  context_.state().info.usm_shared = false;
  EXPECT_THROW(DeviceMemory(context_, 400, MemoryKind::shared), UnsupportedError);
}

INSTANTIATE_TEST_SUITE_P(Devices, Arrays, testing::Values(Kind::cpu, Kind::integrated, Kind::discrete), [](const auto& info) {
  return info.param == Kind::cpu ? "cpu" : info.param == Kind::integrated ? "integrated" : "discrete";
});

}  // namespace
}  // namespace sycl_mat
