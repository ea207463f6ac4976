#include "tune_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backends/host.hpp"
#include "backends/onemkl.hpp"
#include "kernel_version.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_group.hpp"

#ifndef SYCL_MAT_VERSION
#define SYCL_MAT_VERSION "0.1.0"
#endif

namespace sycl_mat {
namespace {

/// Less than this is not worth a change, whatever the noise was: the next driver moves more.
constexpr double least_gain = 0.01;

/// Multiply-adds of one product from which the calling thread, which reads B in place, is hopeless.
constexpr double most_on_host = 1e9;

double rounded(double gflops) { return std::round(gflops * 100) / 100; }

/// Time of one contender ÷ time of another, the better for the first the smaller. By the median and by the least: where a kernel has two
/// speeds (which core the caller sits on, say) one of them alone may mislead.
double gain_over(const Contender& other, const Contender& c) { return std::min(other.ratio / c.ratio, other.least / c.least); }

bool beats(const Contender& c, const Contender& other) {
  return gain_over(other, c) >= 1 + std::max(least_gain, 3 * (c.noise + other.noise));
}

}  // namespace

std::vector<std::string_view> others_for(const Problem& p, const DeviceInfo& device) {
  std::vector<std::string_view> result;
  if (device.is_cpu() && double(p.m) * double(p.n) * double(p.k) <= most_on_host) result.push_back(host::name);
  // Its GPU libraries are for Intel's devices.
  if ((device.is_cpu() || device.architecture.starts_with("intel")) && onemkl::usable() && onemkl::why_not(p).empty())
    result.push_back(onemkl::name);
  return result;
}

Contender contender_of(std::string_view kernel, const Params& params) {
  if (kernel == host::name) return {nullptr, {}, 0, 1, 0, {}, host::name};
  if (kernel == onemkl::name) return {nullptr, {}, 0, 1, 0, {}, onemkl::name};
  return {&find_kernel(kernel), params, 0, 1, 0, {}, {}};
}

/// One kernel's outcome for a problem, from contenders that took turns. `present` is the kernel's own present choice.
TuneOutcome outcome_of(const std::vector<Contender>& contenders, std::string_view kernel, const Params& defaults, const Params& present,
                       const TuneProblem& problem, double flops) {
  TuneOutcome out;
  out.problem = problem;
  out.kernel = kernel;
  out.defaults = defaults;
  out.present = present;
  const Contender *best = nullptr, *now = nullptr, *standard = nullptr;
  std::string why = "no contender";
  for (const Contender& c : contenders) {
    if (name_of(c) == kernel && !c.wrong.empty()) why = c.wrong;
    if (name_of(c) != kernel || !c.wrong.empty()) continue;
    if (c.params == present && !now) now = &c;
    if (c.params == defaults && !standard) standard = &c;
    if (!best || c.ratio < best->ratio) best = &c;
  }
  const auto gflops = [&](const Contender* c) { return c ? rounded(flops / c->least * 1e-9) : 0; };
  out.default_gflops = gflops(standard);
  out.present_gflops = gflops(now);
  if (!best) {
    out.best = present;
    out.verdict = "nothing could be measured: " + why;
    return out;
  }
  out.noise = best->noise + (now ? now->noise : 0);
  out.gain = now ? gain_over(*now, *best) : 1;
  char text[160];
  if (std::holds_alternative<std::monostate>(present) && std::holds_alternative<std::monostate>(best->params)) {
    out.best = present;
    out.best_gflops = gflops(best);
    out.gain = 1;
    out.verdict = "no constants to choose";
    return out;
  }
  if (best == now || out.gain < 1 + std::max(least_gain, 3 * out.noise)) {
    // Nothing better: the present choice stays, and is recorded as measured, so that a neighbouring class's record does not displace it.
    const Contender* keep = now ? now : best;
    // A record that the defaults are as fast as has lost its reason.
    const bool dropped = now && standard && now != standard && standard->ratio <= now->ratio && standard->least <= now->least;
    if (dropped) keep = standard;
    out.best = keep->params;
    out.best_gflops = gflops(keep);
    std::snprintf(text, sizeof text,
                  best == keep ? "the present constants stay" : "the present constants stay (the best other was %+.1f %%, noise %.1f %%)",
                  (out.gain - 1) * 100, out.noise * 100);
    if (dropped) std::snprintf(text, sizeof text, "the defaults are as fast as the present constants, and take their place");
    out.gain = 1;
  } else {
    out.improved = true;
    out.best = best->params;
    out.best_gflops = gflops(best);
    std::snprintf(text, sizeof text, "%.1f %% faster than the present constants (noise %.1f %%)", (out.gain - 1) * 100, out.noise * 100);
  }
  out.verdict = text;
  return out;
}

void mark_fastest(std::span<TuneOutcome> outcomes, const std::vector<Contender>& contenders, std::string_view rule) {
  const auto contender = [&](const TuneOutcome& o) -> const Contender* {
    for (const Contender& c : contenders)
      if (name_of(c) == o.kernel && c.params == o.best && c.wrong.empty()) return &c;
    return nullptr;
  };
  const Contender* theirs = nullptr;
  std::vector<std::pair<TuneOutcome*, const Contender*>> ours;
  TuneOutcome* by_onemkl = nullptr;
  double rule_gflops = 0;
  for (TuneOutcome& outcome : outcomes) {
    const Contender* c = contender(outcome);
    if (!c) continue;
    outcome.rule = rule;
    if (outcome.kernel == rule) rule_gflops = outcome.default_gflops;
    if (outcome.kernel == onemkl::name)
      by_onemkl = &outcome, theirs = c;
    else
      ours.emplace_back(&outcome, c);
  }
  if (ours.empty()) return;
  const auto of = [&](std::string_view kernel) {
    return std::find_if(ours.begin(), ours.end(), [&](const auto& o) { return o.first->kernel == kernel; });
  };
  auto present = of(name_of(contenders[0]));
  // A record's choice that the rule's is as fast as has lost its reason.
  if (const auto usual = of(rule); present != ours.end() && usual != ours.end() && usual->second->ratio <= present->second->ratio &&
                                   usual->second->least <= present->second->least)
    present = usual;
  const auto best =
      std::min_element(ours.begin(), ours.end(), [](const auto& x, const auto& y) { return x.second->ratio < y.second->ratio; });
  const auto winner = present == ours.end() || beats(*best->second, *present->second) ? best : present;
  winner->first->fastest = true;
  char text[96];
  if (winner != present && present != ours.end()) {
    std::snprintf(text, sizeof text, "; %.1f %% faster than %s, takes its place", (gain_over(*present->second, *winner->second) - 1) * 100,
                  present->first->kernel.c_str());
    winner->first->verdict += text;
  }
  // What it is compared with is what a product would run with otherwise.
  if (winner->first->kernel != rule && rule_gflops > 0) winner->first->default_gflops = rule_gflops;
  if (by_onemkl && beats(*theirs, *winner->second)) {
    by_onemkl->fastest = true;
    std::snprintf(text, sizeof text, "%.1f %% faster than ours: backend \"auto\" takes it",
                  (gain_over(*winner->second, *theirs) - 1) * 100);
    by_onemkl->verdict = text;
  }
}

double proven_reach(Context::State& context, const Contender& winner, const TuneProblem& problem, bool kernel_chosen, double deadline) {
  const auto scaled = [&](double factor) {
    TuneProblem t = problem;
    for (std::int64_t* size : {&t.m, &t.n, &t.k})
      if (*size > 1) *size = std::max<std::int64_t>(2, static_cast<std::int64_t>(double(*size) * factor)) | 1;
    return t;
  };
  TuneProblem power = problem;
  for (std::int64_t* size : {&power.m, &power.n, &power.k})
    if (*size > 1) *size = std::int64_t{1} << std::lround(std::log2(double(*size)));
  for (const TuneProblem& t : {scaled(0.8), scaled(1.25), power}) {
    if (t == problem) continue;
    if (GroupSearch::now() > deadline) return 0;
    Workbench bench(context, std::span(&t, 1));
    const Problem p = bench.problem(t);
    const Choice choice = choose(p, context.info, Records::none);
    std::vector<Contender> contenders;
    if (kernel_chosen)
      contenders.push_back(contender_of(choice.kernel, choice.params));
    else
      contenders.push_back(contender_of(winner.kernel->name, defaults_of(*winner.kernel, p, context.info)));
    contenders.push_back(contender_of(name_of(winner), winner.params));
    // What won without constants of its own has those that are computed there.
    if (winner.kernel && std::holds_alternative<std::monostate>(winner.params))
      contenders[1].params = defaults_of(*winner.kernel, p, context.info);
    if (name_of(contenders[0]) == name_of(contenders[1]) && contenders[0].params == contenders[1].params) continue;
    final_rounds(context, p, contenders, 0.15);
    if (!contenders[1].wrong.empty() || contenders[1].ratio > 1.01) return 0;
  }
  return sharing_radius;
}

TunedRecord make_record(const TuneOutcome& outcome, const Problem& p, const DeviceInfo& device) {
  TunedRecord r;
  r.fingerprint = device.fingerprint;
  r.kernel = outcome.kernel;
  r.dtype = outcome.problem.dtype;
  r.layout = layout_of(p);
  r.shape = shape_of(p);
  r.shape_class = shape_class(r.shape);
  // Where the defaults won they are recorded as such, and computed anew for every problem of the class.
  if (outcome.best != outcome.defaults) r.params = outcome.best;
  r.gflops = outcome.best_gflops;
  r.default_gflops = outcome.default_gflops;
  r.spread = outcome.noise;
  r.measured = utc_now();
  r.architecture = device.architecture;
  r.device_name = device.name;
  r.driver_version = device.driver_version;
  r.library_version = SYCL_MAT_VERSION;
  r.kernel_source = kernel_version(outcome.kernel);
  if (!outcome.rule.empty()) {
    r.fastest = outcome.fastest;
    if (outcome.fastest && outcome.kernel != outcome.rule) r.instead_of = outcome.rule;
  }
  return r;
}

}  // namespace sycl_mat
