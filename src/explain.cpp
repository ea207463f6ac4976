// What would run, and why. Builds the program, so that the driver's own words on registers and spills can be reported; runs nothing.
#include "backends/host.hpp"
#include "context.hpp"
#include "plan.hpp"
#include "rearrange.hpp"
#include "slices.hpp"
#include "staging.hpp"
#include "sycl_mat/gemm.hpp"
#include "view.hpp"

namespace sycl_mat {
namespace {

std::string text_of(const std::array<std::size_t, 3>& range) {
  return std::to_string(range[0]) + "×" + std::to_string(range[1]) + "×" + std::to_string(range[2]);
}

std::string_view text_of(Origin origin) {
  switch (origin) {
    case Origin::memory:
      return "kept in memory";
    case Origin::disk_cache:
      return "loaded from the cache on disk";
    case Origin::shipped_object:
      return "linked from the object that ships with the library";
    case Origin::compiled:
      return "compiled from source";
  }
  return "";
}

}  // namespace

Explanation explain(Context& where, const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d,
                    const GemmOptions& options) {
  Context::State& context = where.state();
  Explanation out;
  out.device = context.info.name + " (" + context.info.selector + ", " + context.info.architecture + ")";
  Operands operands = check(a, b, c, d, options);
  if (is_empty(operands.d)) {
    out.kernel = "none";
    out.reason = "the result has no elements";
    return out;
  }
  collapse_batch(operands);
  try {
    const Operands first = first_slice(operands);
    const Problem shape = make_problem(first, options);
    if (on_host(shape, context.info, options)) {
      const Staging staging(context, operands, Staging::Where::host);
      out.kernel = host::name;
      out.memory = staging.description();
      out.reason = why_on_host(shape, context.info, options);
      return out;
    }
    const Staging staging(context, operands, Staging::Where::device);
    context.wait();
    const Problem problem = make_problem(first_slice(staging.operands()), options);
    const auto prepared = context.prepared.get(context.programs, problem, context.info, options);
    const Plan& plan = prepared->plan;
    if (!plan.kernel) {
      out.kernel = plan.backend;
      out.reason = plan.reason;
      out.memory = staging.description();
      return out;
    }
    out.kernel = plan.kernel->name;
    for (const auto& [name, value] : plan.constants)
      out.constants.append(out.constants.empty() ? "" : " ").append(name).append("=").append(std::to_string(value));
    out.reason = reason_of(plan, problem);
    out.memory = staging.description();
    out.launch_range = "global " + text_of(plan.range.global) + ", local " + text_of(plan.range.local) + " (batch × rows × columns)";
    out.local_memory = plan.local_memory;
    out.scratch = static_cast<std::int64_t>(plan.scratch_bytes);
    out.registers = prepared->program->registers;
    out.spills = prepared->program->spills;
    out.program = text_of(prepared->program->origin);
    return out;
  } catch (const sycl::exception& e) {
    rethrow(e, context.info);
  }
}

std::vector<KernelInfo> kernels() {
  std::vector<KernelInfo> out;
  for (const Kernel& k : all_kernels()) out.push_back({std::string(k.name), std::string(k.summary), std::string(k.params)});
  out.push_back({std::string(host::name), "tiny products on the calling thread, no launch", "none"});
  return out;
}

}  // namespace sycl_mat
