#include "plan.hpp"

#include "backends/host.hpp"
#include "backends/onemkl.hpp"
#include "rearrange.hpp"
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
  Plan plan = plan_with(kernel, p, device, params);
  if (!plan.reason.empty()) reason += "; " + plan.reason;
  plan.reason = std::move(reason);
  return plan;
}

Plan with_onemkl(std::string reason) {
  Plan plan;
  plan.backend = onemkl::name;
  plan.reason = std::move(reason);
  return plan;
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

using Match = std::shared_ptr<const TunedMatch>;

Match find(const Problem& p, const DeviceInfo& device, Records records, std::string_view kernel = {}) {
  if (records == Records::none) return nullptr;
  return records == Records::all ? lookup(p, device, kernel) : lookup_shipped(p, device, kernel);
}

/// What is taken where nothing was measured: a rule of sizes.
std::string_view by_rule(const Problem& p, const DeviceInfo& device) {
  return host::preferred(p, device) ? host::name : preferred(p, device).name;
}

bool able(std::string_view name, const Problem& p, const DeviceInfo& device) {
  // Activations element by element are what the host path is slow at, and measurements are of plain products.
  if (name == host::name) return device.is_cpu() && p.precision != Precision::tf32 && p.epilogue.activation <= Activation::relu;
  for (const Kernel& kernel : all_kernels())
    if (kernel.name == name) return why_not(kernel, p, device).empty();
  return false;  // of a version to come
}

struct Named {
  std::string_view kernel;
  Match because;  ///< the record that decided, null: the rule did
};

/// Which kernel. A record that says what the rule says leaves it to the rule: at a neighbouring size that may be another kernel.
Named which(const Problem& p, const DeviceInfo& device, Records records) {
  const std::string_view rule = by_rule(p, device);
  const Match match = find(p, device, records);
  if (!match || !able(match->kernel, p, device)) return {rule, nullptr};
  // Where the host path hands over hangs on the number of cores, which a sister device need not have.
  if (match->source == RecordSource::shipped_architecture && (rule == host::name || match->kernel == host::name)) return {rule, nullptr};
  // A record that does not say whether it was measured beside the others says nothing of the host path, and of the rule's kernel only
  // where that has a record, too (of which the faster was looked up).
  const bool counts = match->fastest ? !match->instead_of.empty() || match->shape == shape_of(p)
                                     : rule != host::name && match->kernel != host::name && find(p, device, records, rule);
  return counts ? Named{match->kernel, match} : Named{rule, nullptr};
}

/// The record that has the constants for a kernel, null where there is none or its constants do not fit this problem.
Match constants_of(const Kernel& kernel, const Problem& p, const DeviceInfo& device, Records records) {
  Match match = find(p, device, records, kernel.name);
  if (!match || std::holds_alternative<std::monostate>(match->params)) return match;  // the defaults were measured to be the best
  try {
    kernel.plan(kernel, p, device, match->params);
  } catch (const ParamsError&) {  // measured for a neighbouring shape, or by an earlier version of the kernel
    return nullptr;
  }
  return match;
}

/// `because`: why this kernel; empty: there was nothing to say.
Choice with_constants(const Kernel& kernel, const Match& match, const Problem& p, const DeviceInfo& device, const std::string& because,
                      const std::string& otherwise) {
  Choice choice{kernel.name, defaults_of(kernel, p, device), otherwise};
  if (match) {
    if (!std::holds_alternative<std::monostate>(match->params)) choice.params = match->params;
    choice.reason = match->reason;
  }
  if (!because.empty() && because != choice.reason) choice.reason = because + "; constants: " + choice.reason;
  return choice;
}

constexpr std::string_view from_properties = "nothing measured for this device: constants from its properties";

Choice choose_kernel(const Kernel& kernel, const std::string& because, const Problem& p, const DeviceInfo& device, Records records) {
  return with_constants(kernel, constants_of(kernel, p, device, records), p, device, because, std::string(from_properties));
}

/// As choose(), for a product that is launched, whatever the host path could do.
Choice choose_launched(const Problem& p, const DeviceInfo& device, Records records) {
  const Named named = which(p, device, records);
  const Kernel& kernel = named.kernel == host::name ? preferred(p, device) : find_kernel(named.kernel);
  return choose_kernel(kernel, named.kernel != host::name && named.because ? named.because->reason : "", p, device, records);
}

Plan with_named_kernel(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (const std::string reason = why_not(kernel, p, device); !reason.empty())
    throw UnsupportedError("the kernel \"" + std::string(kernel.name) + "\" cannot compute this product: " + reason);
  if (options.params) return with(kernel, p, device, *options.params, "the caller chose the constants");
  const Choice choice = with_constants(kernel, constants_of(kernel, p, device, Records::all), p, device, "",
                                       "the caller chose the kernel; its default constants for this device");
  return with(kernel, p, device, choice.params, choice.reason);
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

/// The record that says oneMKL is faster than ours, for callers who leave the backend open; null: ours it is.
Match onemkl_measured(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (options.backend != "auto" || !options.kernel.empty() || options.params) return nullptr;
  const Match theirs = lookup(p, device, onemkl::name);
  if (!theirs) return nullptr;
  const Match ours = theirs->fastest ? nullptr : lookup(p, device);  // an early record does not say
  if (!theirs->fastest.value_or(!ours || theirs->gflops > ours->gflops)) return nullptr;
  return onemkl::usable() && onemkl::why_not(p).empty() ? theirs : nullptr;
}

/// Multiply-adds below which the rule alone decides: to ask would take too large a part of the product's time.
constexpr double worth_asking = 1e5;

/// What this thread asked last: a product in a loop asks the same again and again.
struct Remembered {
  Shape shape;
  std::string device;
  int cores = 0;
  std::uint64_t generation = 0;
  int kind = -1;
  bool host = false;
};

bool host_chosen(const Problem& p, const DeviceInfo& device) {
  const Shape shape = shape_of(p);
  const int kind = static_cast<int>(p.dtype) | p.a.transposed << 4 | p.b.transposed << 5 | static_cast<int>(p.precision) << 6 |
                   static_cast<int>(p.epilogue.activation) << 8 | static_cast<int>(p.has_epilogue()) << 12;
  constexpr std::size_t count = 32;
  thread_local Remembered remembered[count];
  Remembered& r =
      remembered[(static_cast<std::size_t>(p.m) * 31 + static_cast<std::size_t>(p.n) * 7 + static_cast<std::size_t>(p.k)) % count];
  const std::uint64_t generation = tuning_generation();
  if (r.kind != kind || r.shape != shape || r.generation != generation || r.cores != device.compute_units || r.device != device.fingerprint)
    r = {shape, device.fingerprint, device.compute_units, generation, kind, which(p, device, Records::all).kernel == host::name};
  return r.host;
}

}  // namespace

Params defaults_of(const Kernel& kernel, const Problem& p, const DeviceInfo& device) {
  return kernel.defaults(rearranged(p, worth_copying(kernel, p, device)), device);
}

Plan plan_with(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  return plan_rearranged(kernel, p, device, params, worth_copying(kernel, p, device));
}

bool on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  check_backend(options);
  if (options.backend == onemkl::name) return false;
  if (!options.kernel.empty()) return options.kernel == host::name;
  if (options.params || !device.is_cpu()) return false;
  if (double(p.m) * double(p.n) * double(p.k) * double(p.batch()) < worth_asking) return host::preferred(p, device);
  return host_chosen(p, device) && !onemkl_measured(p, device, options);
}

std::string why_on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (options.kernel == host::name) return "the caller chose the host path";
  if (const Match because = which(p, device, Records::all).because; because && !host::preferred(p, device)) return because->reason;
  return "so small that a launch would cost more than the product";
}

Plan make_plan(const Problem& p, const DeviceInfo& device, const GemmOptions& options) {
  if (options.backend == onemkl::name) return onemkl_or_ours(p, device, options);
  if (!options.kernel.empty()) return with_named_kernel(find_kernel(options.kernel), p, device, options);
  if (options.params && !std::holds_alternative<std::monostate>(*options.params))
    return with_named_kernel(find_kernel(kernel_of(*options.params)), p, device, options);
  if (const Match theirs = onemkl_measured(p, device, options)) return with_onemkl(theirs->reason);
  const Choice choice = choose_launched(p, device, Records::all);
  return with(find_kernel(choice.kernel), p, device, choice.params, choice.reason);
}

Choice choose(const Problem& p, const DeviceInfo& device, Records records) {
  const Named named = which(p, device, records);
  if (named.kernel != host::name) return choose_launched(p, device, records);
  return {host::name, {}, named.because ? named.because->reason : "so small that a launch would cost more than the product"};
}

}  // namespace sycl_mat
