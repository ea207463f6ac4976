#include "rearrange.hpp"

#include <algorithm>
#include <limits>

#include "families/families.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

// Not in the list of kernels: it computes no product.
constexpr Kernel copy_kernel{.name = "rearrange", .file = "rearrange.cpp", .summary = "", .params = "none"};
constexpr index_t tile = 64, work_items = 256;  // as in the kernel
constexpr index_t line_bytes = 128;             // copies' lines begin at multiples of it: of any vector, and of the caches' lines

// As measured on an H200: see docs/nvidia.md.
constexpr double launching = 3;       // microseconds of a copy beside moving bytes
constexpr double bytes_a_us = 3.6e6;  // read and written
constexpr double turning = 1.1;       // how much longer that takes where lines become columns
constexpr double least_us = 15;       // products that end sooner are not looked at
constexpr double least_gain = 0.97;   // estimates are no better than that

/// Lines in memory, and how many elements each has.
struct Extent {
  index_t lines, length;
};
Extent extent_of(const Problem& p, Matrix of, bool transposed) {
  const index_t rows = of == Matrix::b ? p.k : p.m, cols = of == Matrix::a ? p.k : p.n;
  return transposed ? Extent{cols, rows} : Extent{rows, cols};
}
const Operand& operand_of(const Problem& p, Matrix of) { return of == Matrix::a ? p.a : of == Matrix::b ? p.b : p.d; }
DType type_of(const Problem& p, Matrix of) { return of == Matrix::d ? p.out : p.dtype; }

/// Matrices of a stack that are different ones, along the outer and the inner batch axis.
index_t outer_of(const Problem& p, const Operand& o) { return o.outer == 0 ? 1 : p.batch_outer; }
index_t inner_of(const Problem& p, const Operand& o) { return o.inner == 0 ? 1 : p.batch_inner; }

Operand copy_of(const Problem& p, Matrix of, bool transposed) {
  const Operand& from = operand_of(p, of);
  const Extent extent = extent_of(p, of, transposed);
  const index_t step = line_bytes / size_of(type_of(p, of));
  Operand to;
  to.transposed = transposed;
  to.padded = true;
  to.ld = ceil_div(extent.length, step) * step;
  const index_t matrix = extent.lines * to.ld;
  to.inner = from.inner == 0 ? 0 : matrix;
  to.outer = from.outer == 0 ? 0 : matrix * inner_of(p, from);
  return to;
}
std::size_t bytes_of(const Problem& p, Matrix of, const Operand& copy) {
  const Operand& from = operand_of(p, of);
  return std::size_t(extent_of(p, of, copy.transposed).lines * copy.ld * outer_of(p, from) * inner_of(p, from) * size_of(type_of(p, of)));
}

/// The longest vectors that a work-item moves, in elements.
index_t vector_of(const Problem& p, Matrix of) { return 16 / size_of(type_of(p, of)); }

bool is_aligned(const Problem& p, Matrix of) {
  const Operand& o = operand_of(p, of);
  return (o.ld | o.inner | o.outer) % vector_of(p, of) == 0;
}

/// The kernels' estimates look at the distances of lines alone. To a kernel, matrices of a stack that begin anywhere are the same as lines
/// that do.
double estimate(const Kernel& kernel, Problem p, const DeviceInfo& device) {
  for (const Matrix of : {Matrix::a, Matrix::b, Matrix::d}) {
    Operand& o = of == Matrix::a ? p.a : of == Matrix::b ? p.b : p.d;
    o.ld |= (o.inner | o.outer) & (vector_of(p, of) - 1);
  }
  return kernel.microseconds(p, device);
}

/// As it is, and the copies that may be better: with aligned lines, or along the other axis.
std::vector<std::optional<bool>> choices(const Problem& p, Matrix of) {
  const bool transposed = operand_of(p, of).transposed;
  std::vector<std::optional<bool>> all{std::nullopt};
  if (!is_aligned(p, of)) all.push_back(transposed);
  all.push_back(!transposed);
  return all;
}

std::vector<Matrix> copied(const Rearrangement& how) {
  std::vector<Matrix> all;
  if (how.a) all.push_back(Matrix::a);
  if (how.b) all.push_back(Matrix::b);
  if (how.d) all.push_back(Matrix::d);
  return all;
}

/// Groups of work-items that copy a matrix, or a stack of them. Beyond most_groups a launch cannot count its work-items.
index_t groups_of(const Extent& extent, DType type, index_t matrices, bool result) {
  const index_t beyond = result ? line_bytes / size_of(type) - 1 : 0;  // groups begin where lines of the caches do
  return ceil_div(extent.lines, tile) * ceil_div(extent.length + beyond, tile) * matrices;
}
constexpr index_t most_groups = std::numeric_limits<int>::max() / work_items;

std::string words(const MatrixCopy& copy, const Problem& p) {
  if (copy.of == Matrix::d) return "D is copied from aligned lines";
  return std::string(copy.of == Matrix::a ? "A" : "B") + " is copied first, " +
         (copy.in_scratch.transposed == operand_of(p, copy.of).transposed ? "its lines aligned" : "transposed");
}

}  // namespace

Problem rearranged(const Problem& p, const Rearrangement& how) {
  Problem q = p;
  if (how.a) q.a = copy_of(p, Matrix::a, *how.a);
  if (how.b) q.b = copy_of(p, Matrix::b, *how.b);
  if (how.d) q.d = copy_of(p, Matrix::d, false);
  return q;
}

Rearrangement worth_copying(const Kernel& kernel, const Problem& p, const DeviceInfo& device) {
  if (!kernel.microseconds || p.k == 0) return {};
  double best = estimate(kernel, p, device);
  if (best < least_us) return {};
  best *= least_gain;
  const double most_bytes = double(device.global_memory) / 8;
  Rearrangement chosen;
  const auto consider = [&](const Rearrangement& how) {
    const Problem q = rearranged(p, how);
    double bytes = 0, time = estimate(kernel, q, device);
    bool possible = true;
    for (const Matrix of : copied(how)) {
      const Operand& copy = operand_of(q, of);
      const double one = double(bytes_of(p, of, copy));
      bytes += one;
      time += launching + 2 * one / bytes_a_us * (copy.transposed == operand_of(p, of).transposed ? 1 : turning);
      const Operand& from = operand_of(p, of);
      const index_t matrices = outer_of(p, from) * inner_of(p, from);
      possible &= groups_of(extent_of(p, of, copy.transposed), type_of(p, of), matrices, of == Matrix::d) <= most_groups;
    }
    if (possible && time < best && bytes <= most_bytes) best = time, chosen = how;
  };
  const bool d_too = !is_aligned(p, Matrix::d) && p.out == p.dtype;
  for (const auto& a : choices(p, Matrix::a))
    for (const auto& b : choices(p, Matrix::b)) {
      if (a || b) consider({a, b, false});
      if (d_too) consider({a, b, true});
    }
  return chosen;
}

Plan plan_rearranged(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params, const Rearrangement& how) {
  const Problem q = rearranged(p, how);
  Plan plan = kernel.plan(kernel, q, device, params);
  plan.kernel = &kernel;
  for (const Matrix of : copied(how)) {
    plan.scratch_bytes = (plan.scratch_bytes + 255) / 256 * 256;
    plan.copies.push_back({of, operand_of(q, of), plan.scratch_bytes});
    plan.scratch_bytes += bytes_of(p, of, operand_of(q, of));
  }
  return plan;
}

std::string reason_of(const Plan& plan, const Problem& p) {
  std::string reason = plan.reason;
  for (const MatrixCopy& copy : plan.copies) reason += (reason.empty() ? "" : "; ") + words(copy, p);
  return reason;
}

Plan in_place(Plan plan, const Problem& p, const std::string& why) {
  if (plan.copies.empty()) return plan;
  plan.reason += (plan.reason.empty() ? "" : "; ") + why;
  plan.scratch_bytes = plan.copies.front().offset;
  plan.copies.clear();
  // How the matrices lie is all that a program knows of them. Which tiles there are and who computes them stays, and so do all sums.
  const auto swapped = std::find(plan.constants.begin(), plan.constants.end(), Constants::value_type("SWAPPED", 1)) != plan.constants.end();
  for (auto& [name, value] : plan.constants) {
    if (name == "TRANS_A") value = swapped ? !p.b.transposed : p.a.transposed;
    if (name == "PADDED_A" || name == "PADDED_B") value = 0;
    if (name == "TRANS_B") value = swapped ? !p.a.transposed : p.b.transposed;
  }
  return plan;
}

std::int64_t bytes_of_copies(const Plan& plan, const Problem& p) {
  std::int64_t sum = 0;
  for (const MatrixCopy& copy : plan.copies) sum += std::int64_t(bytes_of(p, copy.of, copy.in_scratch));
  return sum;
}

std::int64_t bytes_of_operands(const Problem& p) {
  std::int64_t sum = 0;
  const auto add = [&](const Operand& o, index_t elements, DType type) {
    sum += elements * outer_of(p, o) * inner_of(p, o) * size_of(type);
  };
  add(p.a, p.m * p.k, p.dtype);
  add(p.b, p.k * p.n, p.dtype);
  add(p.d, p.m * p.n, p.out);
  if (p.c.data && p.c.data != p.d.data) add(p.c, p.m * p.n, p.out);
  return sum;
}

CopyLaunch launch_of(const MatrixCopy& copy, const Problem& p, void* scratch) {
  const Operand& callers = operand_of(p, copy.of);
  const Extent extent = extent_of(p, copy.of, copy.in_scratch.transposed);
  const bool result = copy.of == Matrix::d;
  CopyLaunch launch;
  Problem& c = launch.problem;
  c.m = extent.lines;
  c.n = extent.length;
  c.dtype = c.out = type_of(p, copy.of);
  c.accumulator = p.accumulator;
  c.batch_outer = outer_of(p, callers), c.batch_inner = inner_of(p, callers);
  Operand in_scratch = copy.in_scratch;
  in_scratch.data = static_cast<char*>(scratch) + copy.offset;
  c.a = result ? in_scratch : callers;
  c.d = result ? callers : in_scratch;
  c.a.transposed = callers.transposed != copy.in_scratch.transposed;  // how A's lines lie to D's
  c.d.transposed = false;
  launch.plan.kernel = &copy_kernel;
  launch.plan.constants = common_constants(c);
  launch.plan.constants.emplace_back("ALIGNED", !result);
  const index_t groups = groups_of(extent, c.dtype, c.batch(), result);
  launch.plan.range = {{1, 1, std::size_t(groups * work_items)}, {1, 1, std::size_t(work_items)}};
  return launch;
}

std::vector<const Program*> programs_of_copies(Programs& programs, const Plan& plan, const Problem& p) {
  std::vector<const Program*> all;
  for (const MatrixCopy& copy : plan.copies) {
    const Plan one = launch_of(copy, p, nullptr).plan;
    all.push_back(&programs.get(*one.kernel, one.constants));
  }
  return all;
}

}  // namespace sycl_mat
