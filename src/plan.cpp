#include "plan.hpp"

#include "backends/host.hpp"
#include "backends/onemkl.hpp"
#include "sycl_mat/errors.hpp"
#include "tuning_db.hpp"
#include "warning.hpp"

namespace sycl_mat {
namespace {

/// Which kernel constants of this type belong to where no kernel is named.
std::string_view kernel_of(const Params& params) { return std::holds_alternative<PackParams>(params) ? "packed" : "tiled"; }

std::string why_not(const Kernel& kernel, const Problem& p, const DeviceInfo& device) {
  return kernel.why_not ? kernel.why_not(p, device) : std::string();
}

Plan with(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params, std::string reason) {
  Plan plan = kernel.plan(kernel, p, device, params);
  plan.kernel = &kernel;
  if (!plan.reason.empty()) reason += "; " + plan.reason;
  plan.reason = std::move(reason);
  return plan;
}

/// The plan that a measurement suggests, or none where its constants do not fit this problem.
std::optional<Plan> tuned(const Kernel& kernel, const TunedMatch& match, const Problem& p, const DeviceInfo& device) {
  if (!why_not(kernel, p, device).empty()) return std::nullopt;
  try {
    const bool defaults = std::holds_alternative<std::monostate>(match.params);  // they were measured to be the best
    return with(kernel, p, device, defaults ? kernel.defaults(p, device) : match.params, match.reason);
  } catch (const ParamsError&) {  // measured for a neighbouring shape, or by an earlier version of the kernel
    return std::nullopt;
  }
}

Plan with_onemkl(std::string reason) {
  Plan plan;
  plan.backend = onemkl::name;
  plan.reason = std::move(reason);
  return plan;
}

Plan with_named_kernel(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (const std::string reason = why_not(kernel, p, device); !reason.empty())
    throw UnsupportedError("the kernel \"" + std::string(kernel.name) + "\" cannot compute this product: " + reason);
  if (options.params) return with(kernel, p, device, *options.params, "the caller chose the constants");
  if (const auto match = lookup(p, device, kernel.name))
    if (auto plan = tuned(kernel, *match, p, device)) return *std::move(plan);
  return with(kernel, p, device, kernel.defaults(p, device), "the caller chose the kernel; its default constants for this device");
}

const Kernel& preferred(const Problem& p, const DeviceInfo& device) {
  const Kernel* best = nullptr;
  int highest = 0;
  for (const Kernel& kernel : all_kernels()) {
    const int preference = kernel.preference ? kernel.preference(p, device) : 0;
    if (preference <= highest || !why_not(kernel, p, device).empty()) continue;
    highest = preference;
    best = &kernel;
  }
  if (best) return *best;
  throw UnsupportedError("no kernel computes a " + std::string(name_of(p.dtype)) + " product on " + device.name +
                         "; device=\"cpu\" may, or another dtype (sycl_mat.kernels() lists them).");
}

void check_backend(const GemmOptions& options) {
  if (options.backend != "sycl" && options.backend != onemkl::name && options.backend != "auto")
    throw UnsupportedError("there is no backend \"" + options.backend + "\"; there are: sycl, onemkl, auto");
  if (options.backend == onemkl::name && (!options.kernel.empty() || options.params))
    throw UnsupportedError("kernel and params choose among our own kernels: they do not go with backend \"onemkl\"");
}

/// oneMKL's plan. What it cannot do falls to ours, with the reason in front of the plan's own.
Plan onemkl_or_ours(const Problem& p, const DeviceInfo& device, GemmOptions options) {
  onemkl::require();
  const std::string reason = onemkl::why_not(p);
  if (reason.empty()) return with_onemkl("the caller chose oneMKL");
  options.backend = "sycl";
  Plan plan = make_plan(p, device, options);
  plan.reason = "not by oneMKL: " + reason + "; ours instead: " + plan.reason;
  return plan;
}

/// The plan of the fastest that was measured. A record of oneMKL counts where the caller leaves the backend open; one of a kernel that
/// this version does not have counts nowhere.
std::optional<Plan> measured(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  auto match = lookup(p, device);
  if (!match) return std::nullopt;
  if (match->kernel == onemkl::name) {
    if (options.backend == "auto" && onemkl::usable() && onemkl::why_not(p).empty()) return with_onemkl(match->reason);
    match = lookup(p, device, preferred(p, device).name);
    if (!match) return std::nullopt;
  }
  for (const Kernel& kernel : all_kernels())
    if (kernel.name == match->kernel)
      if (auto plan = tuned(kernel, *match, p, device)) return plan;
  // The fastest cannot do this very product (its precision, say): the kernel that is taken then may have a record of its own.
  const Kernel& other = preferred(p, device);
  if (other.name == match->kernel) return std::nullopt;
  match = lookup(p, device, other.name);
  return match ? tuned(other, *match, p, device) : std::nullopt;
}

}  // namespace

bool on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  check_backend(options);
  if (options.backend == onemkl::name) return false;
  if (!options.kernel.empty()) return options.kernel == host::name;
  return !options.params && host::preferred(p, device);
}

Plan make_plan(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (options.backend == onemkl::name) return onemkl_or_ours(p, device, options);
  if (!options.kernel.empty()) return with_named_kernel(find_kernel(options.kernel), p, device, options);
  if (options.params && !std::holds_alternative<std::monostate>(*options.params))
    return with_named_kernel(find_kernel(kernel_of(*options.params)), p, device, options);
  if (auto plan = measured(p, device, options)) return *std::move(plan);
  const Kernel& kernel = preferred(p, device);
  return with(kernel, p, device, kernel.defaults(p, device), "nothing measured for this device: constants from its properties");
}

Plan untuned_plan(const Problem& p, const DeviceInfo& device, bool shipped) {
  if (const auto match = shipped ? lookup_shipped(p, device) : nullptr)
    for (const Kernel& kernel : all_kernels())
      if (kernel.name == match->kernel)
        if (auto plan = tuned(kernel, *match, p, device)) return *std::move(plan);
  const Kernel& kernel = preferred(p, device);
  return with(kernel, p, device, kernel.defaults(p, device), "nothing measured for this device: constants from its properties");
}

}  // namespace sycl_mat
