// When products with few rows or columns go to gemv, and that its plans add up, on models of GPUs: no device is needed.
#include <gtest/gtest.h>

#include <string>

#include "plan.hpp"
#include "shipped.hpp"

namespace sycl_mat {
namespace {

DeviceInfo hopper() {
  DeviceInfo info;
  info.name = "a model";
  info.backend = "cuda";
  info.type = "gpu";
  info.architecture = "nvidia-sm90";
  info.compute_units = 132;
  info.max_work_group_size = 1024;
  info.local_memory = 232448;
  info.has_fp16 = info.has_fp64 = true;
  return info;
}

Problem problem(DType type, index_t m, index_t n, index_t k, int layout = 0) {
  Problem p;
  p.m = m, p.n = n, p.k = k;
  p.dtype = p.accumulator = p.out = type;
  if (size_of(type) == 2) p.accumulator = DType::float32;
  if (type == DType::int8) p.accumulator = p.out = DType::int32;
  p.a.transposed = layout & 2, p.b.transposed = layout & 1;
  p.a.ld = p.a.transposed ? m : k, p.b.ld = p.b.transposed ? k : n, p.d.ld = n;
  return p;
}

std::string_view chosen(const DeviceInfo& device, const Problem& p) { return choose(p, device, Records::none).kernel; }

TEST(Gemv, TakesFewRowsOrColumnsOnEveryGpu) {
  for (const DeviceInfo& device : {hopper(), model_device("intel-gen9"), model_device("intel-xe-lp"), model_device("intel-xe-hpc")}) {
    for (const int layout : {0, 1, 2, 3})
      for (const index_t few : {1, 2, 8}) {
        EXPECT_EQ(chosen(device, problem(DType::float32, few, 4096, 4096, layout)), "gemv") << device.name << few;
        EXPECT_EQ(chosen(device, problem(DType::float32, 4096, few, 4096, layout)), "gemv") << device.name << few;
      }
    EXPECT_NE(chosen(device, problem(DType::float32, 9, 4096, 4096)), "gemv");
  }
  EXPECT_NE(chosen(model_device("cpu-avx512"), problem(DType::float32, 1, 4096, 4096)), "gemv") << "processors have skinny";
}

TEST(Gemv, LeavesTo) {
  EXPECT_EQ(chosen(hopper(), problem(DType::float16, 4, 4096, 4096)), "gemv");
  const auto preference = [](const char* kernel, index_t m) {
    return find_kernel(kernel).preference(problem(DType::float16, m, 4096, 4096), hopper());
  };
  EXPECT_LT(preference("wgmma16", 4), preference("gemv", 4));
  EXPECT_GT(preference("wgmma16", 5), preference("gemv", 5)) << "tensor units are faster";
  EXPECT_EQ(chosen(model_device("intel-xe-lp"), problem(DType::float16, 8, 4096, 4096)), "gemv");
  Problem stack = problem(DType::float32, 8, 8, 8);
  stack.batch_inner = 1000;
  EXPECT_EQ(chosen(hopper(), stack), "tiled");
  EXPECT_NE(find_kernel("gemv").why_not(problem(DType::float32, 9, 9, 9), hopper()), "");
}

TEST(Gemv, PlansAddUp) {
  const Kernel& kernel = find_kernel("gemv");
  for (const DeviceInfo& device : {hopper(), model_device("intel-gen9"), model_device("intel-xe-hpc"), model_device("cpu-avx512")})
    for (const DType type : {DType::float32, DType::float64, DType::float16, DType::int8})
      for (const index_t few : {0, 1, 2, 5, 8})
        for (const index_t results : {0, 1, 31, 1000, 4096, 1000000})
          for (const index_t k : {0, 1, 20, 1000, 4097, 3000000})
            for (int layout = 0; layout < 4; ++layout)
              for (const bool columns : {false, true}) {
                const Problem p = columns ? problem(type, results, few, k, layout) : problem(type, few, results, k, layout);
                const Plan plan = kernel.plan(kernel, p, device, std::monostate{});
                const auto constant = [&](std::string_view name) {
                  for (const auto& [known, value] : plan.constants)
                    if (known == name) return index_t(value);
                  ADD_FAILURE() << name;
                  return index_t(0);
                };
                SCOPED_TRACE(device.name + " " + std::string(name_of(type)) + " " + std::to_string(p.m) + "×" + std::to_string(p.n) + "×" +
                             std::to_string(k) + " " + std::to_string(layout));
                const index_t items = constant("ITEMS"), along = constant("ALONG_K"), side = constant("SIDE");
                const bool dots = side == 0 ? p.b.transposed : !p.a.transposed;
                ASSERT_EQ(items % along, 0);
                ASSERT_LE(items, device.max_work_group_size);
                ASSERT_EQ(plan.range.local[2], std::size_t(items));
                const index_t block = items / along * constant(dots ? "ROWS" : "CHUNK");
                const index_t blocks = std::max<index_t>((std::max(side == 0 ? p.n : p.m, index_t(1)) + block - 1) / block, 1);
                ASSERT_EQ(plan.range.global[2], std::size_t(blocks * plan.split_k * items));
                if (plan.split_k == 1) {
                  ASSERT_EQ(constant("SPLIT"), 0);
                  ASSERT_EQ(plan.scratch_bytes, 0u);
                  continue;
                }
                // As the kernel cuts K: no part is empty.
                const index_t depth = ((k + 63) / 64 + plan.split_k - 1) / plan.split_k * 64;
                ASSERT_LT((plan.split_k - 1) * depth, k);
                ASSERT_EQ(index_t(plan.scratch_bytes - plan.counter_bytes),
                          blocks * plan.split_k * constant("FEW") * block * index_t(size_of(p.accumulator)));
              }
}

}  // namespace
}  // namespace sycl_mat
