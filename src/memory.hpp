// Where operands live: read in place where the device can, copied through pooled device memory where it cannot.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sycl.hpp"
#include "view.hpp"

namespace sycl_mat {

/// Reuses allocations of one queue, by size class. Nothing is handed out twice before it was given back.
class MemoryPool {
 public:
  explicit MemoryPool(sycl::queue& queue);
  /// Throws OutOfMemoryError (after one attempt with everything cached released).
  void* take(std::size_t bytes, sycl::usm::alloc kind);
  void give_back(void* pointer) noexcept;
  void release_cached() noexcept;
  std::size_t bytes_in_use() const;

 private:
  sycl::queue& queue_;
  mutable std::mutex mutex_;
  struct Block {
    std::size_t bytes;
    sycl::usm::alloc kind;
  };
  std::map<void*, Block> taken_;
  std::multimap<std::pair<int, std::size_t>, void*> cached_;
};

/// Operands made readable for the device; on destruction gives its memory back (after the work that uses it has run).
class Staging {
 public:
  Staging(Context& context, const CheckedProblem& checked, const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const Problem& problem() const { return problem_; }  ///< with device pointers
  void copy_back();            ///< queues the copy of D to the caller's memory, where D was staged
  const std::string& description() const { return description_; }

 private:
  Context& context_;
  Problem problem_;
  std::vector<void*> owned_;
  std::string description_;
};

}  // namespace sycl_mat
