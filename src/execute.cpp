#include "execute.hpp"

#include "backends/onemkl.hpp"
#include "launch.hpp"
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
    try {
      launch(context, prepared->plan, *prepared->program, prepared->copies, problem);
    } catch (const OutOfMemoryError&) {
      if (prepared->plan.copies.empty()) throw;
      const auto plain = context.prepared.without_copies(context.programs, problem, options, prepared);  // slower, with the same bits
      launch(context, plain->plan, *plain->program, problem);
    }
    remember_kernel(prepared->plan.kernel->name);
  }
}

}  // namespace sycl_mat
