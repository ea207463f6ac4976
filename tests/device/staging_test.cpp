// Where operands live, tried on the CPU device with capabilities masked: what an integrated GPU (no system USM, shared memory) and a
// discrete one (memory of its own) make the library do.
#include <gtest/gtest.h>

#include "context.hpp"
#include "device.hpp"
#include "device/oracle.hpp"
#include "sycl_mat/sycl_mat.hpp"

namespace sycl_mat {
namespace {

using test::Guarded;

std::unique_ptr<Context> masked(bool system, bool unified, bool host) {
  const sycl::device device = select_device("cpu");
  DeviceInfo info = describe(device);
  info.usm_system = system;
  info.unified_memory = unified;
  info.usm_host = host;
  // Leaked on purpose, like every context: programs must not be destroyed while the runtime shuts down.
  return std::make_unique<Context>(std::make_unique<Context::State>(device, info));
}

class Masked : public testing::TestWithParam<std::tuple<bool, bool, bool>> {
 protected:
  Masked() : context_(*leak(masked(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam())))) {
    options_.kernel = "packed";  // never the host path, which needs no device memory
  }
  static Context* leak(std::unique_ptr<Context> context) { return context.release(); }
  bool system() const { return std::get<0>(GetParam()); }
  std::string memory_of(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    return explain(context_, a, b, nullptr, d, options_).memory;
  }
  Context& context_;
  GemmOptions options_;
};

template <class T>
void fill(T& x) {
  static std::mt19937 random(4);
  x.fill([] { return std::normal_distribution<float>()(random); });
}

TEST_P(Masked, OrdinaryArraysOfEveryOrder) {
  using Order = Guarded<float>::Order;
  for (int layout = 0; layout < 8; ++layout) {
    Guarded<float> a(70, 50, layout & 1 ? Order::columns : Order::rows, 3), b(50, 90, layout & 2 ? Order::columns : Order::rows),
        c(70, 90, layout & 2 ? Order::columns : Order::rows), d(70, 90, layout & 4 ? Order::columns : Order::rows, layout & 1 ? 5 : 0);
    for (auto* x : {&a, &b, &c, &d}) fill(*x);
    options_.epilogue.beta = layout & 1 ? 2 : 0;
    gemm(context_, a.view(), b.view(), &c.view(), d.view(), options_);
    const std::string what = "layout " + std::to_string(layout);
    test::expect_product<float>(a, b, layout & 1 ? &c : nullptr, d, 1, options_.epilogue.beta, what);
    d.expect_only_matrix_written(what);
  }
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u) << "staging memory leaks";
}

TEST_P(Masked, CopiesOnlyWhatTheDeviceCannotReach) {
  Guarded<float> a(70, 50), b(50, 90), d(70, 90);
  for (auto* x : {&a, &b, &d}) fill(*x);
  const std::string memory = memory_of(a.view(), b.view(), d.view());
  if (system()) {
    EXPECT_EQ(memory, "zero copy");
  } else {
    EXPECT_NE(memory.find("A is copied"), std::string::npos) << memory;
    EXPECT_NE(memory.find("the result is copied"), std::string::npos) << memory;
  }
}

TEST_P(Masked, UsmOfEveryKindIsReadInPlace) {
  sycl::queue& queue = context_.state().queue;
  for (const auto kind : {sycl::usm::alloc::host, sycl::usm::alloc::shared, sycl::usm::alloc::device}) {
    auto* memory = static_cast<float*>(sycl::malloc(3 * 64 * 64 * sizeof(float), queue, kind));
    ASSERT_NE(memory, nullptr);
    std::fill(memory, memory + 3 * 64 * 64, 1.f);
    // Views into the middle of an allocation are found by pointer too.
    const MatrixView a = row_major(memory + 5, 60, 60), b = row_major(memory + 4096 + 9, 60, 60), d = row_major(memory + 8192 + 1, 60, 60);
    EXPECT_EQ(memory_of(a, b, d), "zero copy");
    gemm(context_, a, b, nullptr, d, options_);
    EXPECT_EQ(memory[8192 + 1], 60.f);
    EXPECT_EQ(memory[8192 + 3600], 60.f);
    EXPECT_EQ(memory[8192], 1.f);
    EXPECT_EQ(memory[8192 + 3601], 1.f);
    sycl::free(memory, queue);
  }
}

TEST_P(Masked, MixedOperands) {
  sycl::queue& queue = context_.state().queue;
  auto* memory = sycl::malloc_shared<float>(50 * 90, queue);
  Guarded<float> a(70, 50), b(50, 90), d(70, 90);
  for (auto* x : {&a, &b, &d}) fill(*x);
  for (int i = 0; i < 50; ++i)
    for (int j = 0; j < 90; ++j) memory[i * 90 + j] = b.at(i, j);
  const MatrixView b_usm = row_major(memory, 50, 90);
  if (!system()) {
    const std::string text = memory_of(a.view(), b_usm, d.view());
    EXPECT_NE(text.find("A is copied"), std::string::npos) << text;
    EXPECT_EQ(text.find("B is copied"), std::string::npos) << text;
  }
  gemm(context_, a.view(), b_usm, nullptr, d.view(), options_);
  test::expect_product<float>(a, b, nullptr, d, 1, 0, "B in shared memory");
  sycl::free(memory, queue);
}

TEST_P(Masked, BiasOfTheHost) {
  Guarded<float> a(70, 50), b(50, 90), d(70, 90);
  for (auto* x : {&a, &b, &d}) fill(*x);
  std::vector<float> bias(90);
  for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = float(j);
  options_.epilogue.bias = bias.data();
  options_.epilogue.bias_axis = BiasAxis::column;
  gemm(context_, a.view(), b.view(), nullptr, d.view(), options_);
  for (int i = 0; i < 70; ++i)
    for (int j = 0; j < 90; ++j) d.at(i, j) -= bias[std::size_t(j)];
  for (int i = 0; i < 70; ++i)
    for (int j = 0; j < 90; ++j) {
      double sum = 0;
      for (int x = 0; x < 50; ++x) sum += double(a.at(i, x)) * b.at(x, j);
      ASSERT_NEAR(d.at(i, j), sum, 1e-3);
    }
}

TEST_P(Masked, RepeatedProductsReuseTheirMemory) {
  Guarded<float> a(70, 50), b(50, 90), d(70, 90);
  for (auto* x : {&a, &b, &d}) fill(*x);
  for (int i = 0; i < 20; ++i) gemm(context_, a.view(), b.view(), nullptr, d.view(), options_);
  EXPECT_EQ(context_.state().pool.bytes_in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Devices, Masked,
                         testing::Values(std::tuple{true, true, true}, std::tuple{false, true, true}, std::tuple{false, true, false},
                                         std::tuple{false, false, true}));

// C is one matrix of the result's stack, repeated: in place for the first product, and overwritten before the second one reads it.
TEST(Aliasing, CThatIsPartOfTheResult) {
  std::vector<float> a(2 * 30 * 30, 1.f), b(2 * 30 * 30, 1.f), d(2 * 30 * 30, 5.f);
  MatrixView stack = row_major(nullptr, 30, 30);
  stack.batch = {{2, 900}};
  MatrixView va = stack, vb = stack, vd = stack;
  va.data = a.data(), vb.data = b.data(), vd.data = d.data();
  const MatrixView c = row_major(d.data(), 30, 30);
  for (const char* kernel : {"host", "packed", "naive"}) {
    std::fill(d.begin(), d.end(), 5.f);
    GemmOptions options;
    options.kernel = kernel;
    options.epilogue.beta = 1;
    gemm(context("cpu"), va, vb, &c, vd, options);
    for (float v : d) ASSERT_EQ(v, 35.f) << kernel;
  }
}

TEST(MemoryPool, HandsOutNothingTwice) {
  Context& c = context("cpu");
  MemoryPool pool(c.state().queue, 1 << 20);
  void* first = pool.take(1000, sycl::usm::alloc::host);
  void* second = pool.take(1000, sycl::usm::alloc::host);
  EXPECT_NE(first, second);
  pool.give_back(first);
  EXPECT_EQ(pool.take(900, sycl::usm::alloc::host), first);
  pool.give_back(first);
  pool.give_back(first);  // a second return changes nothing
  pool.give_back(second);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  pool.release_cached();
}

TEST(MemoryPool, SaysWhenThereIsNoMore) {
  Context& c = context("cpu");
  int asked = 0;
  MemoryPool pool(c.state().queue, 1 << 20, [&] { ++asked; });
  pool.give_back(pool.take(1000, sycl::usm::alloc::host));
  EXPECT_EQ(asked, 0);
  EXPECT_THROW(pool.take(std::size_t(1) << 50, sycl::usm::alloc::host), OutOfMemoryError);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_EQ(pool.bytes_cached(), 0u);
  EXPECT_EQ(asked, 1) << "scratch memory is given back for it";
}

// Each gives the other what it only keeps for reuse.
TEST(Scratch, AndPoolHelpEachOther) {
  Context::State state(context("cpu").state().queue.get_device(), context("cpu").state().info);
  state.pool.give_back(state.pool.take(100000, sycl::usm::alloc::host));
  ASSERT_GT(state.pool.bytes_cached(), 0u);
  state.scratch.limit(1 << 22);
  ASSERT_NE(state.scratch.require(1 << 22, 0), nullptr);
  EXPECT_GT(state.pool.bytes_cached(), 0u);
  EXPECT_THROW(state.scratch.require(1 << 23, 0), OutOfMemoryError);
  EXPECT_EQ(state.pool.bytes_cached(), 0u);
  EXPECT_EQ(state.scratch.bytes(), 0u);
  ASSERT_NE(state.scratch.require(1 << 20, 0), nullptr);
  EXPECT_THROW(state.pool.take(std::size_t(1) << 50, sycl::usm::alloc::host), OutOfMemoryError);
  EXPECT_EQ(state.scratch.bytes(), 0u);
}

}  // namespace
}  // namespace sycl_mat
