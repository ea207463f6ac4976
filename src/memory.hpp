// Memory of a device that is used again: the pool that staging copies live in, and the scratch of the kernels.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sycl.hpp"

namespace sycl_mat {

/// Reuses allocations of one queue, by size class. Nothing is handed out twice before it was given back.
class MemoryPool {
 public:
  /// `release_others` gives back what else of the device's memory is only kept for reuse. It is called without the pool's lock.
  MemoryPool(sycl::queue& queue, std::size_t most_cached, std::function<void()> release_others = [] {});
  /// At least `bytes`, aligned for any vector load. Throws OutOfMemoryError, after attempts with everything cached released, and the
  /// others'.
  void* take(std::size_t bytes, sycl::usm::alloc kind);
  void give_back(void* pointer) noexcept;
  void release_cached() noexcept;
  std::size_t bytes_in_use() const;
  std::size_t bytes_cached() const;

 private:
  struct Block {
    std::size_t bytes;
    sycl::usm::alloc kind;
  };
  void* allocate(std::size_t size, sycl::usm::alloc kind) noexcept;
  void release_cached_locked() noexcept;
  void finish_queue() noexcept;
  sycl::queue& queue_;
  const std::size_t most_cached_;
  const std::function<void()> release_others_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> taken_;
  std::multimap<std::pair<sycl::usm::alloc, std::size_t>, void*> cached_;
  std::size_t cached_bytes_ = 0;
};

/// The scratch memory of one queue: kernels of an in-order queue use it one after the other. Counters at its start are zero when a
/// kernel begins; kernels leave them zero.
class Scratch {
 public:
  Scratch(sycl::queue& queue, MemoryPool& pool, bool host_memory) : queue_(queue), pool_(pool), host_memory_(host_memory) {}
  /// The caller holds the context's launch lock until its kernel is submitted. Throws OutOfMemoryError, after an attempt with everything
  /// released that the pool keeps.
  void* require(std::size_t bytes, std::size_t counter_bytes);
  /// Gives the memory back, once nothing uses it any more. The caller holds the launch lock.
  void release() noexcept;
  /// Forgets everything: after a device error, nobody knows what a kernel left behind. The caller holds the launch lock.
  void reset() noexcept;
  /// For tests: as if the device had no more.
  void limit(std::size_t most_bytes) { most_bytes_ = most_bytes; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* allocate(std::size_t size) noexcept;
  sycl::queue& queue_;
  MemoryPool& pool_;
  std::size_t most_bytes_ = std::numeric_limits<std::size_t>::max();
  bool host_memory_;  ///< the device reads ordinary memory: then huge pages can be asked for
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t clean_ = 0;  ///< so many bytes from the start are known to be zero
};

}  // namespace sycl_mat
