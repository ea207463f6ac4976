// tune(): groups of problems are searched one after the other, then each problem's best of every kernel take turns, then what won beyond
// the noise is written.
#include "sycl_mat/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "params_fields.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_final.hpp"
#include "tune_group.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {
namespace {

/// The final rounds' part of the budget: a decision between near equals needs as many rounds as can be had.
constexpr double final_part = 0.25;

void check(const TuneOptions& options) {
  if (!(options.budget > 0)) throw InputError("the tuner's budget must be a positive number of seconds");
  const auto names = search_strategies();
  if (std::find(names.begin(), names.end(), options.strategy) == names.end())
    throw InputError("there is no search strategy \"" + options.strategy + "\"; there are guided, exhaustive, random, annealing");
  for (const TuneProblem& p : options.problems)
    if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) throw InputError("the sizes of a problem to tune for must be positive");
}

/// Which kernels the planner could take for a problem, or those that the caller names, as far as they can do it.
std::vector<std::string> kernels_for(const TuneProblem& t, const TuneOptions& options, const DeviceInfo& device) {
  std::vector<std::string> result;
  const Problem p = make_problem(t);
  const auto able = [&](const Kernel& k) { return !k.why_not || k.why_not(p, device).empty(); };
  for (const std::string& name : options.kernels)
    if (able(find_kernel(name))) result.push_back(name);
  if (!options.kernels.empty()) return result;
  // The device's general kernel has preference 10, specialists more; what is below is there for want of better.
  int highest = 0;
  for (const Kernel& k : all_kernels())
    if (k.preference && able(k)) highest = std::max(highest, k.preference(p, device));
  for (const Kernel& k : all_kernels())
    if (k.preference && able(k) && k.preference(p, device) > 0 && k.preference(p, device) >= std::min(highest, 10))
      result.emplace_back(k.name);
  return result;
}

std::vector<TuneGroup> make_groups(const std::vector<TuneProblem>& problems, const TuneOptions& options, const DeviceInfo& device) {
  std::map<std::tuple<std::string, DType, bool, bool, bool>, TuneGroup> groups;
  for (const TuneProblem& p : problems)
    for (const std::string& kernel : kernels_for(p, options, device)) {
      TuneGroup& group = groups[{kernel, p.dtype, p.transpose_a, p.transpose_b, p.batch > 1}];
      group.kernel = kernel;
      if (std::find(group.problems.begin(), group.problems.end(), p) == group.problems.end()) group.problems.push_back(p);
    }
  std::vector<TuneGroup> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  // Kernels without constants take no time: they come first, so that their part of the budget goes to the others.
  std::stable_partition(result.begin(), result.end(), [](const TuneGroup& g) { return find_kernel(g.kernel).params == "none"; });
  return result;
}

}  // namespace

std::vector<TuneProblem> representative_problems(const DeviceInfo& device) {
  if (device.is_cpu())
    return {{128, 128, 128}, {256, 256, 256},  {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048},
            {64, 64, 16384}, {12800, 32, 288}, {128, 256, 6400}, {8, 2048, 2048},    {2048, 2048, 8}};
  return {{256, 256, 256}, {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
          {64, 64, 65536}, {12800, 32, 288}, {12800, 64, 576},   {128, 256, 6400},   {8, 4096, 4096}};
}

TuneReport tune(Context& where, const TuneOptions& options) {
  check(options);
  Context::State& context = where.state();
  const DeviceInfo& device = context.info;
  const double start = GroupSearch::now();
  const double end = start + options.budget;

  TuneReport report;
  report.device = device.name;
  report.driver = device.driver_version;
  report.fingerprint = device.fingerprint;
  const std::vector<TuneProblem> problems = options.problems.empty() ? representative_problems(device) : options.problems;
  report.groups = make_groups(problems, options, device);
  if (report.groups.empty()) throw InputError("no kernel of those asked for can compute these products on " + device.name);

  TuneProgress progress;
  progress.groups = report.groups.size();
  progress.budget = options.budget;
  std::vector<std::unique_ptr<GroupSearch>> searches;
  try {
    for (std::size_t g = 0; g < report.groups.size(); ++g) {
      TuneGroup& group = report.groups[g];
      searches.push_back(std::make_unique<GroupSearch>(context, options, group));
      GroupSearch& search = *searches.back();
      const auto tell = [&](const char* phase) {
        if (!options.progress) return;
        std::size_t largest = 0;
        for (std::size_t i = 0; i < group.problems.size(); ++i)
          if (make_problem(group.problems[i]).flops() > make_problem(group.problems[largest]).flops()) largest = i;
        const double flops = make_problem(group.problems[largest]).flops();
        progress.group = &group;
        progress.group_number = g;
        progress.phase = phase;
        progress.evaluations = group.candidates.size();
        progress.failures = search.failures();
        progress.best_ratio = search.best_ratio();
        progress.best_gflops = flops / search.least_seconds(largest) * 1e-9;
        progress.default_gflops = flops / search.default_seconds(largest) * 1e-9;
        progress.elapsed = GroupSearch::now() - start;
        options.progress(progress);
      };
      tell("search");
      // What is left is shared evenly among the groups that are left: a group with one set of constants hands its part on.
      const double now = GroupSearch::now(), left = (end - now) - final_part * options.budget;
      if (!report.interrupted || g == 0) search.run(start, now + left / double(report.groups.size() - g), [&] { tell("search"); });
      report.interrupted = report.interrupted || search.interrupted();
    }
    if (!options.record_sweep.empty()) searches.front()->write_sweep(options.record_sweep);

    // The final rounds, problem by problem, all kernels together.
    std::vector<TuneProblem> all;
    for (const TuneGroup& group : report.groups)
      for (const TuneProblem& p : group.problems)
        if (std::find(all.begin(), all.end(), p) == all.end()) all.push_back(p);
    std::vector<TunedRecord> records;
    for (std::size_t number = 0; number < all.size(); ++number) {
      const TuneProblem& t = all[number];
      Workbench bench(context, std::span(&t, 1));
      const Problem p = bench.problem(t);
      std::vector<Contender> contenders;
      const auto add = [&](const Kernel& kernel, const Params& params) {
        for (const Contender& c : contenders)
          if (c.kernel == &kernel && c.params == params) return;
        contenders.push_back({&kernel, params, 0, 1, 0, {}});
      };
      if (options.kernels.empty()) {
        const Contender reference = present_choice(p, device);
        add(*reference.kernel, reference.params);
      }
      std::vector<std::pair<std::size_t, std::size_t>> places;
      for (std::size_t g = 0; g < report.groups.size(); ++g)
        for (std::size_t i = 0; i < report.groups[g].problems.size(); ++i)
          if (report.groups[g].problems[i] == t && i < searches[g]->problem_count()) places.emplace_back(g, i);
      for (const auto& [g, i] : places) {
        add(searches[g]->kernel(), searches[g]->present(i));
        add(searches[g]->kernel(), searches[g]->defaults(i));
        for (const Params& params : searches[g]->finalists(i, 3)) add(searches[g]->kernel(), params);
      }
      // Interrupted: as short as a decision allows.
      const double left = report.interrupted ? 0 : (end - GroupSearch::now()) / double(all.size() - number);
      final_rounds(context, bench, p, contenders, left);
      for (const auto& [g, i] : places) {
        TuneGroup& group = report.groups[g];
        TuneOutcome outcome =
            outcome_of(contenders, searches[g]->kernel(), searches[g]->defaults(i), searches[g]->present(i), t, p.flops());
        if (outcome.best_gflops > 0) {
          records.push_back(make_record(outcome, p, device));
          if (outcome.best == outcome.defaults) {
            records.back().reach = sharing_radius;
          } else {
            records.back().reach = report.interrupted ? 0 : proven_reach(context, searches[g]->kernel(), outcome.best, t);
            if (records.back().reach == 0) outcome.verdict += "; for this very shape only";
          }
        }
        group.outcomes.push_back(std::move(outcome));
      }
      if (options.progress && !places.empty()) {
        progress.group = &report.groups[places[0].first];
        progress.phase = "final";
        progress.elapsed = GroupSearch::now() - start;
        options.progress(progress);
      }
      if (options.interrupted && options.interrupted()) report.interrupted = true;
    }
    if (options.write && !records.empty()) {
      report.file = options.file.empty() ? user_tuning_file().string() : options.file;
      report.records = merge_into(report.file, records);
      context.prepared.clear();
    }
  } catch (const sycl::exception& e) {
    rethrow(e, device);
  }
  report.seconds = GroupSearch::now() - start;
  return report;
}

}  // namespace sycl_mat
