// The constraints of the tile constants: what they refuse, in which words, and which set they offer instead.
#include "params_tile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "families/families.hpp"
#include "shipped.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

DeviceInfo device() { return model_device("intel-gen9"); }

std::string message(const TileParams& p, const TileOptions& o = {}, DType element = DType::float32) {
  try {
    check(p, o, device(), element);
  } catch (const ParamsError& e) {
    return e.what();
  }
  return "";
}

TEST(TileConstraints, TheBlogsSetsHold) {
  EXPECT_EQ(message({16, 16, 8, 8, 4, 8}), "");
  EXPECT_EQ(message({16, 16, 16, 4, 4, 4}), "");
}

TEST(TileConstraints, EachIsNamed) {
  const auto says = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_PRED2(says, message({16, 16, 6, 4, 4, 4}), "tile_k = 6 is no multiple of chunk = 4");
  EXPECT_PRED2(says, message({16, 3, 8, 4, 2, 4}), "tile_n·batch_n = 6 is no multiple of chunk = 4");
  EXPECT_PRED2(says, message({16, 16, 9, 4, 4, 3}), "chunk = 3 is none of");
  EXPECT_PRED2(says, message({16, 16, 8, 4, 4, 0}), "chunk = 0 is none of");
  EXPECT_PRED2(says, message({0, 16, 8, 4, 4, 4}), "below 1");
  EXPECT_PRED2(says, message({32, 16, 8, 4, 4, 4}), "512 work-items are more than the device's work-groups hold (256)");
  EXPECT_PRED2(says, message({16, 16, 64, 8, 8, 4}), "bytes of local memory, the device has 65536");
  EXPECT_PRED2(says, message({16, 16, 256, 1, 1, 4}), "tile_k = 256 is above 128");
  EXPECT_PRED2(says, message({1, 1, 8, 32, 16, 4}), "batch_m·batch_n = 512");
  EXPECT_PRED2(says, message({16, 16, 8, 4, 4, 4}, {.sub_group = 7}), "sub_group = 7 is none of the device's");
  EXPECT_PRED2(says, message({4, 3, 8, 4, 4, 4}, {.sub_group = 8}), "no multiple of sub_group = 8");
  EXPECT_PRED2(says, message({16, 16, 8, 4, 4, 4}, {.ahead = 3}), "ahead");
  EXPECT_PRED2(says, message({16, 16, 8, 4, 4, 4}, {.split_k = 0}), "split_k = 0");
  EXPECT_PRED2(says, message({16, 16, 9, 4, 4, 1}, {.ahead = 2}), "tile_k = 9 is odd");
  EXPECT_PRED2(says, message({16, 16, 8, 4, 4, 4}, {.local = 2}), "local = 2 needs a sub_group that divides tile_n");
}

TEST(TileConstraints, NoOtherLanesRegistersOnCuda) {
  DeviceInfo cuda = device();
  cuda.backend = "cuda", cuda.sub_group_sizes = {32};
  const TileOptions options{.local = 2, .sub_group = 32};
  EXPECT_NE(broken_constraint({8, 32, 8, 4, 4, 4}, options, cuda).find("CUDA"), std::string::npos);
  const auto other = nearest({8, 32, 8, 4, 4, 4}, options, cuda);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->options.local, 1);
}

TEST(TileConstraints, TheNearestSetIsOffered) {
  EXPECT_NE(message({16, 16, 6, 4, 4, 4}).find("the nearest set that holds is (16,16,8,4,4,4)"), std::string::npos)
      << message({16, 16, 6, 4, 4, 4});
  EXPECT_NE(message({16, 16, 8, 4, 4, 3}).find("(16,16,8,4,4,4)"), std::string::npos) << message({16, 16, 8, 4, 4, 3});
  // One doubling less of the work-group, and nothing else.
  const auto smaller = nearest({32, 16, 8, 8, 4, 8}, {}, device());
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->params.tile_m * smaller->params.tile_n, 256);
  EXPECT_EQ(smaller->params.batch_m, 8);
}

TEST(TileConstraints, WhatIsOfferedAlwaysHolds) {
  std::mt19937 random(5);
  const auto any = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 100; ++i) {
    const TileParams p{any(-2, 80), any(-2, 80), any(-2, 300), any(-2, 40), any(-2, 40), any(-2, 20)};
    const TileOptions o{any(-1, 2), any(-1, 70), any(-1, 2), any(-1, 2), any(-1, 3), any(-1, 3), any(0, 33), any(-1, 70), any(-1, 70)};
    const auto found = nearest(p, o, device());
    ASSERT_TRUE(found) << to_string(p);
    EXPECT_EQ(broken_constraint(found->params, found->options, device()), "") << to_string(p);
  }
}

TEST(TileConstraints, AHoldingSetIsItsOwnNearest) {
  const TileParams p{8, 8, 12, 3, 4, 4};
  const auto found = nearest(p, {}, device());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->params, p);
  EXPECT_EQ(found->options, TileOptions{});
}

TEST(TileConstraints, ADeviceWithoutLocalMemoryHasTheDirectKernelOnly) {
  DeviceInfo none = device();
  none.local_memory = 1024;
  EXPECT_FALSE(broken_constraint({16, 16, 16, 4, 4, 4}, {}, none).empty());
  EXPECT_TRUE(broken_constraint({16, 16, 16, 4, 4, 4}, {.local = 0}, none).empty());
}

TEST(TileCosts, ChunksAndIdleWorkItems) {
  // The blog's tuned set: 128 rows of one chunk of 8, and 8 rows of eight.
  const TileCosts blog = costs({16, 16, 8, 8, 4, 8}, {.a_transposed = 0, .pad = 0});
  EXPECT_EQ(blog.chunks_a, 128);
  EXPECT_EQ(blog.chunks_b, 64);
  EXPECT_EQ(blog.chunks_each_a, 1);
  EXPECT_EQ(blog.idle_a, 128);
  EXPECT_EQ(blog.idle_b, 192);
  EXPECT_EQ(blog.local_memory, 2 * (128 * 8 + 8 * 64) * 4 + 64);
  const TileCosts small = costs({2, 2, 32, 8, 8, 16}, {});
  EXPECT_EQ(small.chunks_each_a, 8);
  EXPECT_EQ(small.idle_a, 0);
  EXPECT_GT(registers_estimate({16, 16, 8, 8, 4, 8}, {}, DType::float64), registers_estimate({16, 16, 8, 8, 4, 8}, {}));
}

TEST(TiledDefaults, HoldOnEveryDeviceAndType) {
  const Kernel& tiled = tiled_kernels().front();
  std::vector<DeviceInfo> devices{DeviceInfo{}};
  for (const std::string& name : shipped_architectures()) devices.push_back(model_device(name));
  devices.push_back(device());
  devices.back().architecture = "nvidia-sm90";
  devices.back().max_work_group_size = 1024;
  for (const DeviceInfo& d : devices)
    for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8})
      for (const index_t n : {1, 100, 1000, 10000}) {
        if (d.max_work_group_size < 2) continue;
        Problem p;
        p.m = p.n = p.k = n;
        p.dtype = type;
        const auto choice = std::get<TiledChoice>(tiled.defaults(p, d));
        EXPECT_EQ(broken_constraint(choice.params, choice.options, d, type), "") << d.architecture << " " << name_of(type) << " " << n;
      }
}

TEST(TiledDefaults, FillAnNvidiaDevice) {
  DeviceInfo h200 = device();
  h200.architecture = "nvidia-sm90";
  h200.compute_units = 132;
  h200.max_work_group_size = 1024;
  h200.local_memory = 227 << 10;
  const Kernel& tiled = tiled_kernels().front();
  const auto groups = [&](index_t m, index_t n, index_t k) {
    Problem p;
    p.m = m, p.n = n, p.k = k;
    p.a.ld = k, p.b.ld = n;
    const Plan plan = tiled.plan(tiled, p, h200, tiled.defaults(p, h200));
    return index_t(plan.range.global[2] / plan.range.local[2]);
  };
  // 24 × 12 blocks: two rounds of whole ones, and 24 that all multiprocessors share.
  EXPECT_EQ(groups(3072, 3072, 3072), 2 * 132 + 132);
  EXPECT_EQ(groups(1536, 1536, 1536), 132);
  EXPECT_GE(groups(64, 64, 65536), 100);
  EXPECT_GE(groups(576, 64, 12800), 132);
  EXPECT_GE(groups(4096, 8, 4096), 132);
  EXPECT_EQ(groups(1, 1, 1), 1);
  EXPECT_GE(groups(100, 100, 0), 1);
}

TEST(TiledDefaults, EvenBlocksRunTheCodeForSharesWithoutScratch) {
  DeviceInfo h200 = device();
  h200.architecture = "nvidia-sm90";
  h200.compute_units = 132, h200.max_work_group_size = 1024, h200.local_memory = 227 << 10;
  Problem p;
  p.m = 4095, p.n = 4097, p.k = 4093;  // 16 × 33 blocks of 256 × 128: four a multiprocessor
  p.a.transposed = true, p.a.ld = 4096, p.b.ld = 4128;
  const Kernel& tiled = tiled_kernels().front();
  const Plan plan = tiled.plan(tiled, p, h200, tiled.defaults(p, h200));
  EXPECT_EQ(plan.range.global[2] / plan.range.local[2], 528u);
  EXPECT_EQ(plan.scratch_bytes, 0u);
  EXPECT_EQ(std::find(plan.constants.begin(), plan.constants.end(), Constants::value_type("SPLIT", 2)) != plan.constants.end(), true);
}

TEST(TiledDefaults, NvidiaBlocksFitTheLocalMemory) {
  DeviceInfo small = device();
  small.architecture = "nvidia-sm75";
  small.compute_units = 40, small.max_work_group_size = 1024, small.local_memory = 48 << 10;
  Problem p;
  p.m = p.n = p.k = p.a.ld = p.b.ld = 4096;
  const auto choice = std::get<TiledChoice>(tiled_kernels().front().defaults(p, small));
  EXPECT_LE(local_memory_bytes(choice.params, choice.options, p.dtype), small.local_memory);
  EXPECT_EQ(choice.params, (TileParams{8, 16, 16, 16, 8, 4})) << "the fastest set that fits, not the nearest to one that does not";
}

}  // namespace
}  // namespace sycl_mat
