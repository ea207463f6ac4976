// Products with few rows or columns on GPUs: every layout and number of vectors, shapes around the edges of chunks and groups, lines that
// begin anywhere, stacks, write-back, element types, K shared among groups. Each against float64, or exactly on small integers.
#include <cstdlib>

#include "kernel_harness.hpp"
#include "plan.hpp"

namespace sycl_mat::harness {
namespace {

// The CPU driver's vectoriser takes seconds for each of these many programs. Read once, when the driver loads.
const int vectoriser_off = setenv("CL_CONFIG_USE_VECTORIZER", "False", 1);

/// As on a device with so many compute units, while it lives: few leave K whole, many share it.
class ComputeUnits {
 public:
  explicit ComputeUnits(int count) : before_(harness().info.compute_units) { harness().info.compute_units = count; }
  ~ComputeUnits() { harness().info.compute_units = before_; }

 private:
  int before_;
};

Problem problem_of(const Case& c) {
  Problem p;
  p.m = c.m, p.n = c.n, p.k = c.k;
  p.dtype = c.dtype, p.accumulator = accumulator_of(c.dtype), p.out = out_of(c.dtype);
  p.a.transposed = c.trans_a, p.b.transposed = c.trans_b;
  p.a.ld = c.trans_a ? c.m : c.k, p.b.ld = c.trans_b ? c.k : c.n, p.d.ld = c.n;
  return p;
}
index_t groups_along_k(const Case& c) {
  const Kernel& kernel = find_kernel("gemv");
  return kernel.plan(kernel, problem_of(c), harness().info, {}).split_k;
}

class EveryLayout : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  Case layout() const { return {.trans_a = GetParam().first, .trans_b = GetParam().second}; }
  /// Few rows, then few columns.
  void check_both(Case c, index_t few, index_t results, bool at_end = true) {
    c.m = few, c.n = results;
    harness().check("gemv", {}, c, at_end);
    c.m = results, c.n = few;
    harness().check("gemv", {}, c, !at_end);
  }
};

// Every size of K has constants, and so a program, of its own: all of them for one and for eight vectors only. NN and TT have every kind of
// long operand, with each number of vectors.
TEST_P(EveryLayout, ShapesAndNumbersOfVectors) {
  const ComputeUnits as_if(1);
  Case c = layout();
  for (const index_t few : {1, 2, 3, 4, 5, 6, 7, 8})
    for (const index_t k : {0, 1, 7, 16, 65, 300}) {
      if (few % 7 != 1 && (k != 65 || c.trans_a != c.trans_b)) continue;
      for (const index_t results : {1, 3, 31, 32, 33, 70, 257}) {
        c.k = k;
        c.integers = !c.integers;
        c.gap = c.integers ? 0 : 3;
        check_both(c, few, results, c.integers);
      }
    }
}

TEST_P(EveryLayout, LongSums) {
  const ComputeUnits as_if(1);
  Case c = layout();
  for (const index_t few : {1, 2, 8})
    for (const index_t gap : {0, 1}) {
      c.k = 5003, c.gap = gap;
      check_both(c, few, 37);
      c.k = 4096, c.integers = gap == 1;
      check_both(c, few, 64);
    }
}

TEST_P(EveryLayout, GroupsShareK) {
  const ComputeUnits as_if(200);
  Case c = layout();
  c.integers = true;
  for (const index_t few : {1, 3, 8})
    for (const index_t results : {1, 40}) {
      c.k = 20011;
      c.m = few, c.n = results;
      EXPECT_GT(groups_along_k(c), 1) << c.text();
      check_both(c, few, results);
    }
  c.alpha = 2, c.beta = -1, c.bias = BiasAxis::row, c.activation = Activation::relu, c.gap = 1;
  check_both(c, 2, 30);
  c.k = 3000, c.bias = BiasAxis::column, c.batch_outer = 3, c.batch_inner = 2;
  check_both(c, 4, 20);
}

TEST_P(EveryLayout, BackwardsStacksAndEpilogue) {
  Case c = layout();
  c.k = 70, c.gap = 2, c.backwards = true;
  check_both(c, 1, 90);
  check_both(c, 5, 90);
  c.backwards = false, c.batch_outer = 3, c.batch_inner = 2;
  check_both(c, 3, 41);
  c.broadcast_a = true;
  check_both(c, 1, 64);
  c.broadcast_a = false, c.batch_inner = 1, c.alpha = -1.5, c.beta = 0.5;
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::sigmoid, Activation::tanh, Activation::silu}) {
    c.activation = activation;
    c.bias = c.bias == BiasAxis::row ? BiasAxis::column : BiasAxis::row;
    check_both(c, 2, 33);
  }
  c.k = 0;
  check_both(c, 2, 33);
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout,
                         testing::Values(std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true)),
                         [](const auto& info) { return std::string(info.param.first ? "T" : "N") + (info.param.second ? "T" : "N"); });

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, LayoutsAndShares) {
  for (const int layout : {0, 1, 2, 3})
    for (const auto& [m, n] : {std::pair(1, 77), std::pair(77, 1), std::pair(3, 64), std::pair(100, 8)}) {
      Case c{.m = m, .n = n, .k = 75, .dtype = GetParam(), .trans_a = (layout & 2) != 0, .trans_b = (layout & 1) != 0};
      harness().check("gemv", {}, c);
      c.alpha = 2, c.beta = -1, c.gap = 1, c.integers = true, c.bias = BiasAxis::column, c.activation = Activation::relu, c.k = 4096;
      const ComputeUnits as_if(64);
      harness().check("gemv", {}, c);
      c.gap = 0;
      harness().check("gemv", {}, c);
    }
}
INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::Values(DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Gemv, NaNAndInfinity) {
  for (const auto& [m, n] : {std::pair(5, 70), std::pair(70, 5)})
    for (const int layout : {0, 1, 2, 3})
      for (const index_t k : {21, 4000}) {
        const ComputeUnits as_if(k > 100 ? 100 : 1);
        check_nan_and_infinity("gemv", m, n, k, layout & 2, layout & 1);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(Gemv, GivesTheSameBitsEveryTime) {
  const ComputeUnits as_if(300);
  Harness& h = harness();
  const index_t n = 50, k = 30000;
  Stack a(h.queue, DType::float32, 2, k, false, 0, false, 1, 1, true), b(h.queue, DType::float32, k, n, false, 0, false, 1, 1, true);
  Stack d(h.queue, DType::float32, 2, n, false, 0, false, 1, 1, true);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> real(-1, 1);
  for (index_t p = 0; p < k; ++p) {
    for (index_t i = 0; i < 2; ++i) put(a.element(0, i, p), DType::float32, real(random));
    for (index_t j = 0; j < n; ++j) put(b.element(0, p, j), DType::float32, real(random));
  }
  Problem p;
  p.m = 2, p.n = n, p.k = k;
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel("gemv");
  const Plan plan = kernel.plan(kernel, p, h.info, {});
  ASSERT_GT(plan.split_k, 1);
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0, plan.counter_bytes);
  std::vector<float> first(2 * n);
  for (int run = 0; run < 20; ++run) {
    h.launch(plan, p, scratch.data());
    h.queue.wait_and_throw();
    if (run == 0) std::memcpy(first.data(), d.element(0, 0, 0), first.size() * 4);
    ASSERT_EQ(std::memcmp(first.data(), d.element(0, 0, 0), first.size() * 4), 0) << "run " << run;
  }
}

TEST(Gemv, RunsWithTheStandardHeaders) {
  Harness& h = harness();
  if (h.info.backend == "cuda") GTEST_SKIP() << "entry points for PTX need the builtins";
  h.prefix = "#define SYCL_MAT_STANDARD_SYCL\n";
  const ComputeUnits as_if(100);
  h.check("gemv", {}, Case{.m = 2, .n = 75, .k = 4000, .alpha = 2, .beta = 1, .activation = Activation::gelu, .batch_outer = 2});
  h.check("gemv", {}, Case{.m = 75, .n = 3, .k = 40, .integers = true});
  h.prefix.clear();
}

}  // namespace
}  // namespace sycl_mat::harness
