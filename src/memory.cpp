#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

constexpr std::size_t vector_alignment = 64;
constexpr std::size_t huge_page = std::size_t(2) << 20;

/// Four classes between powers of two: at most a fifth is wasted, and a few sizes serve everything.
std::size_t size_class(std::size_t bytes) {
  std::size_t power = 4096;
  while (power < bytes) power *= 2;
  for (std::size_t size = power / 2 + power / 8; size < power; size += power / 8)
    if (size >= bytes && size >= 4096) return size;
  return power;
}

}  // namespace

MemoryPool::MemoryPool(sycl::queue& queue, std::size_t most_cached, std::function<void()> release_others)
    : queue_(queue), most_cached_(most_cached), release_others_(std::move(release_others)) {}

void* MemoryPool::allocate(std::size_t size, sycl::usm::alloc kind) noexcept {
  try {
    return sycl::aligned_alloc(vector_alignment, size, queue_.get_device(), queue_.get_context(), kind);
  } catch (const sycl::exception&) {
    return nullptr;
  }
}

void* MemoryPool::take(std::size_t bytes, sycl::usm::alloc kind) {
  const std::size_t size = size_class(bytes);
  std::unique_lock guard(mutex_);
  if (const auto found = cached_.find({kind, size}); found != cached_.end()) {
    void* pointer = found->second;
    taken_.emplace(pointer, Block{size, kind});
    cached_bytes_ -= size;
    cached_.erase(found);
    return pointer;
  }
  void* pointer = allocate(size, kind);
  if (!pointer) {
    release_cached_locked();
    pointer = allocate(size, kind);
  }
  if (!pointer) {
    guard.unlock();  // who holds the others' memory may be asking the pool to release its own
    release_others_();
    guard.lock();
    pointer = allocate(size, kind);
  }
  if (!pointer)
    throw OutOfMemoryError("out of memory: " + std::to_string(bytes) +
                           " bytes for operands could not be allocated on the device. Use smaller blocks, or free arrays that live there.");
  taken_.emplace(pointer, Block{size, kind});
  return pointer;
}

void MemoryPool::give_back(void* pointer) noexcept {
  std::lock_guard guard(mutex_);
  const auto found = taken_.find(pointer);
  if (found == taken_.end()) return;
  const Block block = found->second;
  taken_.erase(found);
  if (cached_bytes_ + block.bytes > most_cached_) {
    finish_queue();
    sycl::free(pointer, queue_.get_context());
    return;
  }
  cached_.emplace(std::pair{block.kind, block.bytes}, pointer);
  cached_bytes_ += block.bytes;
}

/// What was given back may still be in use by commands of the queue: good enough for the queue's next commands, not for free().
void MemoryPool::finish_queue() noexcept {
  try {
    queue_.wait();
  } catch (...) {  // whoever needs the result that failed will hear of it
  }
}

void MemoryPool::release_cached_locked() noexcept {
  if (!cached_.empty()) finish_queue();
  for (const auto& [key, pointer] : cached_) sycl::free(pointer, queue_.get_context());
  cached_.clear();
  cached_bytes_ = 0;
}

void MemoryPool::release_cached() noexcept {
  std::lock_guard guard(mutex_);
  release_cached_locked();
}

std::size_t MemoryPool::bytes_in_use() const {
  std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [pointer, block] : taken_) sum += block.bytes;
  return sum;
}

std::size_t MemoryPool::bytes_cached() const {
  std::lock_guard guard(mutex_);
  return cached_bytes_;
}

void* Scratch::require(std::size_t bytes, std::size_t counter_bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > bytes_) {
    queue_.wait();  // kernels in flight may use the old one
    reset();
    const std::size_t size = (bytes + huge_page - 1) / huge_page * huge_page;
    data_ = allocate(size);
    if (!data_) {
      pool_.release_cached();
      data_ = allocate(size);
    }
    if (!data_) throw OutOfMemoryError("out of memory: " + std::to_string(size) + " bytes of scratch could not be allocated.");
    bytes_ = size;
  }
  if (counter_bytes > clean_) queue_.memset(static_cast<char*>(data_) + clean_, 0, counter_bytes - clean_);
  clean_ = counter_bytes;  // what follows the counters is written by the kernel
  return data_;
}

void* Scratch::allocate(std::size_t size) noexcept {
  if (size > most_bytes_) return nullptr;
  if (host_memory_) {
    void* data = std::aligned_alloc(huge_page, size);
#if defined(__linux__)
    if (data) madvise(data, size, MADV_HUGEPAGE);  // packed panels are walked in order: fewer page walks
#endif
    return data;
  }
  try {
    return sycl::aligned_alloc_device(vector_alignment, size, queue_);
  } catch (const sycl::exception&) {
    return nullptr;
  }
}

void Scratch::release() noexcept {
  if (!data_) return;
  try {
    queue_.wait();
  } catch (...) {  // whoever needs the result that failed will hear of it
  }
  reset();
}

void Scratch::reset() noexcept {
  if (host_memory_) {
    std::free(data_);
  } else if (data_) {
    sycl::free(data_, queue_);
  }
  data_ = nullptr;
  bytes_ = clean_ = 0;
}

}  // namespace sycl_mat
