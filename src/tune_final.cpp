// Why in turns, and why the median of ratios: in a search the candidates are minutes apart, and a neighbour that woke up meanwhile
// would decide. Within a round all contenders meet the same machine, so what disturbs them cancels in the ratio; and the median over
// rounds does not care for the one round in which something happened between two turns.
#include "tune_final.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "launch.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Runner {
  Plan plan;
  const Program* program = nullptr;
  int launches = 1;
  std::vector<double> times;
};

/// D after one product, on the host. D was filled with ones bits before, which are NaN: an element left out is seen.
std::vector<char> result_of(Context::State& context, const Runner& runner, const Problem& p) {
  const std::size_t bytes = static_cast<std::size_t>(p.m * p.n * p.batch() * size_of(p.out));
  context.queue.memset(p.d.data, 0xff, bytes);
  launch(context, runner.plan, *runner.program, p);
  std::vector<char> data(bytes);
  context.queue.memcpy(data.data(), p.d.data, bytes);
  context.wait();
  return data;
}

}  // namespace

void final_rounds(Context::State& context, Workbench& bench, const Problem& problem, std::vector<Contender>& contenders, double seconds) {
  std::vector<Runner> runners(contenders.size());
  std::vector<char> reference;
  double round_seconds = 0;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& c = contenders[i];
    Runner& r = runners[i];
    try {
      r.plan = c.kernel->plan(*c.kernel, problem, context.info, c.params);
      r.plan.kernel = c.kernel;
      r.program = &context.programs.get(*c.kernel, r.plan.constants);
      const std::vector<char> result = result_of(context, r, problem);
      if (i == 0) reference = result;
      if (result != reference) c.wrong = "its result for this problem differs from the present choice's";
      const double one = bench.time(r.plan, *r.program, problem, 1);
      r.launches = launches_for(3e-3, one);
      round_seconds += one * r.launches;
    } catch (const std::exception& e) {
      c.wrong = e.what();
    }
  }
  if (!contenders[0].wrong.empty()) return;
  const int rounds = static_cast<int>(std::clamp(seconds / round_seconds, 3.0, 25.0));
  for (int round = 0; round < rounds; ++round) {
    // Each round begins with another one, so that nobody always follows the same neighbour.
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % contenders.size();
      if (!contenders[i].wrong.empty()) continue;
      runners[i].times.push_back(bench.time(runners[i].plan, *runners[i].program, problem, runners[i].launches));
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& c = contenders[i];
    if (!c.wrong.empty()) continue;
    c.least = *std::min_element(runners[i].times.begin(), runners[i].times.end());
    std::vector<double> ratios, deviations;
    for (std::size_t round = 0; round < runners[i].times.size(); ++round)
      ratios.push_back(runners[i].times[round] / runners[0].times[round]);
    c.ratio = median(ratios);
    for (const double ratio : ratios) deviations.push_back(std::abs(ratio - c.ratio));
    c.noise = 1.5 * median(deviations) / std::sqrt(double(ratios.size()));
  }
}

}  // namespace sycl_mat
