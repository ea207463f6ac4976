#include "rearrange.hpp"

#include "families/families.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

// Not in the list of kernels: it computes no product.
constexpr Kernel copy_kernel{.name = "rearrange", .file = "rearrange.cpp", .summary = "", .params = "none"};
constexpr index_t tile = 64, work_items = 256;  // as in the kernel
constexpr index_t line_bytes = 128;             // lines begin at multiples of it: of any vector, and of the caches' lines

// As measured on an H200: see docs/nvidia.md.
constexpr double launching = 3;       // microseconds of a copy beside moving bytes
constexpr double bytes_a_us = 3.4e6;  // read and written
constexpr double turning = 1.1;       // how much longer that takes where lines become columns
constexpr double least_us = 30;       // products that end sooner are not looked at
constexpr double least_gain = 0.97;   // estimates are no better than that

struct Extent {
  index_t rows, cols;
  index_t lines(bool transposed) const { return transposed ? cols : rows; }
  index_t length(bool transposed) const { return transposed ? rows : cols; }
};
Extent extent_of(const Problem& p, bool of_b) { return of_b ? Extent{p.k, p.n} : Extent{p.m, p.k}; }
const Operand& operand_of(const Problem& p, bool of_b) { return of_b ? p.b : p.a; }

/// Matrices of a stack that are different ones, along the outer and the inner batch axis.
index_t outer_of(const Problem& p, const Operand& o) { return o.outer == 0 ? 1 : p.batch_outer; }
index_t inner_of(const Problem& p, const Operand& o) { return o.inner == 0 ? 1 : p.batch_inner; }

Operand copy_of(const Problem& p, bool of_b, bool transposed) {
  const Operand& from = operand_of(p, of_b);
  const Extent extent = extent_of(p, of_b);
  const index_t step = line_bytes / size_of(p.dtype);
  Operand to;
  to.transposed = transposed;
  to.ld = ceil_div(extent.length(transposed), step) * step;
  const index_t matrix = extent.lines(transposed) * to.ld;
  to.inner = from.inner == 0 ? 0 : matrix;
  to.outer = from.outer == 0 ? 0 : matrix * inner_of(p, from);
  return to;
}
std::size_t bytes_of(const Problem& p, bool of_b, const Operand& to) {
  const Operand& from = operand_of(p, of_b);
  return std::size_t(extent_of(p, of_b).lines(to.transposed) * to.ld * outer_of(p, from) * inner_of(p, from) * size_of(p.dtype));
}

bool is_aligned(const Problem& p, const Operand& o) {
  return ((o.ld | o.inner | o.outer) * size_of(p.dtype)) % 16 == 0;  // the longest vectors that a work-item loads
}

/// As it is, and the copies that may be better: with aligned lines, or along the other axis.
std::vector<std::optional<bool>> choices(const Problem& p, const Operand& o) {
  std::vector<std::optional<bool>> all{std::nullopt};
  if (!is_aligned(p, o)) all.push_back(o.transposed);
  all.push_back(!o.transposed);
  return all;
}

}  // namespace

Problem rearranged(const Problem& p, const Rearrangement& how) {
  Problem q = p;
  if (how.a) q.a = copy_of(p, false, *how.a);
  if (how.b) q.b = copy_of(p, true, *how.b);
  return q;
}

Rearrangement worth_copying(const Kernel& kernel, const Problem& p, const DeviceInfo& device) {
  if (!kernel.microseconds || p.k == 0) return {};
  double best = kernel.microseconds(p, device);
  if (best < least_us) return {};
  best *= least_gain;
  const double most_bytes = double(device.global_memory) / 8;
  Rearrangement chosen;
  for (const auto& a : choices(p, p.a))
    for (const auto& b : choices(p, p.b)) {
      if (!a && !b) continue;
      const Rearrangement how{a, b};
      const Problem q = rearranged(p, how);
      double bytes = 0, time = kernel.microseconds(q, device);
      for (const bool of_b : {false, true}) {
        if (!(of_b ? b : a)) continue;
        const Operand& to = operand_of(q, of_b);
        const double copied = double(bytes_of(p, of_b, to));
        bytes += copied;
        time += launching + 2 * copied / bytes_a_us * (to.transposed == operand_of(p, of_b).transposed ? 1 : turning);
      }
      if (time < best && bytes <= most_bytes) best = time, chosen = how;
    }
  return chosen;
}

Plan plan_rearranged(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params, const Rearrangement& how) {
  const Problem q = rearranged(p, how);
  Plan plan = kernel.plan(kernel, q, device, params);
  plan.kernel = &kernel;
  const auto add = [&](bool of_b, const Operand& to) {
    plan.scratch_bytes = (plan.scratch_bytes + 255) / 256 * 256;
    plan.copies.push_back({of_b, to, plan.scratch_bytes});
    plan.scratch_bytes += bytes_of(p, of_b, to);
    plan.reason += (plan.reason.empty() ? "" : "; ") + std::string(of_b ? "B" : "A") + " is copied first, " +
                   (to.transposed == operand_of(p, of_b).transposed ? "its lines aligned" : "transposed");
  };
  if (how.a) add(false, q.a);
  if (how.b) add(true, q.b);
  return plan;
}

CopyLaunch launch_of(const OperandCopy& copy, const Problem& p, void* scratch) {
  const Operand& from = operand_of(p, copy.of_b);
  const Extent extent = extent_of(p, copy.of_b);
  CopyLaunch launch;
  Problem& c = launch.problem;
  c.m = extent.lines(copy.to.transposed);
  c.n = extent.length(copy.to.transposed);
  c.dtype = p.dtype, c.accumulator = p.accumulator, c.out = p.out;
  c.batch_outer = outer_of(p, from), c.batch_inner = inner_of(p, from);
  c.a = from;
  c.a.transposed = from.transposed != copy.to.transposed;
  c.d = copy.to;
  c.d.transposed = false;
  c.d.data = static_cast<char*>(scratch) + copy.offset;
  launch.plan.kernel = &copy_kernel;
  launch.plan.constants = common_constants(c);
  const index_t groups = ceil_div(c.m, tile) * ceil_div(c.n, tile) * c.batch();
  launch.plan.range = {{1, 1, std::size_t(groups * work_items)}, {1, 1, std::size_t(work_items)}};
  return launch;
}

}  // namespace sycl_mat
