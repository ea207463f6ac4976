// The tuner: finds the constants of the kernels for this device by measuring, and keeps what it found where the planner looks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sycl_mat/device.hpp"
#include "sycl_mat/params.hpp"
#include "sycl_mat/types.hpp"

namespace sycl_mat {

/// A product to tune for: m×k times k×n, `batch` of them.
struct TuneProblem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  DType dtype = DType::float32;
  bool transpose_a = false;  ///< A's columns lie contiguous
  bool transpose_b = false;
  auto operator<=>(const TuneProblem&) const = default;
};

enum class CandidateState : std::uint8_t {
  measured,
  wrong,  ///< a result differed from the oracle's
  compile_error,
  device_error,  ///< out of memory, or the launch failed
  crashed,       ///< an earlier run died while it was built or run
  pruned         ///< the driver reports that its registers spill
};
std::string to_string(CandidateState state);

/// One set of constants and what came of it.
struct Candidate {
  Params params;
  CandidateState state = CandidateState::measured;
  std::string why;                           ///< for what was not measured
  std::vector<double> seconds;               ///< a launch, one value a problem of the group; infinity: not measured
  double found_at = 0;                       ///< seconds after the start
  double build_seconds = 0;                  ///< compiling, or loading from the cache
  std::int64_t registers = -1, spills = -1;  ///< as the driver reports, -1: it does not
};

/// What tuning one kernel for one problem came to.
struct TuneOutcome {
  TuneProblem problem;
  std::string kernel;
  Params defaults, present, best;                                  ///< present: what a product ran with before
  double default_gflops = 0, present_gflops = 0, best_gflops = 0;  ///< best of the final rounds, in which all three took turns
  double gain = 1;   ///< time of the present constants ÷ time of the best, median over the final rounds
  double noise = 0;  ///< relative; a gain below 1 + 3 × noise does not count
  bool improved = false;
  std::string verdict;  ///< one sentence
  /// Whether this kernel beat all others for the problem ("host" and our kernels among each other, "onemkl" all of ours).
  bool fastest = false;
  std::string rule;  ///< the kernel that is taken where nothing was measured; empty: the kernels were not measured beside each other
};

/// All problems of one kernel, element type and layout are searched together: a program serves all sizes, and compiling takes longest.
struct TuneGroup {
  std::string kernel;  ///< or "host", "onemkl": without constants, so without candidates
  std::vector<TuneProblem> problems;
  std::vector<Candidate> candidates;  ///< in the order in which they were tried
  std::vector<TuneOutcome> outcomes;  ///< one a problem
  std::uint64_t space = 0;            ///< points of the search space, constraints aside
};

struct TuneReport {
  std::string device, driver, fingerprint;
  std::string file;  ///< where the records went, empty: nowhere
  std::vector<TuneGroup> groups;
  std::size_t records = 0;  ///< that changed in the file
  double seconds = 0;
  bool interrupted = false;
};

struct TuneProgress {
  const TuneGroup* group = nullptr;
  std::size_t group_number = 0, groups = 0;
  std::string phase;  ///< "search" or "final"
  std::size_t evaluations = 0, failures = 0;
  double best_ratio = 1;                       ///< geometric mean over the group's problems: time of the defaults ÷ time of the best
  double best_gflops = 0, default_gflops = 0;  ///< of the group's largest problem
  double elapsed = 0, budget = 0;              ///< seconds
};

struct TuneOptions {
  double budget = 60;                 ///< seconds for everything
  std::vector<TuneProblem> problems;  ///< empty: representative_problems()
  std::vector<std::string> kernels;   ///< empty: all that could be chosen, "host" and "onemkl" among them
  std::string strategy = "guided";    ///< "guided", "exhaustive", "random", "annealing"
  std::uint64_t seed = 1;
  bool write = true;                 ///< records into the tuning file
  std::string file;                  ///< empty: the user's
  bool resume = true;                ///< use what earlier runs on this device measured
  std::string record_sweep;          ///< file for all measurements of the first group's first problem, for replays
  std::size_t most_evaluations = 0;  ///< a group; 0: as many as the budget allows
  std::vector<std::pair<std::string, std::vector<int>>> restrict;  ///< values a constant may take, instead of the built-in list
  std::function<void(const TuneProgress&)> progress;
  std::function<bool()> interrupted;  ///< asked between measurements: true ends the search, and what was found is kept
};

/// Searches, proves and keeps. Throws InputError for options that make no sense, DeviceError where the device is lost; everything
/// that goes wrong with a single candidate is recorded in the report instead.
TuneReport tune(Context& context, const TuneOptions& options);

/// Problems that stand for the classes that matter on such a device.
std::vector<TuneProblem> representative_problems(const DeviceInfo& device);

/// One set of constants, measured beside the present choice; for people who try by hand.
struct Trial {
  TuneProblem problem;
  std::string kernel, present_kernel;
  Params params, present;
  double gflops = 0, present_gflops = 0;
  double bound_gflops = 0;  ///< of the roofline
  std::string limit;        ///< what the roofline says limits this problem
  bool correct = false;
  std::string why;  ///< not correct, or not built: the reason
  std::int64_t local_memory = 0, registers = -1, spills = -1;
  int registers_estimate = -1;       ///< 32-bit registers a work-item (tiled), or vector registers (packed)
  int chunks_a = -1, chunks_b = -1;  ///< tiled: loads that a work-item does for one tile
  int idle_a = -1, idle_b = -1;      ///< tiled: work-items of a group without one
  int work_items = -1;
  double build_seconds = 0;
};
/// Throws ParamsError for constants that break a constraint, UnsupportedError for a kernel that cannot do the problem.
Trial try_params(Context& context, const TuneProblem& problem, const Params& params, const std::string& kernel = "");

}  // namespace sycl_mat
