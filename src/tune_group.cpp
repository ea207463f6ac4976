#include "tune_group.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <numeric>
#include <thread>

#include "disk_cache.hpp"
#include "params_fields.hpp"
#include "plan.hpp"
#include "shape_class.hpp"
#include "sweep.hpp"
#include "sycl_mat/errors.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// A set that spills more than this many bytes a work-item is not worth measuring: local variables of a few words do no harm.
constexpr std::int64_t harmless_spill = 64;

std::string words_of(const TuneProblem& p) {
  return std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
         (p.batch > 1 ? " x " + std::to_string(p.batch) : "") + " " + (p.transpose_a ? "t" : "n") + (p.transpose_b ? "t" : "n") + " " +
         std::string(name_of(p.dtype));
}

}  // namespace

/// A candidate with its programs, or with the reason why there are none.
struct GroupSearch::Built {
  Candidate candidate;
  std::vector<Plan> plans;
  std::vector<const Program*> programs;
};

double GroupSearch::now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

GroupSearch::GroupSearch(Context::State& context, const TuneOptions& options, TuneGroup& group)
    : context_(context), options_(options), group_(group), kernel_(find_kernel(group.kernel)) {
  const DeviceInfo& device = context.info;
  bench_ = std::make_unique<Workbench>(context, group.problems);
  std::vector<Params> include;
  for (const TuneProblem& t : group.problems) {
    problems_.push_back(bench_->problem(t));
    const Problem& p = problems_.back();
    defaults_.push_back(defaults_of(kernel_, p, device));
    const auto match = lookup(p, device, kernel_.name);
    present_.push_back(match && !std::holds_alternative<std::monostate>(match->params) ? match->params : defaults_.back());
    try {
      kernel_.plan(kernel_, p, device, present_.back());
    } catch (const ParamsError&) {  // the planner would fall back too
      present_.back() = defaults_.back();
    }
    include.push_back(defaults_.back());
    include.push_back(present_.back());
  }
  space_ = std::make_unique<TuneSpace>(kernel_, problems_, device, include, options.restrict);
  group_.space = space_->space().raw_size();
  by_cost_.resize(problems_.size());
  std::iota(by_cost_.begin(), by_cost_.end(), std::size_t{0});
  std::sort(by_cost_.begin(), by_cost_.end(), [&](std::size_t x, std::size_t y) { return problems_[x].flops() < problems_[y].flops(); });
  least_.assign(problems_.size(), infinite);
  default_seconds_.assign(problems_.size(), infinite);

  const std::string source = render(kernel_, {});
  const TuneProblem& first = group.problems.front();
  journal_ = std::make_unique<Journal>(journal_file(), device.fingerprint + "|" + device.driver_version + "|" + group.kernel + "|" +
                                                           std::to_string(checksum(source)) + "|" + std::string(name_of(first.dtype)) +
                                                           "|" + (first.transpose_a ? "t" : "n") + (first.transpose_b ? "t" : "n"));

  SearchOptions search;
  for (const Params& params : include)
    if (const auto id = space_->point(params)) search.seeds.push_back(*id);
  search.seed = options.seed;
  const std::size_t searchers = group.problems.size() > 1 ? group.problems.size() + 1 : 1;
  for (std::size_t i = 0; i < searchers; ++i) {
    if (i == 0) {
      search.model = [this](const Values& values) { return guess(space_->params(values)); };
    } else {
      search.model = [this, i](const Values& values) { return guess_seconds(space_->params(values), problems_[i - 1], context_.info); };
      search.seeds.clear();
    }
    searchers_.push_back(make_searcher(options.strategy, space_->space(), search));
  }
  for (const auto& [name, entry] : journal_->entries()) {
    const auto id = space_->point(entry.params);
    if (!id || entry.state == CandidateState::measured) continue;
    // Known to be wrong, or deadly: never again.
    for (const auto& searcher : searchers_) searcher->tell(*id, infinite);
    tried_.push_back(describe(entry.params));
    Candidate candidate{entry.params, entry.state, entry.why + " (in an earlier run)", {}, 0, 0, -1, -1};
    candidate.seconds.assign(problems_.size(), infinite);
    group_.candidates.push_back(std::move(candidate));
  }
}

double GroupSearch::guess(const Params& params) const {
  // The geometric mean of the guesses: each problem counts alike, whatever its size.
  double sum = 0;
  for (const Problem& p : problems_) sum += std::log(guess_seconds(params, p, context_.info));
  return std::exp(sum / double(problems_.size()));
}

bool GroupSearch::stop(double deadline) {
  if (options_.interrupted && options_.interrupted()) interrupted_ = true;
  return interrupted_ || now() >= deadline || (options_.most_evaluations > 0 && tried_.size() >= options_.most_evaluations);
}

std::vector<Candidate> GroupSearch::ask(std::size_t count) {
  std::vector<Candidate> result;
  std::size_t empty_turns = 0;
  while (result.size() < count && empty_turns < searchers_.size()) {
    Searcher& searcher = *searchers_[turn_];
    turn_ = (turn_ + 1) % searchers_.size();
    const auto points = searcher.ask(1);
    if (points.empty()) {
      ++empty_turns;
      continue;
    }
    empty_turns = 0;
    Candidate candidate;
    candidate.params = space_->params(space_->space().values(points[0]));
    // Another searcher may have had the same idea.
    const std::string name = describe(candidate.params);
    if (std::find(tried_.begin(), tried_.end(), name) != tried_.end()) continue;
    tried_.push_back(name);
    result.push_back(std::move(candidate));
  }
  return result;
}

std::vector<GroupSearch::Built> GroupSearch::build(std::vector<Candidate> candidates) {
  std::vector<std::future<Built>> work;
  for (Candidate& candidate : candidates) {
    journal_->begin(candidate.params);
    work.push_back(std::async(std::launch::async, [this, candidate = std::move(candidate)]() mutable {
      Built built{std::move(candidate), {}, {}};
      Candidate& c = built.candidate;
      const double begun = now();
      try {
        for (const Problem& p : problems_) {
          built.plans.push_back(plan_with(kernel_, p, context_.info, c.params));
          built.programs.push_back(&context_.programs.get(kernel_, built.plans.back().constants));
        }
        c.registers = built.programs[0]->registers;
        c.spills = built.programs[0]->spills;
        if (c.spills > harmless_spill) {
          c.state = CandidateState::pruned;
          c.why = "the driver reports " + std::to_string(c.spills) + " bytes of spilled registers a work-item";
        }
      } catch (const CompileError& e) {
        c.state = CandidateState::compile_error;
        c.why = e.what();
      } catch (const std::exception& e) {
        c.state = CandidateState::device_error;
        c.why = e.what();
      }
      c.build_seconds = now() - begun;
      return built;
    }));
  }
  std::vector<Built> result;
  for (auto& future : work) result.push_back(future.get());
  return result;
}

void GroupSearch::measure(Built& built, bool whole) {
  Candidate& c = built.candidate;
  c.seconds.assign(problems_.size(), infinite);
  if (c.state != CandidateState::measured) return;
  try {
    c.why = prove(context_, kernel_, c.params, group_.problems.front());
    if (!c.why.empty()) {
      c.state = CandidateState::wrong;
      return;
    }
    double sum = 0;
    std::size_t measured = 0;
    for (const std::size_t i : by_cost_) {
      // A sweep that is recorded should hold the costs, not the noise.
      const bool careful = !options_.record_sweep.empty();
      c.seconds[i] =
          least_time(*bench_, built.plans[i], *built.programs[i], problems_[i], whole || careful ? infinite : least_[i], careful ? 20 : 5);
      if (std::isfinite(default_seconds_[i])) sum += std::log(c.seconds[i] / default_seconds_[i]);
      ++measured;
      // Hopeless everywhere so far: the larger problems, which cost the most, are spared.
      if (!whole && measured >= 2 && std::exp(sum / double(measured)) > 1.4 * best_mean_ && c.seconds[i] > 1.3 * least_[i]) break;
    }
  } catch (const Error& e) {
    c.state = CandidateState::device_error;
    c.why = e.what();
  } catch (const sycl::exception& e) {
    c.state = CandidateState::device_error;
    c.why = e.what();
  }
}

void GroupSearch::record(Candidate c) {
  Journal::Entry entry{c.params, c.state, c.why, {}};
  double sum = 0;
  std::size_t measured = 0;
  for (std::size_t i = 0; i < problems_.size(); ++i) {
    if (!std::isfinite(c.seconds[i])) continue;
    entry.seconds[problem_key(group_.problems[i])] = c.seconds[i];
    least_[i] = std::min(least_[i], c.seconds[i]);
    if (!std::isfinite(default_seconds_[i])) default_seconds_[i] = c.seconds[i];  // the defaults come first
    sum += std::log(c.seconds[i] / default_seconds_[i]);
    ++measured;
  }
  journal_->end(entry);
  failures_ += c.state != CandidateState::measured;
  if (const auto id = space_->point(c.params)) {
    const double mean = measured > 0 ? std::exp(sum / double(measured)) : infinite;
    if (measured == problems_.size()) best_mean_ = std::min(best_mean_, mean);
    searchers_[0]->tell(*id, mean);
    // Where the candidate was given up early, what it did elsewhere stands for the rest.
    for (std::size_t i = 0; i + 1 < searchers_.size(); ++i)
      searchers_[i + 1]->tell(*id, std::isfinite(c.seconds[i]) ? c.seconds[i] : measured > 0 ? mean * default_seconds_[i] : infinite);
  }
  group_.candidates.push_back(std::move(c));
}

void GroupSearch::run(double start, double deadline, const std::function<void()>& report) {
  start_ = start;
  // A processor that is the device cannot compile and be measured at the same time; a GPU can.
  const bool overlap = !context_.info.is_cpu();
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t batch = overlap ? std::clamp<std::size_t>(cores - 1, 1, 12) : std::clamp<std::size_t>(cores, 1, 8);

  const auto take = [&](std::vector<Built> all, bool whole) {
    for (Built& built : all) {
      measure(built, whole);
      built.candidate.found_at = now() - start_;
      record(std::move(built.candidate));
      report();
    }
  };
  // The defaults first, on every problem: all else is relative to them. Problems may have different defaults; each counts for its own.
  std::vector<Candidate> first;
  for (const Params& params : defaults_)
    if (std::find(tried_.begin(), tried_.end(), describe(params)) == tried_.end()) {
      tried_.push_back(describe(params));
      first.push_back({params, CandidateState::measured, {}, {}, 0, 0, -1, -1});
    }
  take(build(std::move(first)), true);
  for (std::size_t i = 0; i < problems_.size(); ++i)
    for (const Candidate& c : group_.candidates)
      if (c.params == defaults_[i] && c.state == CandidateState::measured) default_seconds_[i] = c.seconds[i];
  // What earlier runs liked comes next: measured anew, since the machine may be in another mood.
  if (options_.resume) {
    std::vector<std::pair<double, Params>> earlier;
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      const Journal::Entry* best = nullptr;
      const std::string key = problem_key(group_.problems[i]);
      for (const auto& [name, entry] : journal_->entries())
        if (entry.state == CandidateState::measured && entry.seconds.contains(key) &&
            (!best || entry.seconds.at(key) < best->seconds.at(key)))
          best = &entry;
      if (best) earlier.emplace_back(best->seconds.at(key), best->params);
    }
    std::vector<Candidate> again;
    for (const auto& [seconds, params] : earlier) {
      const std::string name = describe(params);
      if (!space_->point(params) || std::find(tried_.begin(), tried_.end(), name) != tried_.end()) continue;
      tried_.push_back(name);
      again.push_back({params, CandidateState::measured, {}, {}, 0, 0, -1, -1});
    }
    if (!again.empty() && !stop(deadline)) take(build(std::move(again)), false);
  }

  std::future<std::vector<Built>> next;
  while (!stop(deadline)) {
    std::vector<Built> ready;
    if (next.valid()) {
      ready = next.get();
    } else {
      ready = build(ask(batch));
    }
    if (ready.empty()) break;
    if (overlap) next = std::async(std::launch::async, [this, candidates = ask(batch)]() mutable { return build(std::move(candidates)); });
    for (std::size_t i = 0; i < ready.size(); ++i) {
      std::vector<Built> one;
      one.push_back(std::move(ready[i]));
      take(std::move(one), false);
      if (stop(deadline)) break;
    }
  }
  if (next.valid()) next.wait();
}

std::vector<Params> GroupSearch::finalists(std::size_t problem, std::size_t count) const {
  std::vector<const Candidate*> able;
  for (const Candidate& c : group_.candidates)
    if (c.state == CandidateState::measured && std::isfinite(c.seconds[problem])) able.push_back(&c);
  std::sort(able.begin(), able.end(), [&](const Candidate* x, const Candidate* y) { return x->seconds[problem] < y->seconds[problem]; });
  std::vector<Params> result;
  for (const Candidate* c : able)
    if (result.size() < count) result.push_back(c->params);
  return result;
}

double GroupSearch::best_ratio() const {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < least_.size(); ++i)
    if (std::isfinite(default_seconds_[i]) && std::isfinite(least_[i])) sum += std::log(default_seconds_[i] / least_[i]), ++count;
  return count > 0 ? std::exp(sum / double(count)) : 1;
}

void GroupSearch::write_sweep(const std::string& file) const {
  Sweep sweep;
  sweep.device = context_.info.name + " (" + context_.info.fingerprint + ")";
  sweep.driver = context_.info.driver_version;
  sweep.kernel = group_.kernel;
  sweep.problem = words_of(group_.problems.front());
  sweep.measured = utc_now();
  sweep.dimensions = space_->space().dimensions();
  for (const Candidate& c : group_.candidates) {
    const auto id = space_->point(c.params);
    if (!id || c.seconds.empty()) continue;
    sweep.entries.push_back({space_->space().values(*id), c.seconds[0], guess_seconds(c.params, problems_[0], context_.info)});
  }
  sycl_mat::write_sweep(file, sweep);
}

}  // namespace sycl_mat
