// The only place where a kernel and its constants are chosen.
#pragma once

#include "kernel.hpp"

namespace sycl_mat {

/// Whether the product is computed on the calling thread, without a launch: what the planner's rule or a measurement says, and where the
/// caller says kernel="host". From memory in some 20 ns; the smallest products ask for no measurement.
bool on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options);
/// Why, one line for explain().
std::string why_on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options);

/// Order: what the caller forces → tuning database (user's, then shipped) → defaults from device properties.
/// Throws UnsupportedError, ParamsError.
Plan make_plan(const Problem& p, const DeviceInfo& device, const GemmOptions& options);

/// The family's constants for what the kernel works on: the problem, or its copies where they are worth it.
Params defaults_of(const Kernel& kernel, const Problem& p, const DeviceInfo& device);
/// The plan of a kernel with these constants, and with copies where they are worth it. Throws ParamsError.
Plan plan_with(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params);

/// A kernel of ours by name ("host" among them), and its constants.
struct Choice {
  std::string_view kernel;
  Params params;
  std::string reason;
};
enum class Records { all, shipped, none };
/// What a product runs with where the caller forces nothing, if only these records are considered. `none`: the rule and the defaults.
/// Throws UnsupportedError.
Choice choose(const Problem& p, const DeviceInfo& device, Records records);

}  // namespace sycl_mat
