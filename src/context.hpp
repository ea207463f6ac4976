// What a Context owns.
#pragma once

#include "memory.hpp"
#include "program.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

struct Context::State {
  explicit State(const sycl::device& device);
  sycl::queue queue;  ///< in order
  DeviceInfo info;
  MemoryPool pool;    ///< device and scratch memory of this queue
  Programs programs;
  std::mutex launching;  ///< a kernel's arguments and launch, and the scratch it uses, belong together
};

/// Translates the runtime's exceptions into ours: out of memory, lost device, anything else.
[[noreturn]] void rethrow(const sycl::exception& e, const DeviceInfo& device);

}  // namespace sycl_mat
