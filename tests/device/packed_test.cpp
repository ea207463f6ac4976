// The CPU kernels: every layout, shapes around the edges of vectors, panels and blocks, stacks, write-back, element types, and more
// groups than this machine has cores. Each against float64, or exactly on small integers.
#include <cstdlib>

#include "kernel_harness.hpp"
#include "params_pack.hpp"

namespace sycl_mat::harness {
namespace {

// The harness builds from source, where the hint that keeps the driver's vectoriser off these kernels (program.cpp) is missing. Without
// this, read once when the driver loads, every kernel takes fifteen seconds to build.
const int vectoriser_off = setenv("CL_CONFIG_USE_VECTORIZER", "False", 1);

/// Blocks so small that modest shapes have several of each kind: kc 32, nc two panels, mc six row panels.
PackParams small_blocks(DType accumulator, int pack, int mc = 36) {
  const int panel = 4 * vector_elements(harness().info, accumulator);
  return {.mr = 6, .nv = 4, .kc = 32, .mc = mc, .nc = 2 * panel, .pack = pack};
}

/// Around the vector (16), the panel (64), the row panel (6), and the blocks above; primes; vectors; nothing.
constexpr index_t shapes[][3] = {{1, 1, 1},      {6, 64, 32},   {5, 63, 31},    {7, 65, 33},   {13, 16, 64}, {48, 128, 32},
                                 {97, 131, 101}, {37, 200, 70}, {1, 300, 65},   {150, 1, 40},  {2, 17, 200}, {16, 16, 0},
                                 {49, 33, 1},    {12, 47, 3},   {100, 150, 97}, {11, 257, 129}};

void check_shapes(const char* kernel, const Params& params, Case c) {
  bool at_end = true;
  for (const auto& [m, n, k] : shapes) {
    c.m = m, c.n = n, c.k = k;
    harness().check(kernel, params, c, at_end);
    at_end = !at_end;
  }
}

/// As on a machine with so many cores, while it lives.
class Cores {
 public:
  explicit Cores(int count) : before_(harness().info.compute_units) { harness().info.compute_units = count; }
  ~Cores() { harness().info.compute_units = before_; }

 private:
  int before_;
};

class EveryLayout : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  void SetUp() override {
    if (!harness().info.is_cpu()) GTEST_SKIP() << "no CPU device";
  }
  Case layout() const { return {.trans_a = GetParam().first, .trans_b = GetParam().second}; }
};

TEST_P(EveryLayout, DefaultConstants) {
  Case c = layout();
  check_shapes("packed", {}, c);
  c.gap = 3;
  c.integers = true;
  check_shapes("packed", {}, c);
  c.backwards = true;
  c.m = 70, c.n = 90, c.k = 35;
  harness().check("packed", {}, c);
  harness().check("packed", {}, c, false);
}

TEST_P(EveryLayout, SmallBlocksAndEveryWayOfPacking) {
  for (const int pack : {0, 1, 2}) {
    SCOPED_TRACE("pack " + std::to_string(pack));
    Case c = layout();
    check_shapes("packed", small_blocks(DType::float32, pack), c);
    c.integers = true;
    c.gap = 1;
    c.m = 121, c.n = 333, c.k = 150;
    harness().check("packed", small_blocks(DType::float32, pack, 0), c);
  }
}

TEST_P(EveryLayout, MoreGroupsThanCores) {
  for (const int cores : {1, 3, 7, 64}) {
    SCOPED_TRACE(std::to_string(cores) + " cores");
    const Cores as_if(cores);
    Case c = layout();
    c.integers = true;
    check_shapes("packed", {}, c);
    c.m = 40, c.n = 50, c.k = 5000;  // K is shared
    harness().check("packed", {}, c);
    c.alpha = 2, c.beta = -1, c.bias = BiasAxis::row, c.activation = Activation::relu;
    harness().check("packed", {}, c);
    c.batch_outer = 2, c.batch_inner = 3, c.k = 600;
    harness().check("packed", {}, c);
  }
}

TEST_P(EveryLayout, Skinny) {
  for (const index_t few : {1, 2, 5, 8}) {
    Case c = layout();
    for (const index_t longer : {1, 3, 15, 16, 17, 70, 133, 2049, 4100})
      for (const index_t k : {0, 1, 15, 16, 17, 33, 200}) {
        if (longer > 2000 && k > 20) continue;
        c.integers = !c.integers;
        c.gap = c.integers ? 2 : 0;
        c.m = few, c.n = longer, c.k = k;
        harness().check("skinny", {}, c, c.integers);
        c.n = few, c.m = longer;
        harness().check("skinny", {}, c, !c.integers);
      }
  }
}

TEST_P(EveryLayout, SkinnyOnManyCores) {
  const Cores as_if(5);
  Case c = layout();
  c.integers = true;
  c.m = 3, c.n = 20, c.k = 70000;  // K is shared
  harness().check("skinny", {}, c);
  std::swap(c.m, c.n);
  harness().check("skinny", {}, c);
  c.alpha = 2, c.beta = -1, c.bias = BiasAxis::column, c.activation = Activation::relu, c.gap = 1;
  harness().check("skinny", {}, c);
  std::swap(c.m, c.n);
  harness().check("skinny", {}, c);
  c.k = 300, c.batch_outer = 3, c.batch_inner = 2;
  harness().check("skinny", {}, c);
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout,
                         testing::Values(std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true)),
                         [](const auto& info) { return std::string(info.param.first ? "T" : "N") + (info.param.second ? "T" : "N"); });

class Cpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!harness().info.is_cpu()) GTEST_SKIP() << "no CPU device";
  }
};

TEST_F(Cpu, Epilogue) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::sigmoid, Activation::tanh, Activation::silu}) {
    const Case c{.m = 31, .n = 75, .k = 70, .alpha = 0.5, .bias = BiasAxis::column, .activation = activation, .gap = 1};
    harness().check("packed", small_blocks(DType::float32, 2), c);
  }
  for (const index_t k : {0, 20, 100}) {  // none, one, several blocks of K
    harness().check("packed", small_blocks(DType::float32, 2),
                    Case{.m = 70, .n = 75, .k = k, .alpha = -2, .beta = 0.25, .bias = BiasAxis::row});
    harness().check("packed", small_blocks(DType::float32, 2), Case{.m = 7, .n = 5, .k = k, .alpha = 3, .beta = -1, .integers = true});
    harness().check("skinny", {}, Case{.m = 7, .n = 75, .k = k, .alpha = -2, .beta = 0.25, .bias = BiasAxis::row});
    harness().check("skinny", {},
                    Case{.m = 75, .n = 7, .k = k, .alpha = -2, .beta = 0.25, .bias = BiasAxis::column, .activation = Activation::silu});
  }
}

TEST_F(Cpu, Stacks) {
  harness().check("packed", {}, Case{.m = 33, .n = 17, .k = 20, .batch_outer = 3, .batch_inner = 2, .gap = 2});
  harness().check("packed", {}, Case{.m = 65, .n = 70, .k = 20, .batch_outer = 1, .batch_inner = 3, .broadcast_a = true});
  harness().check("skinny", {}, Case{.m = 3, .n = 70, .k = 20, .batch_outer = 2, .batch_inner = 3, .broadcast_a = true});
}

TEST_F(Cpu, RegisterBlocks) {
  const int width = vector_elements(harness().info, DType::float32);
  for (const auto& [mr, nv] : {std::pair(1, 1), std::pair(3, 3), std::pair(6, 2), std::pair(8, 3), std::pair(14, 2), std::pair(4, 6)}) {
    const PackParams params{.mr = mr, .nv = nv, .kc = 48, .mc = 0, .nc = 3 * nv * width, .pack = 2};
    if (!broken_constraint(params, harness().info).empty()) continue;
    SCOPED_TRACE(to_string(params));
    check_shapes("packed", params, Case{.integers = true});
    if (mr * nv <= 12) check_shapes("packed", params, Case{.trans_a = true, .trans_b = true});  // every set is a program to compile
  }
}

TEST_F(Cpu, BrokenConstraintsAreNamed) {
  const DeviceInfo& info = harness().info;
  const int panel = 4 * vector_elements(info, DType::float32);
  EXPECT_NE(broken_constraint({.mr = 20}, info).find("mr = 20"), std::string::npos);
  EXPECT_NE(broken_constraint({.mr = 14, .nv = 4}, info).find("registers"), std::string::npos);
  EXPECT_NE(broken_constraint({.mr = 2, .nc = panel + 1}, info).find("nc"), std::string::npos);
  EXPECT_NE(broken_constraint({.mr = 2, .kc = 0}, info).find("kc"), std::string::npos);
  EXPECT_NE(broken_constraint({.mr = 2, .pack = 3}, info).find("pack"), std::string::npos);
  for (const PackParams& p :
       {PackParams{.mr = 20, .nv = 9}, PackParams{.kc = 0, .nc = 7}, PackParams{.mc = -1, .pack = 9}, PackParams{.mr = 0, .nv = 0}})
    EXPECT_EQ(broken_constraint(nearest(p, info), info), "") << to_string(nearest(p, info));
  Problem p;
  p.m = p.n = p.k = 1000;
  for (const DType type : {DType::float32, DType::float64, DType::float16}) {
    p.dtype = p.out = type;
    p.accumulator = accumulator_of(type);
    EXPECT_EQ(broken_constraint(default_pack_params(p, info), info, p.accumulator), "");
  }
}

TEST_F(Cpu, SharedSumsGiveTheSameBitsEveryTime) {
  const Cores as_if(8);
  Harness& h = harness();
  const index_t n = 24, k = 20000;
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
  const Kernel& kernel = find_kernel("packed");
  const Plan plan = kernel.plan(kernel, p, h.info, kernel.defaults(p, h.info));
  ASSERT_GT(plan.split_k, 1);
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0, plan.counter_bytes);
  std::vector<float> first(n * n);
  for (int run = 0; run < 50; ++run) {
    h.launch(plan, p, scratch.data());
    h.queue.wait_and_throw();
    if (run == 0) std::memcpy(first.data(), d.element(0, 0, 0), first.size() * 4);
    ASSERT_EQ(std::memcmp(first.data(), d.element(0, 0, 0), first.size() * 4), 0) << "run " << run;
  }
}

/// Columns of A that are read in place: in shallow blocks where the second cache would not hold deep ones.
TEST_F(Cpu, DepthOfBlocksOfAReadInPlace) {
  DeviceInfo device = harness().info;
  device.l2_cache = 1 << 20;
  const auto depth = [&](index_t m, index_t n, index_t k) {
    Problem p;
    p.m = m, p.n = n, p.k = k;
    p.a.transposed = true, p.a.ld = m, p.b.ld = p.d.ld = n;
    const Kernel& kernel = find_kernel("packed");
    for (const auto& [name, value] : kernel.plan(kernel, p, device, kernel.defaults(p, device)).constants)
      if (name == "KC") return value;
    return 0;
  };
  const int columns = 2 * vector_elements(device, DType::float32);
  EXPECT_EQ(depth(90, columns, 12800), 256);
  EXPECT_EQ(depth(1024, columns, 12800), 32);
  EXPECT_EQ(depth(12800, columns, 1024), 256) << "results that no cache holds would be read for every block";
  harness().check("packed", PackParams{.mr = 6, .nv = 4, .kc = 512, .mc = 0, .nc = 256, .pack = 0},
                  Case{.m = 600, .n = columns - 3, .k = 150, .trans_a = true, .gap = 1, .integers = true});
}

/// Work-groups take rows of each other's last blocks, whoever is done first: the results must not depend on who was.
TEST_F(Cpu, GroupsHelpEachOther) {
  const PackParams packed_on_the_way{.mr = 6, .nv = 4, .kc = 160, .mc = 0, .nc = 192, .pack = 2};
  PackParams in_place = packed_on_the_way;
  in_place.pack = 0;
  const Case c{.m = 490, .n = 470, .k = 450, .integers = true};
  Case epilogue = c, transposed_a = c, transposed_b = c;
  epilogue.alpha = 2, epilogue.beta = -1, epilogue.bias = BiasAxis::row, epilogue.activation = Activation::relu, epilogue.gap = 1;
  transposed_a.trans_a = true, transposed_b.trans_b = true;
  {
    const Cores as_if(2);
    harness().check("packed", packed_on_the_way, c);
  }
  {
    const Cores as_if(3);
    harness().check("packed", packed_on_the_way, epilogue);
  }
  const Cores as_if(7);
  harness().check("packed", in_place, epilogue);
  harness().check("packed", packed_on_the_way, transposed_a);
  harness().check("packed", packed_on_the_way, transposed_b);
}

TEST_F(Cpu, HelpedSumsHaveTheSameBitsEveryTime) {
  const Cores as_if(5);
  Harness& h = harness();
  const index_t n = 600;
  Stack a(h.queue, DType::float32, n, n, false, 0, false, 1, 1, true), b(h.queue, DType::float32, n, n, false, 0, false, 1, 1, true);
  Stack d(h.queue, DType::float32, n, n, false, 0, false, 1, 1, true);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> real(-1, 1);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j)
      put(a.element(0, i, j), DType::float32, real(random)), put(b.element(0, i, j), DType::float32, real(random));
  Problem p;
  p.m = p.n = p.k = n;
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel("packed");
  const Plan plan = kernel.plan(kernel, p, h.info, PackParams{.mr = 6, .nv = 4, .kc = 256, .mc = 0, .nc = 256, .pack = 2});
  ASSERT_GT(plan.counter_bytes, 0U);
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0, plan.counter_bytes);
  std::vector<float> first(n * n);
  for (int run = 0; run < 50; ++run) {
    std::memset(d.element(0, 0, 0), 0xff, first.size() * 4);
    h.launch(plan, p, scratch.data());
    h.queue.wait_and_throw();
    if (run == 0) std::memcpy(first.data(), d.element(0, 0, 0), first.size() * 4);
    ASSERT_EQ(std::memcmp(first.data(), d.element(0, 0, 0), first.size() * 4), 0) << "run " << run;
  }
}

class EveryType : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!harness().info.is_cpu()) GTEST_SKIP() << "no CPU device";
  }
};

TEST_P(EveryType, Packed) {
  const DType type = GetParam(), acc = accumulator_of(type);
  for (const bool transposed : {false, true}) {
    check_shapes("packed", small_blocks(acc, 2), Case{.dtype = type, .trans_a = transposed, .trans_b = transposed});
    check_shapes("packed", {}, Case{.dtype = type, .trans_a = transposed, .trans_b = !transposed, .gap = 1, .integers = true});
  }
  const Case c{.m = 70,
               .n = 75,
               .k = 90,
               .dtype = type,
               .alpha = 2,
               .beta = -1,
               .bias = BiasAxis::column,
               .activation = Activation::relu,
               .batch_outer = 2};
  harness().check("packed", small_blocks(acc, 2), c);
  const Cores as_if(4);
  harness().check("packed", {}, Case{.m = 20, .n = 30, .k = 3000, .dtype = type, .integers = true});
}

TEST_P(EveryType, Skinny) {
  const DType type = GetParam();
  for (const auto& [m, n] : {std::pair(3, 100), std::pair(100, 3), std::pair(1, 77), std::pair(77, 1)})
    for (const bool transposed : {false, true}) {
      harness().check("skinny", {}, Case{.m = m, .n = n, .k = 75, .dtype = type, .trans_a = transposed, .trans_b = transposed});
      harness().check("skinny", {},
                      Case{.m = m,
                           .n = n,
                           .k = 75,
                           .dtype = type,
                           .trans_a = transposed,
                           .trans_b = !transposed,
                           .alpha = 2,
                           .beta = -1,
                           .gap = 1,
                           .integers = true});
    }
}
INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::Values(DType::float64, DType::float16, DType::bfloat16, DType::int8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_F(Cpu, NaNAndInfinity) {
  for (const auto& [name, m, n] :
       {std::tuple("packed", 5, 5), std::tuple("packed", 70, 70), std::tuple("skinny", 5, 70), std::tuple("skinny", 70, 5)})
    for (const bool transposed : {false, true}) {
      check_nan_and_infinity(name, m, n, 21, transposed, transposed);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace sycl_mat::harness
