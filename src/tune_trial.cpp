// try_params(): one set of constants by hand, beside the present choice.
#include <algorithm>

#include "params_pack.hpp"
#include "params_tile.hpp"
#include "plan.hpp"
#include "roofline.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_choice.hpp"
#include "tune_group.hpp"

namespace sycl_mat {

Trial try_params(Context& where, const TuneProblem& problem, const Params& params, const std::string& kernel_name) {
  Context::State& context = where.state();
  const DeviceInfo& device = context.info;
  if (problem.m < 1 || problem.n < 1 || problem.k < 1 || problem.batch < 1)
    throw InputError("the sizes of a problem to try must be positive");
  const Kernel& kernel = find_kernel(!kernel_name.empty() ? kernel_name : std::holds_alternative<PackParams>(params) ? "packed" : "tiled");
  try {
    Workbench bench(context, std::span(&problem, 1));
    const Problem p = bench.problem(problem);
    if (kernel.why_not)
      if (const std::string why = kernel.why_not(p, device); !why.empty())
        throw UnsupportedError("the kernel \"" + std::string(kernel.name) + "\" cannot compute this product: " + why);
    const Plan wanted = plan_with(kernel, p, device, params);  // throws ParamsError
    const Choice present = choose(p, device, Records::all);

    Trial trial;
    trial.problem = problem;
    trial.kernel = kernel.name;
    trial.params = params;
    trial.present_kernel = present.kernel;
    trial.present = present.params;
    trial.local_memory = wanted.local_memory;
    if (const auto* tiled = std::get_if<TiledChoice>(&params)) {
      const TileCosts cost = costs(tiled->params, tiled->options, p.dtype);
      trial.registers_estimate = cost.registers;
      trial.work_items = cost.work_items;
      trial.chunks_a = cost.chunks_each_a;
      trial.chunks_b = cost.chunks_each_b;
      trial.idle_a = cost.idle_a;
      trial.idle_b = cost.idle_b;
    } else if (const auto* pack = std::get_if<PackParams>(&params)) {
      trial.registers_estimate = registers_of(*pack);
    }
    const Bound limit = bound(measure_roofline(context, p.dtype), device, shape_of(p), p.dtype);
    trial.bound_gflops = p.flops() / limit.seconds * 1e-9;
    trial.limit = to_string(limit.limit);

    const double begun = GroupSearch::now();
    try {
      const Program& program = context.programs.get(kernel, wanted.constants);
      trial.build_seconds = GroupSearch::now() - begun;
      trial.registers = program.registers;
      trial.spills = program.spills;
      trial.why = prove(context, kernel, params, problem);
    } catch (const Error& e) {
      trial.why = e.what();
      return trial;
    }
    trial.correct = trial.why.empty();
    std::vector<Contender> contenders{contender_of(present.kernel, present.params), contender_of(kernel.name, params)};
    final_rounds(context, p, contenders, 0.5);
    const auto gflops = [&](const Contender& c) { return c.least > 0 ? p.flops() / c.least * 1e-9 : 0; };
    trial.present_gflops = gflops(contenders[0]);
    trial.gflops = gflops(contenders[1]);
    if (trial.correct && !contenders[1].wrong.empty()) {
      trial.correct = false;
      trial.why = contenders[1].wrong;
    }
    return trial;
  } catch (const sycl::exception& e) {
    rethrow(e, device);
  }
}

}  // namespace sycl_mat
