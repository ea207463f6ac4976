// Copies that a product reads and writes instead: every layout into every layout, types, stacks with matrices in common, odd shapes; what
// lies between the lines and around the matrices must neither be written nor get into a result.
#include "rearrange.hpp"

#include <array>
#include <cmath>
#include <random>

#include "kernel_harness.hpp"
#include "launch.hpp"
#include "plan.hpp"

namespace sycl_mat {
namespace {

using harness::accumulator_of;
using harness::Case;
using harness::get;
using harness::out_of;
using harness::put;
using harness::Stack;

class Copies : public testing::TestWithParam<DType> {
 protected:
  /// Through the library's launch, on small integers, exactly.
  void check(const Case& c, Rearrangement how) {
    SCOPED_TRACE(c.text());
    Context::State& state = context("").state();
    sycl::queue& queue = state.queue;
    const DType out = out_of(c.dtype);
    if (out != c.dtype) how.d = false;  // the planner has no copies of other types than A's
    const index_t outer_a = c.broadcast_a ? 1 : c.batch_outer, inner_a = c.broadcast_a ? 1 : c.batch_inner;
    Stack a(queue, c.dtype, c.m, c.k, c.trans_a, c.gap, c.backwards, outer_a, inner_a, true);
    Stack b(queue, c.dtype, c.k, c.n, c.trans_b, c.gap, c.backwards, c.batch_outer, c.batch_inner, false);
    Stack d(queue, out, c.m, c.n, false, c.gap, c.backwards, c.batch_outer, c.batch_inner, true);
    if (c.broadcast_a) a.operand.inner = a.operand.outer = 0;
    std::mt19937 random(7);
    std::uniform_int_distribution<int> integer(-3, 3);
    for (index_t g = 0; g < outer_a * inner_a; ++g)
      for (index_t i = 0; i < c.m; ++i)
        for (index_t p = 0; p < c.k; ++p) put(a.element(g, i, p), c.dtype, integer(random));
    for (index_t g = 0; g < c.batch_outer * c.batch_inner; ++g)
      for (index_t p = 0; p < c.k; ++p)
        for (index_t j = 0; j < c.n; ++j) put(b.element(g, p, j), c.dtype, integer(random));

    Problem p;
    p.m = c.m, p.n = c.n, p.k = c.k, p.batch_outer = c.batch_outer, p.batch_inner = c.batch_inner;
    p.dtype = c.dtype, p.accumulator = accumulator_of(c.dtype), p.out = out;
    p.a = a.operand, p.b = b.operand, p.d = d.operand;
    const Kernel& kernel = find_kernel("tiled");
    if (const std::string reason = kernel.why_not(p, state.info); !reason.empty()) GTEST_SKIP() << reason;
    const Plan plan = plan_rearranged(kernel, p, state.info, kernel.defaults(p, state.info), how);
    ASSERT_EQ(plan.copies.size(), std::size_t(how.a.has_value() + how.b.has_value() + how.d));
    launch(state, plan, state.programs.get(kernel, plan.constants), p);
    state.wait();
    for (index_t g = 0; g < c.batch_outer * c.batch_inner; ++g)
      for (index_t i = 0; i < c.m; ++i)
        for (index_t j = 0; j < c.n; ++j) {
          double sum = 0;
          for (index_t x = 0; x < c.k; ++x) sum += get(a.element(c.broadcast_a ? 0 : g, i, x), c.dtype) * get(b.element(g, x, j), c.dtype);
          const double rounding = out == p.accumulator ? 0 : harness::unit_roundoff(out) * std::fabs(sum);  // of the result alone
          ASSERT_NEAR(get(d.element(g, i, j), out), sum, rounding) << g << ", " << i << ", " << j << " " << plan.reason;
        }
    EXPECT_EQ(a.damaged() + b.damaged() + d.damaged(), 0) << "elements between the lines were written";
  }
};

TEST_P(Copies, EveryLayoutIntoEveryOther) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const Rearrangement& how :
           {Rearrangement{false, true}, Rearrangement{true, false}, Rearrangement{true, {}, true}, Rearrangement{{}, true, true}})
        for (const auto& [m, n, k] : {std::array<index_t, 3>{65, 63, 67}, {1, 130, 5}, {129, 3, 64}, {70, 70, 1}})
          check({.m = m, .n = n, .k = k, .dtype = GetParam(), .trans_a = trans_a, .trans_b = trans_b, .gap = 1}, how);
}

TEST_P(Copies, StacksAndNegativeDistances) {
  for (const bool trans : {false, true}) {
    Case c{.m = 35, .n = 66, .k = 70, .dtype = GetParam(), .trans_a = trans, .trans_b = !trans, .batch_outer = 2, .batch_inner = 3};
    c.gap = 3;
    check(c, {false, false});
    check(c, {false, {}, true});
    c.backwards = true;
    check(c, {true, true});
    check(c, {{}, {}, true});
    c.broadcast_a = true;
    check(c, {true, false});
  }
}
INSTANTIATE_TEST_SUITE_P(Types, Copies, testing::Values(DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// A remembered plan says how many matrices are copied.
TEST(Prepared, PlansOfStacksThatRepeatAMatrixAreTheirOwn) {
  Context::State& state = context("").state();
  Problem p;
  p.m = p.n = p.k = 20, p.batch_outer = 3;
  p.a.ld = p.b.ld = p.d.ld = 20;
  p.a.outer = p.b.outer = p.d.outer = 448;
  GemmOptions options;
  options.kernel = "tiled";
  const auto get = [&](const Problem& q) { return state.prepared.get(state.programs, q, state.info, options); };
  const auto first = get(p);
  EXPECT_EQ(first, get(p));
  for (Operand Problem::* const operand : {&Problem::a, &Problem::b, &Problem::d}) {
    Problem q = p;
    (q.*operand).outer = 0;
    EXPECT_NE(first, get(q));
  }
}

// ---- the choice -------------------------------------------------------------------------------------------------------------------
DeviceInfo gpu() {
  DeviceInfo device;
  device.type = "gpu";
  device.global_memory = std::int64_t(1) << 37;
  return device;
}
Problem product(index_t m, index_t n, index_t k, index_t lda, index_t ldb) {
  Problem p;
  p.m = m, p.n = n, p.k = k;
  p.a.ld = lda, p.b.ld = ldb, p.d.ld = n;
  return p;
}
/// A kernel that takes half as long again for each operand whose lines begin anywhere, and twice as long where A is stored along m.
double half_again(const Problem& p, const DeviceInfo&) {
  const auto factor = [](const Operand& o) { return o.ld % 4 ? 1.5 : 1.0; };
  return p.flops() / 5e7 * factor(p.a) * factor(p.b) * (p.a.transposed ? 2 : 1);
}
Kernel kernel_with(double (*microseconds)(const Problem&, const DeviceInfo&)) {
  return {.name = "some", .file = "", .summary = "", .params = "none", .microseconds = microseconds};
}

TEST(Choice, CopiesWhatIsWorthIt) {
  const Kernel kernel = kernel_with(half_again);
  EXPECT_EQ(worth_copying(kernel, product(4096, 4096, 4096, 4096, 4096), gpu()), Rearrangement());
  EXPECT_EQ(worth_copying(kernel, product(4096, 4096, 4095, 4095, 4096), gpu()), (Rearrangement{false, {}}));
  EXPECT_EQ(worth_copying(kernel, product(4096, 4095, 4096, 4096, 4095), gpu()), (Rearrangement{{}, false}));
  Problem p = product(4095, 4097, 4093, 4095, 4097);
  p.a.transposed = true;
  EXPECT_EQ(worth_copying(kernel, p, gpu()), (Rearrangement{false, false}));
}

TEST(Choice, LeavesAloneWhatIsSmallOrDoesNotFitOrHasNoEstimate) {
  EXPECT_EQ(worth_copying(kernel_with(half_again), product(95, 95, 95, 95, 95), gpu()), Rearrangement());
  EXPECT_EQ(worth_copying(kernel_with(nullptr), product(4095, 4095, 4095, 4095, 4095), gpu()), Rearrangement());
  DeviceInfo small = gpu();
  small.global_memory = 4095 * 4096 * 4;
  EXPECT_EQ(worth_copying(kernel_with(half_again), product(4095, 4095, 4095, 4095, 4095), small), Rearrangement());
  // A flat product: to copy B would take longer than the product.
  EXPECT_EQ(worth_copying(kernel_with(half_again), product(4, 8191, 8191, 8191, 8191), gpu()).b, std::nullopt);
}

TEST(Choice, DoesNotLookAtAddresses) {
  const Kernel kernel = kernel_with(half_again);
  Problem p = product(2048, 2048, 2047, 2047, 2048), q = p;
  q.a.data = reinterpret_cast<void*>(4), q.b.data = reinterpret_cast<void*>(8);
  EXPECT_EQ(worth_copying(kernel, p, gpu()), worth_copying(kernel, q, gpu()));
}

TEST(Choice, ConstantsAreThoseForWhatTheKernelWorksOn) {
  DeviceInfo device = gpu();
  device.architecture = "nvidia-sm90", device.backend = "cuda", device.fingerprint = "nobody's";
  device.compute_units = 132, device.max_work_group_size = 1024, device.local_memory = 227 << 10, device.sub_group_sizes = {32};
  Problem p = product(4096, 4096, 4096, 4096, 4096);
  p.b.transposed = true;
  const Kernel& kernel = find_kernel("tiled");
  const Rearrangement how = worth_copying(kernel, p, device);
  EXPECT_EQ(how, (Rearrangement{true, {}})) << "with both stored the other way round it is faster";
  GemmOptions options;
  options.kernel = "tiled";
  const Plan plan = make_plan(p, device, options);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.params, kernel.defaults(rearranged(p, how), device));
  EXPECT_NE(plan.params, kernel.defaults(p, device));
}

TEST(Choice, AStackIsCopiedOnceWhereItRepeatsAMatrix) {
  Problem p = product(1000, 1000, 1001, 1001, 1000);
  p.batch_outer = 3, p.batch_inner = 5;
  p.b.inner = 1000000;  // the same five for each of the three
  const Problem q = rearranged(p, {false, true});
  EXPECT_EQ(q.a.inner, 0);
  EXPECT_EQ(q.a.outer, 0);
  EXPECT_EQ(q.a.ld, 1024);
  EXPECT_EQ(q.b.inner, 1000 * q.b.ld);
  EXPECT_EQ(q.b.ld, 1024);
  EXPECT_EQ(q.b.outer, 0);
  MatrixCopy copy{Matrix::a, q.a, 256};
  EXPECT_EQ(launch_of(copy, p, nullptr).problem.batch(), 1);
  copy = {Matrix::b, q.b, 256};
  EXPECT_EQ(launch_of(copy, p, nullptr).problem.batch(), 5);
}

}  // namespace
}  // namespace sycl_mat
