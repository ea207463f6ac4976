// Why in turns, and why the median of ratios: in a search the candidates are minutes apart, and a neighbour that woke up meanwhile
// would decide. Within a round all contenders meet the same machine, so what disturbs them cancels in the ratio; and the median over
// rounds does not care for the one round in which something happened between two turns.
#include "tune_final.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/host.hpp"
#include "backends/onemkl.hpp"
#include "caller_placement.hpp"
#include "launch.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_group.hpp"

namespace sycl_mat {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One contender for one problem, ready to go.
class Runner {
 public:
  /// Throws what planning and compiling throw.
  void prepare(Context::State& context, const Contender& c, const Problem& p) {
    context_ = &context;
    problem_ = p;
    if (c.kernel) {
      plan_ = plan_with(*c.kernel, p, context.info, c.params);
      program_ = &context.programs.get(*c.kernel, plan_.constants);
    } else if (c.other == onemkl::name) {
      onemkl::require();
      if (const std::string reason = onemkl::why_not(p); !reason.empty()) throw UnsupportedError("oneMKL: " + reason);
    } else if (!context.info.is_cpu()) {
      throw UnsupportedError("the host path reads the processor's memory");
    } else {
      on_host_ = true;
    }
  }

  /// Seconds of one product.
  double time(int products) {
    const double start = GroupSearch::now();
    if (on_host_) {
      for (int i = 0; i < products; ++i) host::run(problem_);
    } else {
      const bool wait_each = context_->info.is_cpu();
      const CallerPlacement placement(wait_each);
      for (int i = 0; i < products; ++i) {
        submit();
        if (wait_each) context_->wait();
      }
      context_->wait();
    }
    return (GroupSearch::now() - start) / products;
  }

  /// D after one product, on the host. D was filled with ones bits before, which are NaN: an element left out is seen.
  std::vector<char> result() {
    const std::size_t bytes = static_cast<std::size_t>(problem_.m * problem_.n * problem_.batch() * size_of(problem_.out));
    context_->queue.memset(problem_.d.data, 0xff, bytes);
    context_->wait();
    time(1);
    std::vector<char> data(bytes);
    context_->queue.memcpy(data.data(), problem_.d.data, bytes);
    context_->wait();
    return data;
  }

  bool runs = false;  ///< takes part in the rounds
  double first = infinite;
  int launches = 1;
  std::vector<double> times;

 private:
  void submit() {
    if (program_)
      launch(*context_, plan_, *program_, problem_);
    else
      onemkl::gemm(*context_, problem_);
  }

  Context::State* context_ = nullptr;
  Problem problem_;
  Plan plan_;
  const Program* program_ = nullptr;
  bool on_host_ = false;
};

}  // namespace

std::string_view name_of(const Contender& c) { return c.kernel ? c.kernel->name : c.other; }

void final_rounds(Context::State& context, const Problem& problem, std::vector<Contender>& contenders, double seconds) {
  std::vector<Runner> runners(contenders.size());
  std::vector<char> reference;
  double round_seconds = 0;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& c = contenders[i];
    Runner& r = runners[i];
    try {
      r.prepare(context, c, problem);
      const std::vector<char> result = r.result();
      if (i == 0) reference = result;
      if (result != reference) c.wrong = "its result for this problem differs from the present choice's";
      r.first = std::min({r.time(1), r.time(1), r.time(1)});
      r.launches = launches_for(3e-3, r.first);
    } catch (const std::exception& e) {
      c.wrong = e.what();
    }
  }
  if (!contenders[0].wrong.empty()) return;
  // The hopeless, whose times no round would bring near the best, take no more of them.
  double least = infinite;
  for (const Runner& r : runners) least = std::min(least, r.first);
  round_seconds = 0;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& c = contenders[i];
    if (!c.wrong.empty()) continue;
    runners[i].runs = i == 0 || runners[i].first < 2 * least;
    if (runners[i].runs)
      round_seconds += runners[i].first * runners[i].launches;
    else
      c.least = runners[i].first, c.ratio = runners[i].first / runners[0].first;
  }
  const int rounds = static_cast<int>(std::clamp(seconds / round_seconds, 3.0, 40.0));
  for (int round = 0; round < rounds; ++round) {
    // Each round begins with another one, so that nobody always follows the same neighbour.
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % contenders.size();
      if (!runners[i].runs) continue;
      if (runners[i].launches > 1) runners[i].time(1);  // who ran before may have left the caches, and the cores, in another state
      runners[i].times.push_back(runners[i].time(runners[i].launches));
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& c = contenders[i];
    if (!runners[i].runs) continue;
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
