// Where operands live: read in place where the device can, copied through pooled memory where it cannot.
#pragma once

#include <map>
#include <optional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sycl.hpp"
#include "sycl_mat/device.hpp"
#include "view.hpp"

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

/// The views that a problem is made of, all readable for the device (or for the host path), whatever the caller's were. Owns the copies.
class Staging {
 public:
  enum class Where { device, host };
  /// Copies in what must be copied. `o` has at most two batch axes.
  Staging(Context::State& context, const Operands& o, Where where);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const Operands& operands() const { return staged_; }
  /// Queues what can be queued of D's way back. Call after the launch.
  void queue_copy_back();
  /// The rest of D's way back, on the host. Call after the queue has run.
  void finish();
  bool copies_result() const { return result_.has_value(); }
  bool has_copies() const { return !pooled_.empty(); }
  /// "zero copy", or what is copied and why.
  const std::string& description() const { return description_; }

 private:
  MatrixView bring_in(const MatrixView& v, const char* name, bool fill, bool force);
  Context::State& context_;
  Where where_;
  Operands staged_;
  std::optional<MatrixView> result_;  ///< the caller's D, where it was staged
  void* bounce_ = nullptr;            ///< host copy of a staged D that cannot be copied straight to the caller
  std::vector<void*> pooled_;
  std::string description_;
};

/// Whether the processor may read and write there.
bool host_reachable(const Context::State& context, const void* pointer);

}  // namespace sycl_mat
