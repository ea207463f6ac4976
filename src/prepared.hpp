// Plan and program of a problem, remembered: a repeated product pays for neither.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "kernel.hpp"
#include "program.hpp"

namespace sycl_mat {

struct Prepared {
  Plan plan;
  const Program* program = nullptr;                 ///< null where the plan needs none (host path, other backends)
  std::vector<const Program*> copies;               ///< of the plan's copies
  std::shared_ptr<const Prepared> instead_of;       ///< with copies, for which there was no memory
  std::chrono::steady_clock::time_point try_again;  ///< from then on that is run again
};

/// Thread-safe. Keyed by everything a plan depends on: sizes, layouts, strides, dtype, epilogue kind, alignment, forced choices.
class PreparedCache {
 public:
  /// Throws what planning and compiling throw; a failure is not remembered.
  std::shared_ptr<const Prepared> get(Programs& programs, const Problem& p, const DeviceInfo& device, const GemmOptions& options);
  /// The same product without copies, for which there is no memory now: get() gives this for some seconds, too. Throws CompileError.
  std::shared_ptr<const Prepared> without_copies(Programs& programs, const Problem& p, const GemmOptions& options,
                                                 std::shared_ptr<const Prepared> with_copies);
  /// Forgets everything: the tuning database has changed.
  void clear();

 private:
  std::shared_mutex mutex_;
  std::atomic<std::uint64_t> generation_{0};  ///< of the tuning database, when what is known was planned
  std::unordered_map<std::string, std::shared_ptr<const Prepared>> known_;
};

}  // namespace sycl_mat
