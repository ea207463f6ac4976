// tune(): groups of problems are searched one after the other, then each problem's best of every kernel take turns, then what won beyond
// the noise is written.
#include "sycl_mat/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "backends/host.hpp"
#include "backends/onemkl.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_choice.hpp"
#include "tune_group.hpp"

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

bool is_other(std::string_view name) { return name == host::name || name == onemkl::name; }

/// Which kernels could be taken for a problem, or those that the caller names, as far as they can do it: thresholds between kernels are a
/// part of what is searched, so a specialist that the rule does not take here is among them.
std::vector<std::string> kernels_for(const TuneProblem& t, const TuneOptions& options, const DeviceInfo& device) {
  std::vector<std::string> result;
  const Problem p = make_problem(t);
  const auto able = [&](const Kernel& k) { return !k.why_not || k.why_not(p, device).empty(); };
  for (const std::string& name : options.kernels)
    if (!is_other(name) && able(find_kernel(name))) result.push_back(name);
  if (!options.kernels.empty()) return result;
  // The device's general kernel has preference 10, specialists more, and 0 where the rule is against them; 1 is for want of better.
  for (const Kernel& k : all_kernels())
    if (k.preference && able(k) && k.preference(p, device) != 1) result.emplace_back(k.name);
  return result;
}

/// The host path and oneMKL for a problem, as far as they are wanted.
std::vector<std::string_view> others_for(const TuneProblem& t, const TuneOptions& options, const DeviceInfo& device) {
  std::vector<std::string_view> result;
  for (const std::string_view name : others_for(make_problem(t), device))
    if (options.kernels.empty() || std::find(options.kernels.begin(), options.kernels.end(), name) != options.kernels.end())
      result.push_back(name);
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

/// The place of a kernel without constants in the report: made where it is needed.
TuneGroup& group_of_other(TuneReport& report, std::string_view name, const TuneProblem& t) {
  const auto found = std::find_if(report.groups.begin(), report.groups.end(), [&](const TuneGroup& g) { return g.kernel == name; });
  TuneGroup& group = found != report.groups.end() ? *found : report.groups.emplace_back();
  group.kernel = name;
  group.problems.push_back(t);
  return group;
}

/// Where a search has a problem.
struct Place {
  std::size_t group, problem;
};

/// The final rounds, problem by problem, all kernels together. Fills the report's outcomes.
std::vector<TunedRecord> final_part_of(Context::State& context, const TuneOptions& options, TuneReport& report,
                                       const std::vector<std::unique_ptr<GroupSearch>>& searches, double end,
                                       const std::function<void(const TuneGroup&)>& tell) {
  const DeviceInfo& device = context.info;
  std::vector<TuneProblem> all;
  for (const TuneGroup& group : report.groups)
    for (const TuneProblem& p : group.problems)
      if (std::find(all.begin(), all.end(), p) == all.end()) all.push_back(p);
  std::vector<TunedRecord> records;
  const std::size_t searched = report.groups.size();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const TuneProblem& t = all[number];
    for (const TuneGroup& group : report.groups)
      if (std::find(group.problems.begin(), group.problems.end(), t) != group.problems.end()) {
        tell(group);
        break;
      }
    Workbench bench(context, std::span(&t, 1));
    const Problem p = bench.problem(t);
    const Choice rule = choose(p, device, Records::none);
    std::vector<Contender> contenders;
    const auto add = [&](Contender c) {
      for (const Contender& known : contenders)
        if (name_of(known) == name_of(c) && known.params == c.params) return;
      contenders.push_back(std::move(c));
    };
    if (options.kernels.empty()) {  // what a product runs with at present is the reference
      const Choice present = choose(p, device, Records::all);
      add(contender_of(present.kernel, present.params));
      add(contender_of(rule.kernel, rule.params));
    }
    std::vector<Place> places;
    for (std::size_t g = 0; g < searched; ++g)
      for (std::size_t i = 0; i < report.groups[g].problems.size(); ++i)
        if (report.groups[g].problems[i] == t && i < searches[g]->problem_count()) places.push_back({g, i});
    for (const auto& [g, i] : places) {
      const std::string_view kernel = searches[g]->kernel().name;
      add(contender_of(kernel, searches[g]->present(i)));
      add(contender_of(kernel, searches[g]->defaults(i)));
      for (const Params& params : searches[g]->finalists(i, 3)) add(contender_of(kernel, params));
    }
    const std::vector<std::string_view> others = others_for(t, options, device);
    for (const std::string_view name : others) add(contender_of(name, {}));
    // Interrupted: as short as a decision allows. Otherwise a part is left for proving how far the winners reach.
    const double left = report.interrupted ? 0 : (end - GroupSearch::now()) / double(all.size() - number);
    final_rounds(context, p, contenders, 0.6 * left);

    std::vector<TuneOutcome> outcomes;
    for (const auto& [g, i] : places)
      outcomes.push_back(
          outcome_of(contenders, searches[g]->kernel().name, searches[g]->defaults(i), searches[g]->present(i), t, p.flops()));
    for (const std::string_view name : others) outcomes.push_back(outcome_of(contenders, name, {}, {}, t, p.flops()));
    if (options.kernels.empty()) mark_fastest(outcomes, contenders, rule.kernel);
    for (TuneOutcome& outcome : outcomes) {
      if (outcome.best_gflops <= 0) continue;
      TunedRecord& record = records.emplace_back(make_record(outcome, p, device));
      const bool kernel_chosen = outcome.fastest && outcome.kernel != outcome.rule;
      if (is_other(outcome.kernel) && !kernel_chosen)
        record.reach = 0;  // a note of what it was beside the others
      else if (!kernel_chosen && outcome.best == outcome.defaults)
        record.reach = sharing_radius;
      else if (report.interrupted)
        record.reach = 0;
      else
        record.reach = proven_reach(context, contender_of(outcome.kernel, outcome.best), t, kernel_chosen, end);
      if (record.reach == 0 && !is_other(outcome.kernel)) outcome.verdict += "; for this very shape only";
    }
    for (std::size_t i = 0; i < places.size(); ++i) report.groups[places[i].group].outcomes.push_back(std::move(outcomes[i]));
    for (std::size_t i = 0; i < others.size(); ++i)
      group_of_other(report, others[i], t).outcomes.push_back(std::move(outcomes[places.size() + i]));
    if (options.interrupted && options.interrupted()) report.interrupted = true;
  }
  return records;
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
  report.groups.reserve(report.groups.size() + 2);  // searches hold on to theirs while those of the host path and oneMKL join
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

    const std::vector<TunedRecord> records = final_part_of(context, options, report, searches, end, [&](const TuneGroup& group) {
      if (!options.progress) return;
      progress.group = &group;
      progress.phase = "final";
      progress.elapsed = GroupSearch::now() - start;
      options.progress(progress);
    });
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
