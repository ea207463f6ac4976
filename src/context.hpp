// What a Context owns.
#pragma once

#include <atomic>

#include "memory.hpp"
#include "prepared.hpp"
#include "program.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

struct Context::State {
  /// `info` may differ from describe(device): tests mask capabilities.
  State(const sycl::device& device, DeviceInfo info);
  sycl::queue queue;  ///< in order
  DeviceInfo info;    ///< compute_units: as many as products may use
  const int all_units;
  MemoryPool pool;    ///< staging memory
  Scratch scratch;
  Programs programs;
  PreparedCache prepared;
  std::mutex launching;            ///< scratch and the launch that uses it belong together
  std::atomic<bool> pending{false};  ///< something was submitted that nobody has waited for

  /// Waits for the queue; translates what the runtime throws.
  void wait();
};

/// Translates the runtime's exceptions into ours: out of memory, lost device, anything else.
[[noreturn]] void rethrow(const sycl::exception& e, const DeviceInfo& device);

}  // namespace sycl_mat
