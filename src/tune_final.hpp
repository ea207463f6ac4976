// The final rounds of the tuner: the best few of every kernel, the defaults and the present choice, in turns.
#pragma once

#include "measure.hpp"

namespace sycl_mat {

struct Contender {
  const Kernel* kernel = nullptr;  ///< null: what `other` names
  Params params;
  // Filled by the rounds:
  double least = 0;             ///< seconds
  double ratio = 1;             ///< median over rounds: time ÷ the reference's time in the same round
  double noise = 0;             ///< of that median: 1.5 × median absolute deviation ÷ √rounds
  std::string wrong;            ///< why it was taken out, empty: it was not
  std::string_view other = {};  ///< "host" (on a CPU device) or "onemkl", which are no kernels of ours
};

std::string_view name_of(const Contender& c);

/// On a CPU device each launch is waited for, as a product is: what a launch costs is a part of the choice between it and the calling
/// thread. On a GPU they go out back to back, since the wall's clock is too coarse for one.
/// Lets all contenders take turns for about `seconds`, at least three rounds each; the first is the reference. Each must first give the
/// same result as the reference for this very problem: operands are such that sums are exact in every order.
void final_rounds(Context::State& context, const Problem& problem, std::vector<Contender>& contenders, double seconds);

}  // namespace sycl_mat
