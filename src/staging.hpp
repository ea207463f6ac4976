// Where operands live: read in place where the device can, copied through pooled memory where it cannot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "context.hpp"
#include "view.hpp"

namespace sycl_mat {

/// Pool memory that goes back when the object does, also when a constructor fails half-way.
class Borrowed {
 public:
  explicit Borrowed(MemoryPool& pool) : pool_(pool) {}
  ~Borrowed() {
    for (void* pointer : pointers_) pool_.give_back(pointer);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  void* take(std::size_t bytes, sycl::usm::alloc kind);
  bool empty() const { return pointers_.empty(); }

 private:
  MemoryPool& pool_;
  std::vector<void*> pointers_;
};

/// The views that a problem is made of, all readable for the device (or for the host path), whatever the caller's were. Owns the copies:
/// it must live until the work that uses them has run.
class Staging {
 public:
  enum class Where { device, host };
  /// Copies in what must be copied. Throws OutOfMemoryError, UnsupportedError; nothing leaks.
  Staging(Context::State& context, const Operands& o, Where where);

  const Operands& operands() const { return staged_; }
  /// Queues what can be queued of D's way back. Call after the launch.
  void queue_copy_back();
  /// The rest of D's way back, on the host. Call after the queue has run.
  void finish();
  bool has_copies() const { return !memory_.empty(); }
  /// "zero copy", or what is copied and why.
  std::string description() const;

 private:
  MatrixView bring_in(const MatrixView& v, const char* name, const char* forced);
  MatrixView bring_result(const MatrixView& v, bool overlaps);
  bool usable(const MatrixView& v) const;
  MatrixView dense_copy_of(const MatrixView& v, const char* name, const char* why);
  Context::State& context_;
  const Where where_;
  const bool direct_;  ///< both sides reach the copies: the host fills and empties them in place
  Operands staged_;
  std::optional<MatrixView> result_;  ///< the caller's D, where it was staged
  bool far_result_ = false;           ///< the processor does not reach it
  void* bounce_ = nullptr;            ///< host copy of a staged D that cannot be copied straight to the caller
  Borrowed memory_;
  std::string copies_;  ///< of description()
};

/// dst ← src wherever they live: see sycl_mat/array.hpp.
void copy(Context::State& context, const MatrixView& dst, const MatrixView& src);

/// Whether the processor may read and write there.
bool host_reachable(const Context::State& context, const void* pointer);

}  // namespace sycl_mat
