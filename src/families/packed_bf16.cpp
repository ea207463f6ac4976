// bfloat16 on the processor's dot products: cores, scratch, and where it pays.
#include <algorithm>

#include "../../kernels/packed_layout.hpp"
#include "../params_pack.hpp"
#include "cpu_split.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

// As in the kernel.
constexpr int mr = 6, width = 16, nr = 4 * width;
constexpr int most_kc = 1536, most_nc = 2048;

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (p.dtype != DType::bfloat16) return "it multiplies bfloat16 only";
  if (!device.is_cpu() || !device.has_bfloat16_dots) return "it needs a processor with AVX512_BF16";
  if (p.precision == Precision::ieee) return "precision \"ieee\" asks for multiply-adds in float32, which keep denormal numbers";
  if (p.precision == Precision::tf32) return "processors have no TF32 units";
  return {};
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  CpuCosts costs;  // in dot products, which do two steps of k at once
  costs.mr = mr, costs.width = width, costs.nr = nr;
  costs.pack_b = p.b.transposed ? 4 : 2;
  costs.pack_a = p.a.transposed ? 4 : 0;
  const CpuSplit split = split_for_cores(p, device.compute_units, costs);

  const int kc = most_kc,
            nc = static_cast<int>(std::clamp<std::int64_t>(room_for_b(device) / (kc * size_of(p.dtype)) / nr * nr, nr, most_nc));

  Plan out;
  out.kernel = &kernel;
  out.constants = common_constants(p);
  for (const auto& [name, value] : Constants{{"WIDTH", width}, {"KC", kc}, {"NC", nc}}) out.constants.emplace_back(name, value);
  set_split(out, split);
  // The kernel lays its scratch out by the same function with the same arguments.
  const PackedLayout layout = packed_layout(ceil_div(p.m, split.m) + mr, ceil_div(p.n, split.n) + nr, ceil_div(ceil_div(p.k, 2), split.k),
                                            packed_bf16_sum_rows, nc, kc / 2, nr, p.a.transposed, true);
  set_scratch(out, p, split.groups, layout.elements);
  return out;
}

/// Above `packed`, except where most of a register block of 6 × 64 would be empty, or packing B is most of the work.
int preference(const Problem& p, const DeviceInfo&) { return p.m >= 12 && p.n >= 48 && p.k >= 16 ? 12 : 8; }

constexpr Kernel family[] = {{.name = "packed_bf16",
                              .file = "packed_bf16.cpp",
                              .summary = "CPU: bfloat16 by the processor's dot products (AVX512_BF16), twice the rate of multiply-adds",
                              .params = "none",
                              .hand_vectorised = true,
                              .why_not = why_not,
                              .defaults = defaults,
                              .plan = plan,
                              .preference = preference}};

}  // namespace

std::span<const Kernel> packed_bf16_kernels() { return family; }

}  // namespace sycl_mat
