// Products with at most eight rows or columns on the CPU, matrix-vector products among them.
#include <algorithm>

#include "../../kernels/skinny_layout.hpp"
#include "../params_pack.hpp"
#include "cpu_split.hpp"
#include "cpu_thresholds.hpp"
#include "families.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (!device.is_cpu()) return "skinny reads at the speed of a processor's caches: a CPU device is needed";
  if (p.precision == Precision::tf32) return "processors have no TF32 units";
  if (p.m > skinny_few && p.n > skinny_few)
    return "skinny keeps at most " + std::to_string(skinny_few) + " rows or columns of the result in registers";
  return {};
}

/// 0: few rows, B is long; 1: few columns, A is long.
int side_of(const Problem& p) { return p.m <= skinny_few && (p.n > skinny_few || p.m <= p.n) ? 0 : 1; }

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  if (!std::holds_alternative<std::monostate>(params)) throw ParamsError("skinny has no constants to choose");
  const int side = side_of(p), few = static_cast<int>(side == 0 ? p.m : p.n), width = vector_elements(device, p.accumulator);
  const index_t results = side == 0 ? p.n : p.m;
  const bool small_along_k = side == 0 ? !p.a.transposed : p.b.transposed;
  const bool copy = !small_along_k || p.dtype != p.accumulator;

  // Cores share the results; K as well where there are too few of them for every core. A part keeps enough to do to be worth its wake-up.
  const index_t cores = std::max(1, device.compute_units);
  const double work = double(p.m) * double(p.n) * double(p.k);
  const index_t useful = std::clamp<index_t>(static_cast<index_t>(double(p.batch()) * work / skinny_part), 1, cores);
  Plan out;
  out.kernel = &kernel;
  out.params = params;
  if (p.batch() % useful != 0) {
    out.split_m = std::min(useful, std::max<index_t>(1, ceil_div(results, 2 * width)));
    out.split_k = std::clamp<index_t>(useful / out.split_m, 1, std::max<index_t>(1, p.k / 4096));
  }
  out.split_k = std::max(out.split_k, ceil_div(p.k, longest_sum));
  const index_t groups = std::min(p.batch() * out.split_m * out.split_k, useful);
  out.range.global = {1, 1, static_cast<std::size_t>(groups)};
  out.constants = common_constants(p);
  out.constants.emplace_back("WIDTH", width);
  out.constants.emplace_back("SIDE", side);
  out.constants.emplace_back("FEW", few);
  out.constants.emplace_back("PREFETCH", x86);
  const SkinnyLayout layout = skinny_layout(few, ceil_div(p.k, out.split_k), copy);
  set_scratch(out, p, groups, layout.elements);
  return out;
}

int preference(const Problem& p, const DeviceInfo& device) { return device.is_cpu() && skinny_pays(p) ? 20 : 0; }

constexpr Kernel family[] = {{.name = "skinny",
                              .file = "skinny.cpp",
                              .summary = "CPU: at most eight rows or columns, vectors among them, at the speed of memory",
                              .params = "none",
                              .hand_vectorised = true,
                              .why_not = why_not,
                              .defaults = defaults,
                              .plan = plan,
                              .preference = preference}};

}  // namespace

std::span<const Kernel> skinny_kernels() { return family; }

}  // namespace sycl_mat
