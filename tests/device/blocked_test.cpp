// Products in blocks, as on a device with memory of its own, tried on the CPU device with its capabilities masked.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "block_sizes.hpp"
#include "device.hpp"
#include "device/oracle.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

using test::Guarded;
using Order = Guarded<float>::Order;

Context& discrete() {
  static Context* context = [] {
    const sycl::device device = select_device("cpu");
    DeviceInfo info = describe(device);
    info.usm_system = info.unified_memory = false;
    return new Context(std::make_unique<Context::State>(device, info));  // never destroyed, like every context
  }();
  return *context;
}

struct Setup {
  std::int64_t m, n, k, limit;
  int layout;
};

class Blocked : public testing::TestWithParam<Setup> {};

TEST_P(Blocked, IsTheProduct) {
  const auto [m, n, k, limit, layout] = GetParam();
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  const auto order = [&](int bit) { return layout & bit ? Order::columns : Order::rows; };
  Guarded<float> a(m, k, order(1), 3), b(k, n, order(2)), c(m, n, Order::rows, 2), d(m, n, order(4), 5);
  for (auto* x : {&a, &b, &c, &d}) x->fill([&] { return normal(random); });
  std::vector<float> bias(std::size_t(std::max(m, n)));
  for (float& v : bias) v = normal(random);
  GemmOptions options;
  options.kernel = "packed";
  options.max_device_memory = limit;
  options.epilogue.alpha = 0.5;
  options.epilogue.beta = layout & 1 ? -2 : 0;
  options.epilogue.bias = bias.data();
  options.epilogue.bias_axis = layout & 2 ? BiasAxis::row : BiasAxis::column;

  Operands o = check(a.view(), b.view(), &c.view(), d.view(), options);
  const auto sizes = block_sizes(discrete().state(), o, options);
  ASSERT_TRUE(sizes.has_value()) << "this setup is meant to be cut";
  EXPECT_TRUE(sizes->rows < m || sizes->columns < n || sizes->depth < k);

  gemm(discrete(), a.view(), b.view(), &c.view(), d.view(), options);
  d.expect_only_matrix_written("blocked");
  std::vector<float> first(std::size_t(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      first[std::size_t(i * n + j)] = d.at(i, j);
      d.at(i, j) -= bias[std::size_t(options.epilogue.bias_axis == BiasAxis::row ? i : j)];
    }
  int wrong = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 5;
      for (std::int64_t x = 0; x < k; ++x) {
        sum += 0.5 * a.at(i, x) * b.at(x, j);
        magnitude += std::fabs(0.5 * a.at(i, x) * b.at(x, j));
      }
      if (options.epilogue.beta != 0) sum += options.epilogue.beta * c.at(i, j);
      wrong += !(std::fabs(d.at(i, j) - sum) <= test::bound<float>(k, magnitude));
    }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(discrete().state().pool.bytes_in_use(), 0u);

  gemm(discrete(), a.view(), b.view(), &c.view(), d.view(), options);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) ASSERT_EQ(d.at(i, j), first[std::size_t(i * n + j)]) << "not the same bits";
}

INSTANTIATE_TEST_SUITE_P(Cuts, Blocked,
                         testing::Values(Setup{300, 400, 200, 400000, 0}, Setup{300, 400, 200, 400000, 7}, Setup{301, 257, 333, 300000, 1},
                                         Setup{301, 257, 333, 300000, 2}, Setup{150, 170, 3000, 300000, 4},
                                         Setup{150, 170, 3000, 300000, 3}, Setup{64, 64, 20000, 300000, 6}, Setup{1, 5000, 700, 300000, 0},
                                         Setup{5000, 1, 700, 300000, 5}));

TEST(Blocked, NothingFits) {
  std::vector<float> a(100 * 100), b(100 * 100), d(100 * 100);
  GemmOptions options;
  options.kernel = "packed";
  options.max_device_memory = 1000;
  EXPECT_THROW(matmul(discrete(), row_major(a.data(), 100, 100), row_major(b.data(), 100, 100), row_major(d.data(), 100, 100), options),
               OutOfMemoryError);
}

// Where there is memory for everything, all panels are sent for at once.
TEST(Blocked, AllPanelsFit) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Guarded<float> a(500, 600, Order::columns, 3), b(600, 410, Order::rows), c(500, 410, Order::rows, 2), d(500, 410, Order::rows, 5);
  for (auto* x : {&a, &b, &c, &d}) x->fill([&] { return normal(random); });
  GemmOptions options;
  options.kernel = "packed";
  for (const BlockSizes& sizes : {BlockSizes{128, 100, 600}, BlockSizes{500, 64, 600}, BlockSizes{70, 410, 128},
                                  BlockSizes{128, 100, 600, 2}, BlockSizes{300, 200, 600, 3}})
    for (const double beta : {0.0, -2.0}) {
      options.epilogue.beta = beta;
      Operands o = check(a.view(), b.view(), &c.view(), d.view(), options);
      multiply_in_blocks(discrete().state(), o, options, sizes);
      test::expect_product<float>(a, b, &c, d, 1, beta, "all panels fit");
      d.expect_only_matrix_written("all panels fit");
      EXPECT_EQ(discrete().state().pool.bytes_in_use(), 0u);
      const std::vector<float> first = [&] {
        std::vector<float> all;
        for (std::int64_t i = 0; i < 500; ++i)
          for (std::int64_t j = 0; j < 410; ++j) all.push_back(d.at(i, j));
        return all;
      }();
      multiply_in_blocks(discrete().state(), o, options, sizes);
      for (std::int64_t i = 0; i < 500; ++i)
        for (std::int64_t j = 0; j < 410; ++j) ASSERT_EQ(d.at(i, j), first[std::size_t(i * 410 + j)]) << "not the same bits";
    }
}

// What comes after the sums comes once, however often they are continued; and two products at a time do not get into each other's way.
TEST(Blocked, EpilogueOverRoundsInTwoThreads) {
  constexpr index_t m = 260, n = 210, k = 1000;
  const auto product = [](unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> a(m * k), b(k * n), c(m * n), bias(n), whole(m * n), cut(m * n);
    for (auto* x : {&a, &b, &c, &bias})
      for (float& v : *x) v = normal(random);
    GemmOptions options;
    options.kernel = "packed";
    options.epilogue = {.alpha = 0.5, .beta = -2, .bias = bias.data(), .bias_axis = BiasAxis::column, .activation = Activation::relu};
    const MatrixView av = row_major(a.data(), m, k), bv = row_major(b.data(), k, n), cv = row_major(c.data(), m, n);
    Operands once = check(av, bv, &cv, row_major(whole.data(), m, n), options);
    multiply_in_blocks(discrete().state(), once, options, {m, n, k});
    int zeros = 0;
    for (const BlockSizes& sizes : {BlockSizes{100, 90, k, 2}, BlockSizes{128, 128, k, 3}}) {
      Operands o = check(av, bv, &cv, row_major(cut.data(), m, n), options);
      multiply_in_blocks(discrete().state(), o, options, sizes);
      for (index_t i = 0; i < m * n; ++i) {
        ASSERT_NEAR(cut[std::size_t(i)], whole[std::size_t(i)], 2e-4) << i;
        zeros += whole[std::size_t(i)] == 0;
      }
    }
    EXPECT_GT(zeros, 0) << "relu had nothing to do";
  };
  std::thread other([&] { product(1); });
  product(2);
  other.join();
  EXPECT_EQ(discrete().state().pool.bytes_in_use(), 0u);
}

TEST(BlockSizes, AResultOverAnotherOrderOfCIsNotCut) {
  std::vector<float> a(300 * 300), b(300 * 300), d(300 * 300);
  GemmOptions options;
  options.max_device_memory = 400000;
  options.epilogue.beta = 1;
  const MatrixView av = row_major(a.data(), 300, 300), bv = row_major(b.data(), 300, 300), dv = row_major(d.data(), 300, 300),
                   turned = dv.transposed();
  EXPECT_TRUE(block_sizes(discrete().state(), check(av, bv, &dv, dv, options), options).has_value())
      << "each element is read before it is written";
  EXPECT_FALSE(block_sizes(discrete().state(), check(av, bv, &turned, dv, options), options).has_value())
      << "blocks of C would be read after D was written over them";
}

TEST(BlockSizes, RoundsCoverK) {
  for (const index_t k : {600, 2049, 8192, 16384, 100001})
    for (const int rounds : {1, 2, 3}) {
      Operands o;
      o.a.rows = o.a.cols = k;
      const BlockSizes s{100, 100, k, rounds};
      EXPECT_EQ(depths(o, s), rounds);
      EXPECT_EQ(depth_before(o, s, 0), 0);
      EXPECT_EQ(depth_before(o, s, rounds), k);
      for (int x = 0; x < rounds; ++x) EXPECT_LE(depth_before(o, s, x), depth_before(o, s, x + 1));
      if (rounds == 3 && k == 16384) {
        EXPECT_EQ(depth_before(o, s, 1), 1024);
        EXPECT_EQ(depth_before(o, s, 2), 4096);
      }
    }
}

TEST(Blocked, WhatGoesWrongInAPieceReachesTheCaller) {
  std::vector<float> a(300 * 300), b(300 * 300), d(300 * 300);
  GemmOptions options;
  options.kernel = "wgmma16";  // not float32, not here
  options.max_device_memory = 400000;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(matmul(discrete(), row_major(a.data(), 300, 300), row_major(b.data(), 300, 300), row_major(d.data(), 300, 300), options),
                 UnsupportedError);
    ASSERT_EQ(discrete().state().pool.bytes_in_use(), 0u);
  }
}

TEST(Blocked, StacksThatDoNotFit) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Guarded<float> a(100, 80, Order::rows, 0, false, 9), b(80, 90, Order::columns, 0, false, 9), d(100, 90, Order::rows, 4, false, 9);
  for (auto* x : {&a, &b, &d}) x->fill([&] { return normal(random); });
  GemmOptions options;
  options.kernel = "packed";
  options.max_device_memory = 200000;  // one of the nine fits
  matmul(discrete(), a.view(), b.view(), d.view(), options);
  test::expect_product<float>(a, b, nullptr, d, 1, 0, "stack in parts", 9);
  d.expect_only_matrix_written("stack in parts");
}

TEST(BlockOrder, EveryBlockOnceAndPanelsOneByOne) {
  for (const bool fit : {true, false})
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 5}, {5, 3}, {4, 4}, {1, 6}, {6, 1}}) {
      const auto order = block_order(rows, columns, fit);
      EXPECT_EQ(std::set(order.begin(), order.end()).size(), std::size_t(rows * columns));
      EXPECT_EQ(order.size(), std::size_t(rows * columns));
      if (!fit) continue;
      std::set<index_t> seen_rows, seen_columns;
      for (const auto& [i, j] : order) {  // no step needs a panel before its turn
        seen_rows.insert(i);
        seen_columns.insert(j);
        EXPECT_LE(i, index_t(seen_rows.size()) - 1);
        EXPECT_LE(j, index_t(seen_columns.size()) - 1);
      }
    }
}

}  // namespace
}  // namespace sycl_mat
