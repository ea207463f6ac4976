// The packed CPU kernel: constants, cores, scratch.
#include <algorithm>

#include "../../kernels/packed_layout.hpp"
#include "../params_pack.hpp"
#include "cpu_split.hpp"
#include "families.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (!device.is_cpu()) return "packed keeps its blocks in a processor's vector registers and caches: a CPU device is needed";
  if (p.precision == Precision::tf32) return "processors have no TF32 units";
  return {};
}

/// How deep a block of A is that is read in place where it is stored along m: a cache line holds elements of several row panels and should
/// still be there for the next. Measured: either all of the block lies well within the second cache, or a shallow one is best (its lines,
/// which can be a power of two apart, then push each other out least), unless D, read and written once a block, outgrows that cache.
index_t depth_in_place(const Problem& p, const DeviceInfo& device) {
  constexpr index_t deep = 256, shallow = 32;
  const index_t size = size_of(p.dtype), l2 = device.l2_cache > 0 ? device.l2_cache : 512 << 10;
  return p.m * deep * size <= l2 * 2 / 5 || p.m * p.n * size > l2 / 2 ? deep : shallow;
}

Params defaults(const Problem& p, const DeviceInfo& device) { return default_pack_params(p, device); }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  if (!std::holds_alternative<PackParams>(params)) throw ParamsError("packed takes PackParams (mr, nv, kc, mc, nc, pack)");
  PackParams c = std::get<PackParams>(params);
  check(c, device, p.accumulator);
  const int width = vector_elements(device, p.accumulator), nr = c.nv * width;
  const bool same_type = p.dtype == p.accumulator, pack_b = !same_type || p.b.transposed;
  // With one column panel an element of A is used once a row: copying it would cost as much as using it.
  const bool a_direct = same_type && p.a.transposed && p.n <= nr, pack_a = !same_type || (p.a.transposed && !a_direct);
  const bool keep_sums = p.out != p.accumulator;
  // Transposed or narrower panels cannot be read in place.
  if (pack_b && c.pack == 0) c.pack = 2;
  if (a_direct) c.kc = static_cast<int>(std::min<index_t>(c.kc, depth_in_place(p, device)));
  if (keep_sums && c.mc == 0) c.mc = 1024 / c.mr * c.mr;

  CpuCosts costs;
  costs.mr = c.mr, costs.width = width, costs.nr = nr;
  costs.pack_b = c.pack == 0 ? 0 : 2;
  costs.pack_a = pack_a ? 2 : 0;
  costs.cut_m = a_direct ? 0.02 : 0;  // each core would read pieces of A's columns
  const CpuSplit split = split_for_cores(p, device.compute_units, costs);

  Plan out;
  out.kernel = &kernel;
  out.params = c;
  out.constants = common_constants(p);
  for (const auto& [name, value] : Constants{{"WIDTH", width},
                                             {"PREFETCH", x86},
                                             {"MR", c.mr},
                                             {"NV", c.nv},
                                             {"KC", c.kc},
                                             {"MC", c.mc},
                                             {"NC", c.nc},
                                             {"PACK", c.pack},
                                             {"A_DIRECT", a_direct}})
    out.constants.emplace_back(name, value);
  set_split(out, split);
  // The kernel lays its scratch out by the same function with the same arguments.
  const PackedLayout layout = packed_layout(ceil_div(p.m, split.m) + c.mr, ceil_div(p.n, split.n) + nr, ceil_div(p.k, split.k), c.mc, c.nc,
                                            c.kc, nr, pack_a, keep_sums);
  const bool helps = c.mc == 0 && !keep_sums && packed_helps(p.m, p.n, p.k, p.batch(), split.m * split.n, split.k, split.groups);
  set_scratch(out, p, split.groups, layout.elements, helps ? packed_help_counters(split.groups) : 0);
  return out;
}

int preference(const Problem&, const DeviceInfo& device) { return device.is_cpu() ? 10 : 0; }

constexpr Kernel family[] = {{.name = "packed",
                              .file = "packed.cpp",
                              .summary = "CPU: register micro-kernel on wide vectors, B packed on the way, cores split evenly",
                              .params = "pack",
                              .hand_vectorised = true,
                              .why_not = why_not,
                              .defaults = defaults,
                              .plan = plan,
                              .preference = preference}};

}  // namespace

std::span<const Kernel> packed_kernels() { return family; }

}  // namespace sycl_mat
