// Copies that a product reads and writes instead: every layout into every layout, types, stacks with matrices in common, odd shapes; what
// lies between the lines and around the matrices must neither be written nor get into a result.
#include "rearrange.hpp"

#include <array>
#include <cmath>
#include <map>
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

// ---- the same plan without its copies ---------------------------------------------------------------------------------------------
/// Both ways through the library's launch, on random numbers: the same bits.
void expect_same_bits(std::string_view name, const Case& c, const Rearrangement& how) {
  SCOPED_TRACE(std::string(name) + " " + c.text());
  Context::State& state = context("").state();
  Stack a(state.queue, c.dtype, c.m, c.k, c.trans_a, c.gap, false, 1, 1, true);
  Stack b(state.queue, c.dtype, c.k, c.n, c.trans_b, c.gap, false, 1, 1, true);
  Stack d(state.queue, c.dtype, c.m, c.n, false, c.gap, false, 1, 1, true),
      e(state.queue, c.dtype, c.m, c.n, false, c.gap, false, 1, 1, true);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (index_t x = 0; x < c.k; ++x) {
    for (index_t i = 0; i < c.m; ++i) put(a.element(0, i, x), c.dtype, normal(random));
    for (index_t j = 0; j < c.n; ++j) put(b.element(0, x, j), c.dtype, normal(random));
  }
  Problem p;
  p.m = c.m, p.n = c.n, p.k = c.k;
  p.dtype = p.out = c.dtype, p.accumulator = accumulator_of(c.dtype);
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel(name);
  if (const std::string reason = kernel.why_not(p, state.info); !reason.empty()) GTEST_SKIP() << reason;
  const Plan plan = plan_rearranged(kernel, p, state.info, kernel.defaults(rearranged(p, how), state.info), how);
  launch(state, plan, state.programs.get(kernel, plan.constants), p);
  p.d = e.operand;
  const Plan plain = in_place(plan, p, "");
  launch(state, plain, state.programs.get(kernel, plain.constants), p);
  state.wait();
  for (index_t i = 0; i < c.m; ++i)
    for (index_t j = 0; j < c.n; ++j)
      ASSERT_EQ(get(d.element(0, i, j), c.dtype), get(e.element(0, i, j), c.dtype)) << i << ", " << j << " " << plan.reason;
}

class InPlaceBits : public testing::TestWithParam<std::pair<const char*, DType>> {};
TEST_P(InPlaceBits, AreTheSame) {
  const auto& [kernel, type] = GetParam();
  for (const int layout : {0, 1, 2, 3})
    for (const Rearrangement& how : {Rearrangement{false, false}, Rearrangement{true, true}, Rearrangement{{}, layout < 2}})
      expect_same_bits(kernel, {.m = 131, .n = 200, .k = 1001, .dtype = type, .trans_a = layout % 2 > 0, .trans_b = layout > 1, .gap = 1},
                       how);
}
INSTANTIATE_TEST_SUITE_P(Kernels, InPlaceBits,
                         testing::Values(std::pair{"tiled", DType::float32}, std::pair{"tf32x3", DType::float32},
                                         std::pair{"wgmma16", DType::float16}, std::pair{"mma_sync", DType::float32},
                                         std::pair{"mma_sync", DType::float64}, std::pair{"mma_sync", DType::float16}),
                         [](const auto& info) { return info.param.first + std::string("_") + std::string(name_of(info.param.second)); });

/// A device like any other, with another's name: kernels for that one are chosen and built as for it.
DeviceInfo h200() {
  DeviceInfo device = describe(context("").state().queue.get_device());
  device.architecture = "nvidia-sm90", device.fingerprint = "nobody's";
  device.compute_units = 132;
  device.global_memory = std::int64_t(1) << 37;
  return device;
}

// Tiles, and which parts of K are summed by whom, are what decides the bits.
TEST(InPlace, TilesAndPartsStay) {
  const DeviceInfo device = h200();
  int other = 0;
  for (const auto& [name, type] : {std::pair{"wgmma16", DType::float16}, {"tf32x3", DType::float32}, {"mma_sync", DType::float64}})
    for (const index_t size : {500, 1023, 2047, 4095})
      for (const int layout : {0, 1, 2, 3})
        for (const auto& [to_a, to_b] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
          Problem p;
          p.m = size, p.n = size + 2, p.k = size - 2;
          p.dtype = p.out = type, p.accumulator = accumulator_of(type);
          p.a.transposed = layout % 2, p.b.transposed = layout / 2;
          p.a.ld = p.a.transposed ? p.m : p.k, p.b.ld = p.b.transposed ? p.k : p.n, p.d.ld = p.n;
          const Kernel& kernel = find_kernel(name);
          const Plan with = plan_rearranged(kernel, p, device, {}, {to_a, to_b, true}), without = in_place(with, p, "no room");
          EXPECT_TRUE(without.copies.empty());
          EXPECT_LT(without.scratch_bytes, with.scratch_bytes);
          EXPECT_EQ(without.range.global, with.range.global);
          EXPECT_EQ(without.range.local, with.range.local);
          EXPECT_EQ(std::tie(without.split_m, without.split_n, without.split_k, without.scratch_stride, without.counter_bytes),
                    std::tie(with.split_m, with.split_n, with.split_k, with.scratch_stride, with.counter_bytes));
          EXPECT_EQ(without.reason.find("copied"), std::string::npos) << without.reason;
          EXPECT_NE(reason_of(with, p).find("copied"), std::string::npos) << with.reason;
          EXPECT_EQ(reason_of(without, p), without.reason);
          EXPECT_TRUE(without.reason.ends_with("; no room")) << without.reason;
          // What the family says of these matrices, with the choices of tiles made alike.
          const Plan own = kernel.plan(kernel, p, device, {});
          bool same_choice = true;
          for (std::size_t i = 0; i < own.constants.size(); ++i)
            same_choice &= own.constants[i].first.starts_with("TRANS_") || own.constants[i] == with.constants[i];
          if (same_choice) {
            EXPECT_EQ(without.constants, own.constants) << without.reason;
          }
          other += !same_choice || own.range.global != without.range.global || own.split_n != without.split_n;
        }
  EXPECT_GT(other, 0) << "a new plan would be as good: this test shows nothing";
}

class ShortOfMemory : public testing::Test {
 protected:
  static constexpr index_t size = 511, aligned = 512;
  ShortOfMemory() : a_(size * size), b_(size * size), d_(size * size) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (auto* x : {&a_, &b_})
      for (float& v : *x) v = normal(random);
    options_.kernel = "tiled";
  }
  static Context& device() {
    static Context* one = [] {
      DeviceInfo few = h200();
      few.compute_units = 8;  // on which this product takes so long that copies are worth it
      return new Context(std::make_unique<Context::State>(context("").state().queue.get_device(), few));
    }();
    return *one;
  }
  Context::State& state() { return device().state(); }
  std::vector<float> product() {
    std::fill(d_.begin(), d_.end(), -1.f);
    matmul(device(), row_major(a_.data(), size, size), row_major(b_.data(), size, size).transposed(), row_major(d_.data(), size, size),
           options_);
    return d_;
  }
  Explanation explained() {
    return explain(device(), row_major(a_.data(), size, size), row_major(b_.data(), size, size).transposed(), nullptr,
                   row_major(d_.data(), size, size), options_);
  }
  std::vector<float> a_, b_, d_;
  GemmOptions options_;
};

TEST_F(ShortOfMemory, SameBitsWithoutCopiesAndExplainSaysSo) {
  if (!state().info.usm_system) GTEST_SKIP() << "for the processor: it has the memory, and its name is borrowed";
  const std::vector<float> with = product();
  const Explanation copies = explained();
  ASSERT_NE(copies.reason.find("is copied first"), std::string::npos) << copies.reason;
  const std::size_t scratch = state().scratch.bytes();
  state().scratch.release();
  state().scratch.limit(scratch / 2);
  EXPECT_EQ(product(), with);
  EXPECT_LE(state().scratch.bytes(), scratch / 2);
  const Explanation without = explained();
  EXPECT_EQ(without.reason.find("is copied first"), std::string::npos) << without.reason;
  EXPECT_NE(without.reason.find("no memory for copies"), std::string::npos) << without.reason;
  EXPECT_LT(without.scratch, copies.scratch);
  state().scratch.limit(std::size_t(1) << 40);
  EXPECT_EQ(product(), with);
  state().prepared.clear();
  EXPECT_NE(explained().reason.find("is copied first"), std::string::npos);
}

TEST_F(ShortOfMemory, CopiesCountForTheCallersLimit) {
  if (!state().info.usm_system) GTEST_SKIP();
  const std::vector<float> with = product();
  const std::int64_t operands = 3 * size * size * 4;
  options_.max_device_memory = operands + 2 * 4 * size * aligned - 1;  // two copies, but for a byte
  EXPECT_NE(explained().reason.find("max_device_memory leaves no room"), std::string::npos) << explained().reason;
  EXPECT_EQ(product(), with);
  options_.max_device_memory = operands + 2 * 4 * size * aligned;
  EXPECT_NE(explained().reason.find("is copied first"), std::string::npos) << explained().reason;
}

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

// The matrices of a stack begin where no vector does, though their lines are apart by whole ones.
TEST(Choice, LooksAtTheDistancesOfMatrices) {
  Problem p = product(2048, 2048, 2048, 2048, 2048);
  p.batch_outer = 2, p.batch_inner = 2;
  p.a.inner = 2048 * 2048, p.b.inner = 2048 * 2048, p.d.inner = 2048 * 2048;
  p.a.outer = 3 * 2048 * 2048, p.b.outer = 3 * 2048 * 2048, p.d.outer = 2 * 2048 * 2048;
  EXPECT_EQ(worth_copying(kernel_with(half_again), p, gpu()), Rearrangement());
  p.a.outer += 1;
  EXPECT_EQ(worth_copying(kernel_with(half_again), p, gpu()), (Rearrangement{false, {}}));
  p.b.inner += 2;
  EXPECT_EQ(worth_copying(kernel_with(half_again), p, gpu()), (Rearrangement{false, false}));
}

TEST(Choice, NoMoreWorkItemsThanALaunchCounts) {
  const Kernel kernel = kernel_with([](const Problem& p, const DeviceInfo&) { return p.a.ld % 4 ? 1e6 : 1.0; });
  Problem p = product(3, 3, 3, 3, 3);
  p.a.outer = p.b.outer = p.d.outer = 9;
  p.batch_outer = 8 << 20;
  EXPECT_EQ(worth_copying(kernel, p, gpu()), Rearrangement());
  p.batch_outer = (8 << 20) - 1;
  EXPECT_EQ(worth_copying(kernel, p, gpu()), (Rearrangement{false, {}}));
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
  const Kernel& kernel = find_kernel("tiled");
  GemmOptions options;
  options.kernel = "tiled";
  int copied = 0, others = 0;  // which they are is the estimate's matter
  for (const index_t size : {255, 511, 700, 1000, 1023, 1500, 2047, 3001, 4095, 4096, 8191})
    for (const int layout : {0, 1, 2, 3}) {
      Problem p = product(size, size, size, size, size);
      p.a.transposed = layout % 2, p.b.transposed = layout / 2;
      const Rearrangement how = worth_copying(kernel, p, device);
      const Plan plan = make_plan(p, device, options);
      EXPECT_EQ(plan.copies.size(), std::size_t(how.a.has_value() + how.b.has_value() + how.d));
      EXPECT_EQ(plan.params, kernel.defaults(rearranged(p, how), device));
      copied += !plan.copies.empty();
      others += plan.params != kernel.defaults(p, device);
    }
  EXPECT_GT(copied, 0);
  EXPECT_GT(others, 0) << "copies and the caller's matrices have the same constants everywhere: this test shows nothing";
}

TEST(Choice, OnlyCopiesHaveRoomBehindTheirLines) {
  const Problem p = product(65, 67, 70, 70, 67);
  const Kernel& kernel = find_kernel("tiled");
  DeviceInfo device = gpu();
  device.max_work_group_size = 1024, device.local_memory = 48 << 10;
  const auto constants = [](const Plan& plan) {
    std::map<std::string, int> all;
    for (const auto& [name, value] : plan.constants) all[std::string(name)] = value;
    return all;
  };
  const Plan both = plan_rearranged(kernel, p, device, TiledChoice{}, {true, false}),
             one = plan_rearranged(kernel, p, device, TiledChoice{}, {{}, true});
  EXPECT_EQ(constants(both).at("PADDED_A"), 1);
  EXPECT_EQ(constants(both).at("PADDED_B"), 1);
  EXPECT_EQ(constants(one).at("PADDED_A"), 0);
  EXPECT_EQ(constants(one).at("PADDED_B"), 1);
  auto callers = constants(in_place(both, p, ""));
  EXPECT_EQ(callers.at("PADDED_A"), 0) << "the caller's lines end where they end";
  EXPECT_EQ(callers.at("PADDED_B"), 0);
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
