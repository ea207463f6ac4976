// What a Context owns.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory.hpp"
#include "prepared.hpp"
#include "program.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// Whether something was submitted that nobody has waited for. A count, not a flag: one thread's wait must not hide what another
/// submits meanwhile.
class Pending {
 public:
  /// Call after the submission.
  void submitted() { ++submitted_; }
  std::uint64_t mark() const { return submitted_; }
  /// Everything up to `mark` has run.
  void finished(std::uint64_t mark) {
    std::uint64_t known = finished_;
    while (known < mark && !finished_.compare_exchange_weak(known, mark)) {
    }
  }
  explicit operator bool() const { return finished_ < submitted_; }

 private:
  std::atomic<std::uint64_t> submitted_{0}, finished_{0};
};

struct Context::State {
  /// `info` may differ from describe(device): tests mask capabilities.
  State(const sycl::device& device, DeviceInfo info);
  sycl::queue queue;  ///< in order
  DeviceInfo info;    ///< compute_units: as many as products may use
  const int all_units;
  std::mutex launching;  ///< scratch and the launch that uses it belong together; not to be asked for with the pool's lock held
  MemoryPool pool;       ///< staging memory
  Scratch scratch;
  Programs programs;
  PreparedCache prepared;
  Pending pending;

  /// Waits for the queue; translates what the runtime throws.
  void wait();

 private:
  void forget_scratch();
};

/// Translates the runtime's exceptions into ours: out of memory, lost device, anything else.
[[noreturn]] void rethrow(const sycl::exception& e, const DeviceInfo& device);

}  // namespace sycl_mat
