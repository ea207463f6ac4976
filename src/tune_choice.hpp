// What the final rounds of one problem come to: an outcome a kernel, which kernel is the fastest of all, and the records of both.
#pragma once

#include <span>

#include "tune_final.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {

/// "host" or "onemkl": what a product can run with beside our kernels. Those that can do this problem here (oneMKL only where it is
/// installed), as far as it makes sense to measure them.
std::vector<std::string_view> others_for(const Problem& p, const DeviceInfo& device);

/// A choice of the planner's as a contender.
Contender contender_of(std::string_view kernel, const Params& params);

/// One kernel's outcome for a problem, from contenders that took turns. `present` is the kernel's own present choice.
TuneOutcome outcome_of(const std::vector<Contender>& contenders, std::string_view kernel, const Params& defaults, const Params& present,
                       const TuneProblem& problem, double flops);

/// Marks the fastest among the outcomes of one problem, in which `contenders` took turns: the kernel of `present` (the first contender)
/// stays unless another beats it beyond the noise. oneMKL is marked beside ours where it beats all of them.
void mark_fastest(std::span<TuneOutcome> outcomes, const std::vector<Contender>& contenders, std::string_view rule);

/// How far the winner of one problem may be carried: it is run beside the planner's own choice without measurements on neighbours (smaller
/// and larger ones with odd sizes, and the power of two nearby, whose rows collide in the caches). `kernel_chosen`: beside the kernel that
/// the rule takes there, otherwise beside the same kernel's defaults. Slower on any of them: it serves its own shape only; so does one for
/// which there is no time left at `deadline` (each neighbour may need a program of its own).
double proven_reach(Context::State& context, const Contender& winner, const TuneProblem& problem, bool kernel_chosen, double deadline);

TunedRecord make_record(const TuneOutcome& outcome, const Problem& p, const DeviceInfo& device);

}  // namespace sycl_mat
