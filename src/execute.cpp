#include "execute.hpp"

#include "backends/onemkl.hpp"
#include "launch.hpp"
#include "rearrange.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

thread_local std::string_view last_name;

}  // namespace

void remember_kernel(std::string_view name) { last_name = name; }

std::string last_kernel() { return std::string(last_name); }

void execute(Context::State& context, const Problem& problem, const GemmOptions& options) {
  const auto prepared = context.prepared.get(context.programs, problem, context.info, options);
  if (prepared->plan.backend == onemkl::name) {
    onemkl::gemm(context, problem);
    remember_kernel(onemkl::name);
  } else {
    const Plan& plan = prepared->plan;
    try {
      launch(context, plan, *prepared->program, problem);
    } catch (const OutOfMemoryError&) {
      if (plan.copies.empty()) throw;
      const Plan plain = plan_rearranged(*plan.kernel, problem, context.info, plan.params, {});  // slower, but it needs no copies
      launch(context, plain, context.programs.get(*plan.kernel, plain.constants), problem);
    }
    remember_kernel(plan.kernel->name);
  }
}

}  // namespace sycl_mat
