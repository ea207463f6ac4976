// The ladder and the tiled kernel: every layout, shapes around the edges of tiles and chunks, stacks, write-back, element types,
// constants of every kind. Each against float64, or exactly on small integers.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernel_harness.hpp"
#include "params_tile.hpp"

namespace sycl_mat::harness {
namespace {

constexpr const char* ladder[] = {"naive", "tiled_local", "tiled_coarsened", "tiled_vector", "tiled_double_buffered"};

/// Around the blocks (64, 128), the tiles' depth (8, 16) and the chunks (4, 8) of the constants below; primes; vectors; nothing.
constexpr index_t shapes[][3] = {{64, 64, 16}, {128, 64, 64}, {1, 1, 1},    {3, 5, 7},   {65, 63, 17},  {127, 129, 31}, {130, 67, 8},
                                 {1, 100, 33}, {97, 1, 40},   {71, 139, 1}, {16, 16, 0}, {64, 200, 15}, {257, 66, 73}};

void check_shapes(const char* kernel, const Params& params, Case c) {
  bool at_end = true;
  for (const auto& [m, n, k] : shapes) {
    c.m = m, c.n = n, c.k = k;
    harness().check(kernel, params, c, at_end);
    at_end = !at_end;
  }
}

class EveryKernel : public testing::TestWithParam<const char*> {};

TEST_P(EveryKernel, LayoutsAndShapes) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      Case c{.trans_a = trans_a, .trans_b = trans_b};
      check_shapes(GetParam(), {}, c);
      c.gap = 3;
      c.integers = true;
      check_shapes(GetParam(), {}, c);
      c.backwards = true;
      c.m = 70, c.n = 90, c.k = 35;
      harness().check(GetParam(), {}, c);
      harness().check(GetParam(), {}, c, false);
    }
}

TEST_P(EveryKernel, Epilogue) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::sigmoid, Activation::tanh, Activation::silu})
    harness().check(GetParam(), {},
                    Case{.m = 70, .n = 75, .k = 20, .alpha = 0.5, .bias = BiasAxis::column, .activation = activation, .gap = 1});
  harness().check(GetParam(), {}, Case{.m = 70, .n = 75, .k = 20, .alpha = -2, .beta = 0.25, .bias = BiasAxis::row});
  harness().check(GetParam(), {}, Case{.m = 70, .n = 75, .k = 0, .alpha = -2, .beta = 0.25, .bias = BiasAxis::row});
  harness().check(GetParam(), {}, Case{.m = 7, .n = 5, .k = 20, .alpha = 3, .beta = -1, .integers = true});
}

TEST_P(EveryKernel, Stacks) {
  harness().check(GetParam(), {}, Case{.m = 33, .n = 17, .k = 20, .batch_outer = 3, .batch_inner = 2, .gap = 2});
  harness().check(GetParam(), {}, Case{.m = 65, .n = 70, .k = 20, .batch_outer = 1, .batch_inner = 3, .broadcast_a = true});
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryKernel, testing::ValuesIn(ladder), [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Real, EveryKernel, testing::Values("tiled"), [](const auto& info) { return std::string(info.param); });

// ---- constants --------------------------------------------------------------------------------------------------------------------
TEST(TiledConstants, Sets) {
  const std::vector<int>& sizes = harness().info.sub_group_sizes;
  const int sub_group = std::find(sizes.begin(), sizes.end(), 8) != sizes.end() ? 8 : sizes.front();
  const TiledChoice sets[] = {
      {{16, 16, 8, 8, 4, 8}, {}},                             // the blog's tuned ones
      {{8, 16, 8, 16, 8, 4}, {.ahead = 2}},                   // large blocks of results
      {{4, 8, 12, 3, 5, 4}, {.pad = 1}},                      // nothing is a power of two, nor aligned
      {{16, 16, 4, 1, 1, 4}, {.a_transposed = 0, .pad = 0}},  // more work-items than chunks
      {{2, 2, 16, 4, 8, 16}, {.a_transposed = 0, .pad = 0, .strided = 0, .order = 0, .ahead = 0}},  // far more chunks than work-items
      {{8, 8, 16, 4, 4, 4}, {.local = 0}},                                                          // no local memory
      {{8, sub_group, 16, 4, 4, 4}, {.local = 2, .sub_group = sub_group}},                          // a's rows once a sub-group
      {{4, 2 * sub_group, 8, 12, 2, 4}, {.a_transposed = 0, .ahead = 0, .local = 2, .sub_group = sub_group}},
      {{8, 8, 16, 4, 4, 4}, {.split_k = 4, .swizzle = 2}},
      {{5, 7, 6, 2, 4, 2}, {.pad = 3, .ahead = 1, .split_k = 3, .swizzle = 3}},
      {{8, 8, 1, 2, 2, 1}, {.ahead = 1}},     // one k a tile
      {{8, 8, 4, 4, 4, 4}, {.split_k = 20}},  // sums added in two steps
      {{8, 8, 4, 4, 4, 4}, {.share = 7}},     // shares that end inside blocks
      {{4, 4, 8, 4, 4, 4}, {.ahead = 2, .swizzle = 2, .share = 50}},
      {{8, 8, 8, 4, 4, 4}, {.share = 1}},  // blocks always come out even: the code for shares, with none
      {{8, 2, 4, 2, 8, 4}, {.ahead = 2, .share = 3}},
      {{4, 4, 2, 4, 4, 2}, {.local = 0, .share = 300}},  // many parts a block
  };
  for (const TiledChoice& set : sets) {
    if (set.options.local == 2 && harness().info.backend == "cuda") {  // no function for it there
      EXPECT_NE(broken_constraint(set.params, set.options, harness().info), "");
      continue;
    }
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(to_string(set.params) + " " + to_string(set.options));
      Case c{.trans_a = transposed, .trans_b = transposed};
      check_shapes("tiled", set, c);
      if (transposed && set.options.split_k == 1 && set.options.share == 0) continue;
      c = Case{.m = 130, .n = 100, .k = 1000, .trans_a = transposed, .trans_b = !transposed, .gap = 1, .integers = true};
      harness().check("tiled", set, c);
    }
  }
}

/// Copies that the planner makes have room behind their lines: blocks at an edge begin at whole chunks then. What is there (NaN here) must
/// not get into results.
TEST(TiledConstants, PaddedLines) {
  for (const TiledChoice& set : {TiledChoice{{8, 8, 16, 4, 4, 4}, {}}, TiledChoice{{8, 16, 8, 8, 4, 8}, {.ahead = 2}},
                                 TiledChoice{{4, 8, 8, 4, 2, 4}, {.share = 5}}})
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true})
        for (const auto& [m, n, k] : {std::array<index_t, 3>{129, 131, 40}, {63, 66, 35}, {31, 97, 17}, {128, 64, 32}}) {
          SCOPED_TRACE(to_string(set.params) + " " + to_string(set.options));
          // As many elements behind each line as the longest chunk, and for some of the lines it begins at one.
          Case c{.m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b, .gap = 8 - (trans_a ? m : k) % 8 + 8, .padded = true};
          harness().check("tiled", set, c);
          c.batch_inner = 2;
          c.gap = 8;
          harness().check("tiled", set, c);
        }
}

class Together : public testing::TestWithParam<TileOptions> {};

TEST_P(Together, GivesTheSameBitsEveryTime) {
  const TiledChoice set{{8, 8, 8, 4, 4, 4}, GetParam()};
  const index_t n = 96, k = 3000;
  Harness& h = harness();
  Stack a(h.queue, DType::float32, n, k, false, 0, false, 1, 1, true), b(h.queue, DType::float32, k, n, false, 0, false, 1, 1, true);
  Stack d(h.queue, DType::float32, n, n, false, 0, false, 1, 1, true);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> real(-1, 1);
  for (index_t i = 0; i < n; ++i)
    for (index_t p = 0; p < k; ++p)
      put(a.element(0, i, p), DType::float32, real(random)), put(b.element(0, p, i), DType::float32, real(random));
  Problem p;
  p.m = p.n = n, p.k = k;
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel("tiled");
  const Plan plan = kernel.plan(kernel, p, h.info, set);
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0, plan.counter_bytes);
  std::vector<float> first(n * n);
  for (int run = 0; run < 20; ++run) {
    h.launch(plan, p, scratch.data());
    h.queue.wait_and_throw();
    if (run == 0) std::memcpy(first.data(), d.element(0, 0, 0), first.size() * 4);
    ASSERT_EQ(std::memcmp(first.data(), d.element(0, 0, 0), first.size() * 4), 0) << "run " << run;
  }
}
INSTANTIATE_TEST_SUITE_P(Options, Together,
                         testing::Values(TileOptions{.split_k = 8}, TileOptions{.split_k = 50}, TileOptions{.share = 25},
                                         TileOptions{.share = 200}),
                         [](const auto& info) {
                           return "split" + std::to_string(info.param.split_k) + "share" + std::to_string(info.param.share);
                         });

// ---- element types ----------------------------------------------------------------------------------------------------------------
class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, Tiled) {
  const DType type = GetParam();
  for (const bool transposed : {false, true}) {
    check_shapes("tiled", {}, Case{.dtype = type, .trans_a = transposed, .trans_b = transposed});
    check_shapes("tiled", {}, Case{.dtype = type, .trans_a = transposed, .trans_b = !transposed, .gap = 1, .integers = true});
  }
  Case c{.m = 70,
         .n = 75,
         .k = 20,
         .dtype = type,
         .alpha = 2,
         .beta = -1,
         .bias = BiasAxis::column,
         .activation = Activation::relu,
         .batch_outer = 2};
  harness().check("tiled", {}, c);
  if (type != DType::int8) {
    c.activation = Activation::gelu;
    harness().check("tiled", {}, c);
  }
  harness().check("tiled", TiledChoice{{4, 4, 8, 4, 2, 2}, {.split_k = 2}},
                  Case{.m = 20, .n = 30, .k = 700, .dtype = type, .integers = true});
}
INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::Values(DType::float64, DType::float16, DType::bfloat16, DType::int8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// ---- the other body of device.hpp ---------------------------------------------------------------------------------------------------
TEST(StandardSycl, KernelsCompileAndRunWithTheStandardHeaders) {
  Harness& h = harness();
  if (h.info.backend == "cuda") GTEST_SKIP() << "entry points for PTX need the builtins";
  h.prefix = "#define SYCL_MAT_STANDARD_SYCL\n";
  for (const char* kernel : {"naive", "tiled_double_buffered", "tiled"})
    h.check(kernel, {}, Case{.m = 70, .n = 75, .k = 40, .alpha = 2, .beta = 1, .activation = Activation::gelu, .batch_outer = 2});
  h.check("tiled", TiledChoice{{8, 8, 8, 4, 4, 4}, {.split_k = 3}}, Case{.m = 70, .n = 75, .k = 400, .integers = true});
  h.prefix.clear();
}

// ---- what is no number ------------------------------------------------------------------------------------------------------------
/// Zero times anything but a number is no number; and what lies beyond an edge must not get in.
TEST_P(EveryKernel, NaNAndInfinity) {
  Harness& h = harness();
  const Kernel& kernel = find_kernel(GetParam());
  for (const index_t n : {5, 70}) {
    const index_t k = 21;
    Stack a(h.queue, DType::float32, n, k, false, 0, false, 1, 1, true), b(h.queue, DType::float32, k, n, false, 0, false, 1, 1, true);
    Stack d(h.queue, DType::float32, n, n, false, 0, false, 1, 1, true);
    for (index_t i = 0; i < n; ++i)
      for (index_t p = 0; p < k; ++p) put(a.element(0, i, p), DType::float32, 1), put(b.element(0, p, i), DType::float32, i == 3 ? 0 : 1);
    put(a.element(0, 1, k - 1), DType::float32, INFINITY);
    put(a.element(0, 2, 4), DType::float32, NAN);
    Problem p;
    p.m = p.n = n, p.k = k;
    p.a = a.operand, p.b = b.operand, p.d = d.operand;
    h.launch(kernel.plan(kernel, p, h.info, kernel.defaults(p, h.info)), p, nullptr);
    h.queue.wait_and_throw();
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) {
        const double x = get(d.element(0, i, j), DType::float32);
        if (i == 2 || (i == 1 && j == 3)) {
          ASSERT_TRUE(std::isnan(x)) << i << ", " << j;
        } else {
          ASSERT_EQ(x, i == 1 ? INFINITY : j == 3 ? 0 : double(k)) << i << ", " << j;
        }
      }
  }
}

}  // namespace
}  // namespace sycl_mat::harness
