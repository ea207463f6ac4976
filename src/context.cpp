#include "context.hpp"

#include <algorithm>
#include <map>
#include <memory>

#if __has_include(<pthread.h>)
#include <pthread.h>
#endif

#include "backends/host_team.hpp"
#include "caller_placement.hpp"
#include "device.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

/// All contexts of the process, by selector. Never destroyed: programs must not outlive their SYCL context, and threads may still run
/// products while the process exits.
struct Registry {
  std::mutex mutex;
  std::map<std::string, Context*, std::less<>> by_selector;
  std::map<std::string, std::unique_ptr<Context>> by_device;
  std::atomic<Context*> standard{nullptr};
  std::atomic<bool> forked{false};
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

/// SYCL's runtimes keep threads that a child of fork() does not have: the first wait there would hang for ever.
void refuse_after_fork() {
#if __has_include(<pthread.h>)
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { registry().forked = true; }); });
#endif
}

[[noreturn]] void forked_error() {
  throw DeviceError(
      "this process was forked from one that had already used a SYCL device, and SYCL does not survive fork(). Start workers with the "
      "multiprocessing method \"spawn\" or \"forkserver\", or call sycl_mat for the first time in the child.");
}

std::size_t cached_bytes_limit(const DeviceInfo& info) {
  return static_cast<std::size_t>(info.global_memory) / 8;  // staging buffers kept for reuse may take an eighth of the memory
}

/// What fails after it was submitted (inside oneMKL, for example) reaches whoever waits; the runtime's own handler ends the process.
void raise(sycl::exception_list failures) {
  for (const std::exception_ptr& failure : failures) std::rethrow_exception(failure);
}

}  // namespace

Context::State::State(const sycl::device& device, DeviceInfo device_info)
    : queue(device, raise, sycl::property::queue::in_order{}),
      info(std::move(device_info)),
      all_units(info.compute_units),
      pool(queue, cached_bytes_limit(info),
           [this] {
             const std::lock_guard guard(launching);
             scratch.release();
           }),
      scratch(queue, pool, info.is_cpu() && info.usm_system),
      programs(queue, info) {}

void Context::State::wait() {
  if (registry().forked) forked_error();
  try {
    const std::uint64_t mark = pending.mark();
    queue.wait_and_throw();
    pending.finished(mark);
    if (info.is_cpu()) find_pinned_workers();
  } catch (const sycl::exception& e) {
    forget_scratch();
    rethrow(e, info);
  } catch (const std::exception& e) {  // a host task's, as it was thrown
    forget_scratch();
    throw DeviceError(info.name + " failed: " + e.what());
  }
}

void Context::State::forget_scratch() {
  const std::lock_guard guard(launching);
  scratch.release();  // another thread's kernels may be using it by now
}

void rethrow(const sycl::exception& e, const DeviceInfo& device) {
  const std::string what = e.what();
  if (e.code() == sycl::errc::memory_allocation || what.find("OUT_OF_DEVICE_MEMORY") != std::string::npos ||
      what.find("OUT_OF_HOST_MEMORY") != std::string::npos || what.find("OUT_OF_RESOURCES") != std::string::npos)
    throw OutOfMemoryError("out of memory on " + device.name + ": " + what);
  throw DeviceError(device.name + " failed: " + what + " (the device may be lost; 'sycl-mat doctor' checks it)");
}

Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {}
Context::~Context() = default;
const DeviceInfo& Context::device() const { return state_->info; }
void Context::wait() { state_->wait(); }

void Context::set_threads(int count) {
  State& state = *state_;
  if (!state.info.is_cpu())
    throw UnsupportedError("only a CPU device has threads to limit; " + state.info.name + " is a " + state.info.type + ".");
  if (count < 0) throw InputError("the number of threads must be positive, or 0 for all.");
  state.info.compute_units = count == 0 ? state.all_units : std::min(count, state.all_units);
  state.prepared.clear();
  host::set_threads(state.info.compute_units);
}

int Context::threads() const { return state_->info.compute_units; }

Context& context(std::string_view selector) {
  Registry& r = registry();
  if (r.forked) forked_error();
  if (selector.empty())
    if (Context* standard = r.standard) return *standard;
  refuse_after_fork();
  std::lock_guard guard(r.mutex);
  if (const auto found = r.by_selector.find(selector); found != r.by_selector.end()) return *found->second;
  try {
    const sycl::device device = select_device(selector);
    DeviceInfo info = describe(device);
    for (const DeviceInfo& listed : devices())  // by device, not by model: there may be two of one
      if (info.selector.empty() && select_device(listed.selector) == device) info.selector = listed.selector;
    // Two selectors of one device ("gpu", "level_zero:0") share its context and so its queue.
    const std::string key = std::to_string(std::hash<sycl::device>{}(device));
    auto& slot = r.by_device[key];
    if (!slot) slot = std::make_unique<Context>(std::make_unique<Context::State>(device, std::move(info)));
    r.by_selector.emplace(selector, slot.get());
    if (selector.empty()) r.standard = slot.get();
    return *slot;
  } catch (const sycl::exception& e) {
    throw DeviceError(std::string("the SYCL runtime could not open the device: ") + e.what() +
                      " Run 'sycl-mat doctor' to see what is missing.");
  }
}

void set_default_device(std::string_view selector) {
  Registry& r = registry();
  if (selector.empty()) {
    std::lock_guard guard(r.mutex);
    r.by_selector.erase("");
    r.standard = nullptr;
    return;
  }
  Context& chosen = context(selector);
  std::lock_guard guard(r.mutex);
  r.by_selector.insert_or_assign("", &chosen);
  r.standard = &chosen;
}

}  // namespace sycl_mat
