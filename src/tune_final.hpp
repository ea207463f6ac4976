// The final rounds of the tuner: the best few of every kernel, the defaults and the present choice, in turns.
#pragma once

#include "measure.hpp"

namespace sycl_mat {

struct Contender {
  const Kernel* kernel = nullptr;
  Params params;
  // Filled by the rounds:
  double least = 0;   ///< seconds
  double ratio = 1;   ///< median over rounds: time ÷ the reference's time in the same round
  double noise = 0;   ///< of that median: 1.5 × median absolute deviation ÷ √rounds
  std::string wrong;  ///< why it was taken out, empty: it was not
};

/// Lets all contenders take turns for about `seconds`, at least three rounds each; the first is the reference. Each must first give the
/// same result as the reference for this very problem: operands are such that sums are exact in every order.
void final_rounds(Context::State& context, Workbench& bench, const Problem& problem, std::vector<Contender>& contenders, double seconds);

}  // namespace sycl_mat
