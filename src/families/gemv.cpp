// Products with at most eight rows or columns on GPUs, matrix-vector products among them: how work-items share out the long operand.
#include <algorithm>
#include <bit>

#include "families.hpp"
#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

constexpr index_t most_few = 8;      // sums of so many vectors fit into registers
constexpr index_t unit_of_k = 64;    // parts of K are multiples of it, as in the kernel
constexpr double cache = 40e6;       // bytes that stay in a large NVIDIA chip's second cache until the next product
constexpr index_t most_splits = 64;  // groups that share K: the last of them reads what all have left
constexpr int narrow = 4;            // numbers of vectors up to which multiply-adds keep up with memory for 16-bit elements, too
constexpr int items_of_one_vector = 256, items_of_several = 128;  // of a group that computes dot products

/// Bytes that the beginnings of all lines of an operand are multiples of, 16 at most; `one_line`: its matrices have no others.
int alignment_of(const Operand& x, const Problem& p, bool one_line) {
  const index_t element = index_t(size_of(p.dtype));
  const index_t strides = (one_line ? 0 : x.ld) | (p.batch_inner > 1 ? x.inner : 0) | (p.batch_outer > 1 ? x.outer : 0);
  const auto bits = reinterpret_cast<std::uintptr_t>(x.data) | std::uintptr_t(strides * element) | 16u;
  return int(bits & (~bits + 1));
}

/// The product as the kernel sees it.
struct Sides {
  int side, few;       // 0: few rows, 1: few columns
  index_t results, k;  // of the long operand
  bool large_along_k, small_along_k;
  int element, alignment;  // bytes; the worse of both operands'
  int large_alignment;
};

Sides sides_of(const Problem& p) {
  Sides s;
  s.side = p.m <= most_few && (p.n > most_few || p.m <= p.n) ? 0 : 1;
  s.few = int(std::max<index_t>(s.side == 0 ? p.m : p.n, 1));  // of empty products nothing is launched
  s.results = std::max<index_t>(s.side == 0 ? p.n : p.m, 1);
  s.k = p.k;
  const Operand &large = s.side == 0 ? p.b : p.a, &small = s.side == 0 ? p.a : p.b;
  s.large_along_k = s.side == 0 ? p.b.transposed : !p.a.transposed;
  s.small_along_k = s.side == 0 ? !p.a.transposed : p.b.transposed;
  if (s.few == 1 && small.ld == 1) s.small_along_k = true;  // a single vector, whichever way it was called
  s.element = int(size_of(p.dtype));
  s.large_alignment = alignment_of(large, p, false);
  s.alignment = std::min(s.large_alignment, alignment_of(small, p, s.few == 1));
  return s;
}

/// What of the device matters here.
struct Target {
  bool nvidia;
  index_t processors;  // that hold work-groups
  index_t items;       // that keep memory busy, all together
  /// Sums of so many vectors in float64 take the registers of Intel's that more loads under way would need.
  bool full(const Sides& s) const { return !nvidia && s.element == 8 && s.few > 4; }
};

Target target_of(const DeviceInfo& device) {
  const index_t units = std::max(device.compute_units, 1);
  const bool nvidia = device.architecture.starts_with("nvidia"), intel = device.architecture.starts_with("intel");
  const index_t processors = intel ? std::max<index_t>(units / 8, 1) : units;  // Intel counts the engines of a subslice
  return {nvidia, processors, processors * (nvidia ? 1024 : 512)};
}

/// The kernel's constants.
struct Choice {
  int items = 256, along_k = 64, chunk = 4, rows = 4, steps = 4, sub_group = 0;
  bool passing = false;
  index_t split = 1;
  index_t block(const Sides& s) const { return items / along_k * (s.large_along_k ? rows : chunk); }
  index_t groups(const Sides& s, index_t batch) const { return ceil_div(s.results, block(s)) * std::max<index_t>(batch, 1); }
};

int power_of_two_up_to(index_t x) { return int(std::bit_floor(std::uint64_t(std::max<index_t>(x, 1)))); }

/// The long operand lies along K. A row is read by a whole group where it is long enough. Of several vectors each element is read for all
/// of a work-item's rows: the more vectors, the more rows. Single loads, for lines that begin anywhere, have to be many at a time.
Choice dot_products(const Sides& s, const Target& target, index_t batch) {
  Choice c;
  c.chunk = 16 / s.element;
  const bool singly = target.nvidia && s.alignment < 16, alone = s.few == 1;
  c.items = alone ? items_of_one_vector : items_of_several;
  if (singly || s.element < 4)
    c.rows = singly && s.few >= 4 ? 8 : 4;
  else
    c.rows = alone ? (s.k < 2048 ? 2 : 1) : s.few <= 4 || target.full(s) ? 2 : 4;
  c.steps = alone && c.rows <= 2 ? 2 : 1;
  const int unit = singly || !s.small_along_k ? 1 : c.chunk;
  c.along_k = std::min(c.items, power_of_two_up_to(s.k / (unit * (s.element < 4 ? 2 : 4))));
  while (c.rows > 1 && c.groups(s, batch) < target.processors * 3 / 4) c.rows /= 2;
  const index_t most = s.k / std::max<index_t>(unit_of_k, 2 * c.along_k * c.steps * unit);
  if (c.groups(s, batch) < target.processors) c.split = std::min(target.items / (c.groups(s, batch) * c.items), most);
  return c;
}

/// The long operand lies along the results. Groups that share K cost some microseconds: rather one group a processor, if need be one that
/// reads short pieces of lines.
Choice scaled_rows(const Sides& s, const Target& target, index_t batch) {
  Choice c;
  c.chunk = (target.nvidia ? s.large_alignment : 16) / s.element;
  c.chunk = std::clamp(c.chunk, 1, 8);
  while (c.chunk > 1 && c.chunk * s.few > 32) c.chunk /= 2;
  c.steps = target.full(s) ? 2 : s.few <= 2 ? std::max(4, 16 / c.chunk) : 4;
  const int bytes = c.chunk * s.element, most_items = !target.nvidia ? 256 : c.chunk == 1 ? 1024 : 512;
  int across = 128 / bytes;
  while (across * bytes > (target.nvidia ? 32 : 64) && ceil_div(s.results, across * c.chunk) * batch < target.processors * 7 / 8)
    across /= 2;
  c.along_k = std::min(most_items / across, power_of_two_up_to(s.k / (2 * c.steps)));
  c.items = std::max(across * c.along_k, 64);
  c.split = std::min(target.processors / c.groups(s, batch), s.k / std::max<index_t>(unit_of_k, 2 * c.along_k * c.steps));
  return c;
}

Choice choose(const Problem& p, const DeviceInfo& device) {
  const Sides s = sides_of(p);
  const Target target = target_of(device);
  Choice c = s.large_along_k ? dot_products(s, target, p.batch()) : scaled_rows(s, target, p.batch());
  c.split = std::clamp<index_t>(c.split, 1, most_splits);
  if (c.split > 1) c.split = ceil_div(s.k, ceil_div(ceil_div(s.k, c.split), unit_of_k) * unit_of_k);  // none is empty
  c.passing = target.nvidia && double(s.results) * double(s.k) * double(p.batch()) * s.element > cache;
  if (device.architecture == "intel-xe-hpc") c.sub_group = 16;  // its compiler takes 32 where it may choose, and spills
  return c;
}

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (p.m > most_few && p.n > most_few) return "it keeps the sums of at most " + std::to_string(most_few) + " rows or columns in registers";
  return unsupported_type(p, device);
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  if (!std::holds_alternative<std::monostate>(params)) throw ParamsError("gemv has no constants to choose");
  const Sides s = sides_of(p);
  const Choice c = choose(p, device);
  const index_t shared = ceil_div(s.results, c.block(s)) * p.batch(), groups = shared * c.split;
  if (groups > 0x7fffffff / c.items) throw UnsupportedError("the product needs more work-groups than one launch has");
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  for (auto& [name, value] : plan.constants)
    if (name == (s.side == 0 ? "TRANS_A" : "TRANS_B")) value = (s.side == 0) != s.small_along_k;
  plan.constants.insert(plan.constants.end(), {{"SIDE", s.side},
                                               {"FEW", s.few},
                                               {"ITEMS", c.items},
                                               {"ALONG_K", c.along_k},
                                               {"CHUNK", c.chunk},
                                               {"ROWS", c.rows},
                                               {"STEPS", c.steps},
                                               {"SPLIT", c.split > 1},
                                               {"PASSING", c.passing},
                                               {"SUB_GROUP", c.sub_group}});
  plan.range = {{1, 1, std::size_t(groups * c.items)}, {1, 1, std::size_t(c.items)}};
  plan.split_k = c.split;
  if (c.split > 1) {
    plan.scratch_stride = index_t(s.few) * c.block(s);
    plan.counter_bytes = std::size_t(ceil_div(shared * 4, 256) * 256);
    plan.scratch_bytes = plan.counter_bytes + std::size_t(groups * plan.scratch_stride * size_of(p.accumulator));
  }
  plan.reason = std::to_string(shared) + " groups for " + std::to_string(c.block(s)) + (s.side == 0 ? " columns" : " rows") + " each";
  if (c.split > 1) plan.reason += ", times " + std::to_string(c.split) + " along K";
  return plan;
}

/// Above all other kernels where memory is what limits the product: tiles would be empty for the most part. But tensor units multiply
/// several vectors of 16-bit elements faster, and of a stack of tiny products several fit into a tile's time.
int preference(const Problem& p, const DeviceInfo& device) {
  if (!device.is_gpu()) return 0;
  if (p.batch() > 1 && std::max(p.m, p.n) * p.k < 4096) return 5;
  return size_of(p.dtype) == 2 && std::min(p.m, p.n) > narrow ? 12 : 30;
}

}  // namespace

std::span<const Kernel> gemv_kernels() {
  static const Kernel kernels[] = {
      {.name = "gemv",
       .file = "gemv.cpp",
       .summary = "GPUs: at most eight rows or columns, vectors among them, at the speed of memory",
       .params = "none",
       .why_not = why_not,
       .defaults = defaults,
       .plan = plan,
       .preference = preference},
  };
  return kernels;
}

}  // namespace sycl_mat
