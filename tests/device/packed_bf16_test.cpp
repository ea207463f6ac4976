// bfloat16 by the processor's dot products: layouts, edges of panels and blocks, odd depths, stacks, write-back, many cores, and the
// numbers that the instruction does not keep. Each against float64, or exactly on small integers.
#include <cstdlib>

#include "kernel_harness.hpp"

namespace sycl_mat::harness {
namespace {

const int vectoriser_off = setenv("CL_CONFIG_USE_VECTORIZER", "False", 1);  // as in packed_test.cpp

class PackedBf16 : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  void SetUp() override {
    if (!harness().info.has_bfloat16_dots) GTEST_SKIP() << "the processor has no AVX512_BF16";
  }
  Case layout() const { return {.dtype = DType::bfloat16, .trans_a = GetParam().first, .trans_b = GetParam().second}; }
  static void check(Case c, bool at_end = true) { harness().check("packed_bf16", {}, c, at_end); }
};

/// Around the vector (16), the panel (64), the row panel (6), the rows made ready together (48); odd depths; nothing.
constexpr index_t shapes[][3] = {{1, 1, 1},      {6, 64, 32},   {5, 63, 31},   {7, 65, 33},     {13, 16, 64}, {48, 128, 2},
                                 {97, 131, 101}, {37, 200, 70}, {1, 300, 65},  {150, 1, 40},    {2, 17, 201}, {16, 16, 0},
                                 {49, 33, 1},    {12, 47, 3},   {55, 257, 99}, {20, 70, 3 * 77}};

TEST_P(PackedBf16, Shapes) {
  Case c = layout();
  for (const bool integers : {false, true}) {
    bool at_end = integers;
    for (const auto& [m, n, k] : shapes) {
      c.m = m, c.n = n, c.k = k, c.integers = integers;
      c.gap = integers ? 3 : 0;  // what lies between the lines is no number
      check(c, at_end);
      at_end = !at_end;
    }
  }
  c.backwards = true;
  c.m = 70, c.n = 90, c.k = 35;
  check(c);
  check(c, false);
}

TEST_P(PackedBf16, SeveralBlocks) {
  Case c = layout();
  c.integers = true;
  for (const auto& [m, n, k] : {std::tuple(20, 70, 3201), std::tuple(1033, 64, 1600), std::tuple(13, 2200, 40)}) {
    c.m = m, c.n = n, c.k = k;
    check(c);
  }
}

TEST_P(PackedBf16, MoreGroupsThanCores) {
  const int before = harness().info.compute_units;
  for (const int cores : {1, 3, 7}) {
    SCOPED_TRACE(std::to_string(cores) + " cores");
    harness().info.compute_units = cores;
    Case c = layout();
    c.integers = true;
    c.m = 97, c.n = 131, c.k = 101;
    check(c);
    c.m = 40, c.n = 50, c.k = 5001;  // K is shared
    check(c);
    c.alpha = 2, c.beta = -1, c.bias = BiasAxis::row, c.activation = Activation::relu;
    check(c);
    c.batch_outer = 2, c.batch_inner = 3, c.k = 601;
    check(c);
  }
  harness().info.compute_units = before;
}

TEST_P(PackedBf16, Epilogue) {
  for (const index_t k : {index_t(0), index_t(21), index_t(1700)}) {
    Case c = layout();
    c.m = 31, c.n = 75, c.k = k, c.alpha = 0.5, c.beta = -2, c.bias = BiasAxis::column, c.gap = 1;
    check(c);
    c.beta = 0, c.activation = Activation::silu;
    check(c);
  }
}

/// What a product of m × n × k gives with A's and B's elements from two functions, as float.
template <class A, class B>
std::vector<double> product(index_t m, index_t n, index_t k, std::pair<bool, bool> transposed, A a_of, B b_of) {
  Harness& h = harness();
  const DType type = DType::bfloat16;
  Stack a(h.queue, type, m, k, transposed.first, 0, false, 1, 1, true), b(h.queue, type, k, n, transposed.second, 0, false, 1, 1, true);
  Stack d(h.queue, type, m, n, false, 0, false, 1, 1, true);
  for (index_t p = 0; p < k; ++p) {
    for (index_t i = 0; i < m; ++i) put(a.element(0, i, p), type, a_of(i, p));
    for (index_t j = 0; j < n; ++j) put(b.element(0, p, j), type, b_of(p, j));
  }
  Problem p;
  p.m = m, p.n = n, p.k = k, p.dtype = p.out = type, p.accumulator = DType::float32;
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel("packed_bf16");
  const Plan plan = kernel.plan(kernel, p, h.info, {});
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0xff, plan.scratch_bytes);  // NaN: what was never written must not get in
  std::memset(scratch.data(), 0, plan.counter_bytes);
  h.launch(plan, p, scratch.data());
  h.queue.wait_and_throw();
  std::vector<double> result;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) result.push_back(get(d.element(0, i, j), type));
  return result;
}

TEST_P(PackedBf16, NaNAndInfinity) {
  for (const index_t k : {20, 21}) {
    const index_t m = 70, n = 70;
    const auto d = product(
        m, n, k, GetParam(),
        [&](index_t i, index_t p) { return i == 1 && p == k - 1 ? double(INFINITY)
                                           : i == 2 && p == 4   ? double(NAN)
                                                                : 1; },
        [](index_t, index_t j) { return j == 3 ? 0. : 1.; });
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        const double x = d[i * n + j];
        if (i == 2 || (i == 1 && j == 3))
          ASSERT_TRUE(std::isnan(x)) << i << ", " << j;
        else
          ASSERT_EQ(x, i == 1 ? INFINITY : j == 3 ? 0 : double(k)) << i << ", " << j;
      }
  }
}

/// The instruction takes denormal numbers as zeros; a large factor makes them matter. Everywhere in A's rows and B's panels.
TEST_P(PackedBf16, DenormalNumbers) {
  const index_t m = 55, n = 130;
  for (const index_t k : {2, 31, 70})
    for (const auto& [i0, p0] : {std::pair<index_t, index_t>(0, 0), {54, k - 1}, {50, k / 2}}) {
      const auto in_a = product(
          m, n, k, GetParam(), [&](index_t i, index_t p) { return i == i0 && p == p0 ? -0x1p-130 : 0x1p-100; },
          [](index_t, index_t) { return 0x1p100; });
      const auto in_b = product(
          m, n, k, GetParam(), [](index_t, index_t) { return 0x1p100; },
          [&](index_t p, index_t j) { return j == 2 * i0 && p == p0 ? -0x1p-130 : 0x1p-100; });
      const double usual = bfloat_to_float(float_to_bfloat(float(k))), changed = bfloat_to_float(float_to_bfloat(float(k - 1 - 0x1p-30)));
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j) {
          ASSERT_EQ(in_a[i * n + j], i == i0 ? changed : usual) << k << ": " << i << ", " << j;
          ASSERT_EQ(in_b[i * n + j], j == 2 * i0 ? changed : usual) << k << ": " << i << ", " << j;
        }
    }
  const auto alone =
      product(m, n, 3, GetParam(), [](index_t, index_t p) { return p == 1 ? 0x1p-130 : 0; }, [](index_t, index_t) { return 0x1p120; });
  for (const double x : alone) ASSERT_EQ(x, 0x1p-10);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PackedBf16,
                         testing::Values(std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true)),
                         [](const auto& info) { return std::string(info.param.first ? "T" : "N") + (info.param.second ? "T" : "N"); });

TEST(PackedBf16Choice, WhereTheProcessorHasIt) {
  DeviceInfo device = harness().info;
  if (!device.is_cpu()) GTEST_SKIP() << "no CPU device";
  device.has_bfloat16_dots = true;
  const Kernel& kernel = find_kernel("packed_bf16");
  Problem p;
  p.m = p.n = p.k = 500;
  p.dtype = p.out = DType::bfloat16, p.accumulator = DType::float32;
  EXPECT_EQ(kernel.why_not(p, device), "");
  EXPECT_GT(kernel.preference(p, device), find_kernel("packed").preference(p, device));
  p.precision = Precision::ieee;
  EXPECT_NE(kernel.why_not(p, device), "");
  p.precision = Precision::automatic;
  device.has_bfloat16_dots = false;
  EXPECT_NE(kernel.why_not(p, device).find("AVX512_BF16"), std::string::npos);
  device.has_bfloat16_dots = true;
  p.dtype = p.out = DType::float16;
  EXPECT_NE(kernel.why_not(p, device), "");
  p.dtype = p.out = DType::bfloat16;
  p.m = 3;  // most of a register block would be empty
  EXPECT_LT(kernel.preference(p, device), find_kernel("packed").preference(p, device));
}

}  // namespace
}  // namespace sycl_mat::harness
