// The search for one kernel, element type and layout over a set of problem sizes.
#pragma once

#include <memory>

#include "measure.hpp"
#include "search.hpp"
#include "tune_journal.hpp"
#include "tune_space.hpp"

namespace sycl_mat {

class GroupSearch {
 public:
  /// `group.kernel` and `group.problems` are set (all of one dtype and layout); the rest of it is filled here.
  GroupSearch(Context::State& context, const TuneOptions& options, TuneGroup& group);

  /// Searches until `deadline` (seconds of now()), the strategy's end, or an interruption. `report` is called after every candidate.
  void run(double start, double deadline, const std::function<void()>& report);

  const Kernel& kernel() const { return kernel_; }
  const Params& defaults(std::size_t problem) const { return defaults_[problem]; }
  const Params& present(std::size_t problem) const { return present_[problem]; }
  /// Up to `count` sets for a problem, fastest first.
  std::vector<Params> finalists(std::size_t problem, std::size_t count) const;
  /// Geometric mean over the problems: time of the defaults ÷ least time so far.
  double best_ratio() const;
  double default_seconds(std::size_t problem) const { return default_seconds_[problem]; }
  double least_seconds(std::size_t problem) const { return least_[problem]; }
  std::size_t failures() const { return failures_; }
  std::size_t problem_count() const { return problems_.size(); }
  void write_sweep(const std::string& file) const;
  bool interrupted() const { return interrupted_; }

  static double now();

 private:
  struct Built;
  bool stop(double deadline);
  std::vector<Candidate> ask(std::size_t count);
  std::vector<Built> build(std::vector<Candidate> candidates);
  void measure(Built& built, bool whole);
  void record(Candidate candidate);
  double guess(const Params& params) const;

  Context::State& context_;
  const TuneOptions& options_;
  TuneGroup& group_;
  const Kernel& kernel_;
  std::vector<Problem> problems_;
  std::unique_ptr<Workbench> bench_;
  std::unique_ptr<TuneSpace> space_;
  std::unique_ptr<Journal> journal_;
  std::vector<std::unique_ptr<Searcher>> searchers_;  ///< of the geometric mean, then one a problem where there are several
  std::size_t turn_ = 0;
  std::vector<Params> defaults_, present_;
  std::vector<double> default_seconds_, least_;
  std::vector<std::size_t> by_cost_;  ///< problems, cheapest first
  double best_mean_ = 1;              ///< least geometric mean of time ÷ time of the defaults, over problems
  std::vector<std::string> tried_;
  std::size_t failures_ = 0;
  double start_ = 0;
  bool interrupted_ = false;
};

}  // namespace sycl_mat
