// Memory of a device that is used again: the pool that staging copies live in, and the scratch of the kernels.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sycl.hpp"

namespace sycl_mat {

/// Reuses allocations of one queue, by size class. Nothing is handed out twice before it was given back.
class MemoryPool {
 public:
  explicit MemoryPool(sycl::queue& queue, std::size_t most_cached);
  /// At least `bytes`, aligned for any vector load. Throws OutOfMemoryError, after one attempt with everything cached released.
  void* take(std::size_t bytes, sycl::usm::alloc kind);
  void give_back(void* pointer) noexcept;
  void release_cached() noexcept;
  std::size_t bytes_in_use() const;

 private:
  struct Block {
    std::size_t bytes;
    sycl::usm::alloc kind;
  };
  void release_cached_locked() noexcept;
  void finish_queue() noexcept;
  sycl::queue& queue_;
  const std::size_t most_cached_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> taken_;
  std::multimap<std::pair<sycl::usm::alloc, std::size_t>, void*> cached_;
  std::size_t cached_bytes_ = 0;
};

/// The scratch memory of one queue: kernels of an in-order queue use it one after the other. Counters at its start are zero when a
/// kernel begins; kernels leave them zero.
class Scratch {
 public:
  Scratch(sycl::queue& queue, bool host_memory) : queue_(queue), host_memory_(host_memory) {}
  /// The caller holds the context's launch lock until its kernel is submitted.
  void* require(std::size_t bytes, std::size_t counter_bytes);
  /// Forgets everything: after a device error, nobody knows what a kernel left behind.
  void reset() noexcept;

 private:
  sycl::queue& queue_;
  bool host_memory_;  ///< the device reads ordinary memory: then huge pages can be asked for
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t clean_ = 0;  ///< so many bytes from the start are known to be zero
};

}  // namespace sycl_mat
