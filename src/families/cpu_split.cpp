#include "cpu_split.hpp"

#include <algorithm>
#include <cmath>

#include "../../kernels/packed_layout.hpp"
#include "families.hpp"

namespace sycl_mat {
namespace {

// Vector multiply-adds that fit into the time in which a launch reaches a second core (1–2 µs at some 3.5·10⁹ a second).
constexpr double wake_up = 4000;
// Products below which a part of K is not worth its sums' way through memory.
constexpr double min_k_part = 256;
// The same for every vector of sums: written by each part, read by the last one, through another core's cache.
constexpr double shared_sums = 6;
// Cores that share rows write into the same cache line of each where it does not begin between them.
constexpr double shared_line = 10;
// What a step of a register block costs beside its multiply-adds: loads, the loop.
constexpr double step = 1;

}  // namespace

CpuSplit split_for_cores(const Problem& p, int cores, const CpuCosts& c) {
  CpuSplit best;
  best.cost = -1;
  const index_t batch = p.batch();
  const index_t row_panels = ceil_div(p.m, c.mr), vectors = ceil_div(p.n, c.width);
  const index_t limit = std::max<index_t>(1, cores);
  const index_t all_m = std::min(limit, std::max<index_t>(1, row_panels)), all_n = std::min(limit, std::max<index_t>(1, vectors));
  const index_t all_k = c.may_split_k ? std::clamp<index_t>(static_cast<index_t>(p.k / min_k_part), 1, limit) : 1;
  for (index_t gm = 1; gm <= all_m; ++gm)
    for (index_t gn = 1; gm * gn <= limit && gn <= all_n; ++gn)
      for (index_t gk = 1; gm * gn * gk <= limit && gk <= all_k; ++gk) {
        const index_t parts = gm * gn * gk;
        if (parts > 1 && batch % limit == 0) continue;  // the stack alone keeps all cores busy
        const double rows = static_cast<double>(std::min(p.m, ceil_div(row_panels, gm) * c.mr));
        const double width = static_cast<double>(ceil_div(vectors, gn)), depth = static_cast<double>(ceil_div(p.k, gk));
        const double panels = std::ceil(width * c.width / c.nr), steps = rows / c.mr * panels * depth * step;
        double cost = (rows * width * depth + steps) * (gm > 1 ? 1 + c.cut_m : 1) + c.pack_b * width * depth +
                      (c.pack_a + c.read_a) * rows * depth / c.width;
        cost += c.write * rows * width + (gn > 1 ? shared_line : 0) * rows;
        if (gk > 1) cost += shared_sums * rows * width * static_cast<double>(gk) + wake_up / 2;
        const index_t groups = std::min(batch * parts, limit);
        cost *= static_cast<double>(ceil_div(batch * parts, groups));
        if (groups > 1) cost += wake_up;
        if (best.cost < 0 || cost <= best.cost) best = {gm, gn, gk, groups, cost};
      }
  return best;
}

void set_split(Plan& plan, const CpuSplit& split) {
  plan.range.global = {1, 1, static_cast<std::size_t>(split.groups)};
  plan.split_m = split.m, plan.split_n = split.n, plan.split_k = split.k;
  plan.reason = "cores share M×N×K as " + std::to_string(split.m) + "×" + std::to_string(split.n) + "×" + std::to_string(split.k);
}

void set_scratch(Plan& plan, const Problem& p, index_t groups, index_t stride, index_t counters) {
  plan.scratch_stride = stride;
  index_t elements = groups * stride;
  if (plan.split_k > 1) {
    counters = p.batch() * plan.split_m * plan.split_n;
    elements += p.batch() * plan.split_k * p.m * p.n;
  }
  plan.counter_bytes = static_cast<std::size_t>(packed_counter_bytes(counters));
  plan.scratch_bytes = plan.counter_bytes + static_cast<std::size_t>(elements * size_of(p.accumulator));
}

}  // namespace sycl_mat
