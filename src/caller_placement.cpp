#include "caller_placement.hpp"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#endif

namespace sycl_mat {

#if defined(__linux__)
namespace {

cpu_set_t workers;  // written once, before `known`
std::atomic<bool> known{false};
thread_local cpu_set_t mask_before;  // a thread makes one product at a time

}  // namespace

void find_pinned_workers() {
  if (known) return;
  cpu_set_t found;
  CPU_ZERO(&found);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto thread = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    cpu_set_t mask;
    // Worker threads have a processor of their own; the process's other threads may run anywhere it may.
    if (thread != static_cast<pid_t>(syscall(SYS_gettid)) && sched_getaffinity(thread, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) == 1)
      CPU_OR(&found, &found, &mask);
  }
  workers = found;
  known = true;
}

CallerPlacement::CallerPlacement(bool on_cpu_device) {
  if (!on_cpu_device || !known) return;
  const int here = sched_getcpu();
  if (here < 0 || !CPU_ISSET(here, &workers)) return;
  if (sched_getaffinity(0, sizeof mask_before, &mask_before) != 0) return;
  cpu_set_t elsewhere, shared;
  CPU_AND(&shared, &mask_before, &workers);
  CPU_XOR(&elsewhere, &mask_before, &shared);
  moved_ = CPU_COUNT(&elsewhere) > 0 && sched_setaffinity(0, sizeof elsewhere, &elsewhere) == 0;
}

CallerPlacement::~CallerPlacement() {
  if (moved_) sched_setaffinity(0, sizeof mask_before, &mask_before);
}

#else

void find_pinned_workers() {}
CallerPlacement::CallerPlacement(bool) {}
CallerPlacement::~CallerPlacement() = default;

#endif

}  // namespace sycl_mat
