// Which PTX target a process's CUDA devices get, and what the planner makes of NVIDIA devices of every generation: no device is needed.
#include "ptx_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "families/families.hpp"
#include "plan.hpp"

namespace sycl_mat {
namespace {

std::string_view target(std::vector<int> capabilities) { return ptx_target_for(capabilities); }

TEST(PtxTarget, IsTheNewestThatAllDevicesRun) {
  EXPECT_EQ(target({90}), "sm_90a");
  EXPECT_EQ(target({90, 90}), "sm_90a");
  EXPECT_EQ(target({80}), "sm_80");
  EXPECT_EQ(target({86, 89}), "sm_80");
  EXPECT_EQ(target({90, 86}), "sm_80") << "sm_90a runs on Hopper alone";
  EXPECT_EQ(target({100}), "sm_80");
  EXPECT_EQ(target({120, 90}), "sm_80");
  EXPECT_EQ(target({75, 90}), "");
  EXPECT_EQ(target({90, 0}), "") << "a device that the runtime has no name for";
  EXPECT_EQ(target({}), "");
}

TEST(PtxTarget, InstructionsOfATarget) {
  for (const char* able : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120a"})
    EXPECT_TRUE(has_sm80_instructions(able)) << able;
  for (const char* unable : {"sm_75", "sm_60", "", "80", "sm_", "compute_80"}) EXPECT_FALSE(has_sm80_instructions(unable)) << unable;
}

DeviceInfo device(const char* architecture, const char* backend = "cuda") {
  DeviceInfo info;
  info.name = "a model";
  info.backend = backend;
  info.type = "gpu";
  info.architecture = architecture;
  info.compute_units = 108;
  info.max_work_group_size = 1024;
  info.local_memory = 101376;
  info.has_fp16 = info.has_fp64 = true;
  return info;
}

TEST(PtxTarget, ComputeCapability) {
  EXPECT_EQ(compute_capability(device("nvidia-sm86")), 86);
  EXPECT_EQ(compute_capability(device("nvidia-sm120")), 120);
  EXPECT_EQ(compute_capability(device("gpu")), 0);
  EXPECT_EQ(compute_capability(device("nvidia-sm80", "opencl")), 0);
}

/// Sets the target as a user would, for as long as it lives.
class Target {
 public:
  explicit Target(const char* value) { setenv(name, value, 1); }
  ~Target() { unsetenv(name); }

 private:
  static constexpr const char* name = "SYCL_JIT_AMDGCN_PTX_TARGET_CPU";
};

Problem problem(DType type, index_t m, index_t n, index_t k) {
  Problem p;
  p.m = m, p.n = n, p.k = k;
  p.dtype = p.out = type;
  p.accumulator = type == DType::float64 ? type : DType::float32;
  p.a.ld = k, p.b.ld = p.d.ld = n;
  return p;
}
std::string_view chosen(const char* architecture, const Problem& p) { return choose(p, device(architecture), Records::none).kernel; }
std::string refusal(const DeviceInfo& info, const Problem& p) { return find_kernel("mma_sync").why_not(p, info); }

TEST(MmaSync, IsTakenWhereItsUnitsAreFaster) {
  const Target target("sm_80");
  const Problem single = problem(DType::float32, 1000, 1000, 1000);
  EXPECT_EQ(chosen("nvidia-sm80", single), "mma_sync");
  EXPECT_EQ(chosen("nvidia-sm86", single), "tiled") << "multiply-adds are faster than three TF32 products there";
  EXPECT_EQ(chosen("nvidia-sm89", single), "tiled");
  EXPECT_EQ(chosen("nvidia-sm75", single), "tiled");
  for (const DType type : {DType::float16, DType::bfloat16})
    for (const char* architecture : {"nvidia-sm80", "nvidia-sm86", "nvidia-sm89", "nvidia-sm120"})
      EXPECT_EQ(chosen(architecture, problem(type, 1000, 1000, 1000)), "mma_sync") << architecture;
  EXPECT_EQ(chosen("nvidia-sm75", problem(DType::float16, 1000, 1000, 1000)), "tiled");
  EXPECT_EQ(chosen("nvidia-sm80", problem(DType::float64, 1000, 1000, 1000)), "mma_sync");
  EXPECT_EQ(chosen("nvidia-sm86", problem(DType::float64, 1000, 1000, 1000)), "tiled") << "its units have few for float64";
  for (const char* architecture : {"nvidia-sm80", "nvidia-sm86"}) {
    EXPECT_EQ(chosen(architecture, problem(DType::float16, 12, 4000, 4000)), "tiled") << "most of a tile would be empty";
    EXPECT_EQ(chosen(architecture, problem(DType::float32, 60, 60, 600)), "tiled") << "over before it is under way";
  }
}

TEST(MmaSync, SaysWhyNot) {
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  Problem p = problem(DType::float32, 1000, 1000, 1000);
  {
    const Target target("sm_80");
    EXPECT_EQ(refusal(device("nvidia-sm80"), p), "");
    EXPECT_PRED2(says, refusal(device("nvidia-sm75"), p), "compute capability 8.0");
    EXPECT_PRED2(says, refusal(device("intel-xe-hpg", "level_zero"), p), "NVIDIA");
    EXPECT_PRED2(says, refusal(device("nvidia-sm80"), problem(DType::int8, 1000, 1000, 1000)), "float32, float16 and bfloat16");
    EXPECT_PRED2(says, refusal(device("nvidia-sm80"), problem(DType::float32, 1000, 1000, 100)), "fewer than 256 terms");
    p.precision = Precision::ieee;
    EXPECT_PRED2(says, refusal(device("nvidia-sm80"), p), "ieee");
    p.dtype = DType::float16;
    EXPECT_PRED2(says, refusal(device("nvidia-sm80"), p), "ieee");
    p.dtype = DType::float64;
    EXPECT_EQ(refusal(device("nvidia-sm80"), p), "") << "its units are IEEE";
  }
  p = problem(DType::float16, 1000, 1000, 1000);
  {
    const Target target("sm_75");
    EXPECT_PRED2(says, refusal(device("nvidia-sm80"), p), "sm_75");
    EXPECT_EQ(chosen("nvidia-sm80", p), "tiled");
  }
}

TEST(MmaSync, PlansFitTheSmallestDevices) {
  const Target target("sm_80");
  const Kernel& kernel = find_kernel("mma_sync");
  for (const DType type : {DType::float64, DType::float32, DType::float16})
    for (const index_t m : {1, 17, 64, 130, 500, 4096})
      for (const index_t n : {1, 30, 128, 1000, 5000})
        for (const index_t k : {0, 1, 300, 5000, 100000}) {
          const Problem p = problem(type, m, n, k);
          const Plan plan = kernel.plan(kernel, p, device("nvidia-sm86"), std::monostate{});
          EXPECT_LE(plan.local_memory, 48 * 1024);
          const index_t depth = 64 / index_t(size_of(type)), stages = (k + depth - 1) / depth;
          EXPECT_GE(plan.split_k * plan.split_n, stages) << m << " " << n << " " << k;
          EXPECT_LT((plan.split_k - 1) * plan.split_n, std::max<index_t>(stages, 1)) << "a block without work";
          EXPECT_EQ(plan.range.global[2] % plan.range.local[2], 0u);
        }
}

TEST(Tf32x3, TilesForHalfOfTheDeviceAreSharedByClusters) {
  DeviceInfo hopper = device("nvidia-sm90");
  hopper.compute_units = 132;
  const Kernel& kernel = find_kernel("tf32x3");
  const auto pairs = [&](index_t m, index_t n, index_t k) {
    const Plan plan = kernel.plan(kernel, problem(DType::float32, m, n, k), hopper, std::monostate{});
    int value = -1;
    for (const auto& [name, constant] : plan.constants)
      if (name == "PAIRS") value = constant;
    if (value == 1) {
      EXPECT_EQ(plan.range.global[2], 512u * std::size_t(2 * plan.split_n));
      EXPECT_EQ(plan.split_k, (k + 31) / 32 / 2);
      EXPECT_EQ(plan.split_m, 0);
      EXPECT_EQ(plan.scratch_bytes, 0u);
      EXPECT_LE(plan.local_memory, 232448) << "what a block can have";
    }
    return value;
  };
  EXPECT_EQ(pairs(1024, 1024, 1024), 1);
  EXPECT_EQ(pairs(897, 780, 640), 1) << "what the kernel's test of pairs multiplies";
  EXPECT_EQ(pairs(1024, 1024, 1056), 0) << "33 stages have no halves";
  EXPECT_EQ(pairs(1152, 1024, 1024), 0) << "72 pairs do not fit 132 multiprocessors";
  EXPECT_EQ(pairs(4096, 4096, 4096), 0);
}

TEST(Wgmma16, PlansAddUp) {
  DeviceInfo hopper = device("nvidia-sm90");
  hopper.compute_units = 132;
  const Kernel& kernel = find_kernel("wgmma16");
  for (const index_t m : {1, 64, 130, 1000, 4096, 20000})
    for (const index_t n : {1, 100, 192, 1000, 5001})
      for (const index_t k : {0, 1, 100, 8192, 8193, 300000}) {
        const Plan plan = kernel.plan(kernel, problem(DType::float16, m, n, k), hopper, std::monostate{});
        SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
        const auto constant = [&](const char* name) {
          for (const auto& [known, value] : plan.constants)
            if (name == std::string_view(known)) return index_t(value);
          ADD_FAILURE() << name;
          return index_t(0);
        };
        const index_t rows = constant("TILE_ROWS"), cols = constant("TILE_COLS"), stages = (k + 63) / 64;
        const index_t blocks = index_t(plan.range.global[2] / plan.range.local[2]), tiles = (m + rows - 1) / rows * ((n + cols - 1) / cols);
        EXPECT_LE(plan.local_memory, 227 * 1024);
        EXPECT_EQ(2 * constant("CONSUMER_REGISTERS") + constant("PRODUCER_REGISTERS"), 3 * 168) << "what a launch of 384 gets";
        EXPECT_LE(blocks, 132);
        EXPECT_LE(plan.split_n, tiles);
        if (plan.split_n > 0) {
          EXPECT_EQ(plan.split_k * blocks + plan.split_m, plan.split_n * stages);
          EXPECT_LT(plan.split_m, blocks);
        }
        // A block has two parts of shared tiles at most, and one place for sums that are kept.
        const index_t places = (plan.split_n > 0 ? 2 * blocks : 0) + (constant("FLUSH") > 0 ? blocks : 0);
        EXPECT_EQ(index_t(plan.scratch_bytes), plan.scratch_stride * 4 + places * rows * cols * 4);
        const bool all_shared = plan.split_n == tiles;
        EXPECT_TRUE(constant("FLUSH") > 0 || (all_shared ? std::min(stages, plan.split_k + 1) : stages) <= 128)
            << "longer sums than promised";
      }
  Problem endless = problem(DType::float16, 1, 1, 1 << 20);
  endless.batch_inner = 1 << 28;
  EXPECT_NE(kernel.why_not(endless, hopper).find("too many tiles"), std::string::npos);
  EXPECT_NE(kernel.why_not(problem(DType::float16, 8, 8, (1 << 30) + 64), hopper).find("2^30"), std::string::npos);
}

}  // namespace
}  // namespace sycl_mat
