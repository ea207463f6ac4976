#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "context.hpp"
#include "strided_copy.hpp"
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

MemoryPool::MemoryPool(sycl::queue& queue, std::size_t most_cached) : queue_(queue), most_cached_(most_cached) {}

void* MemoryPool::take(std::size_t bytes, sycl::usm::alloc kind) {
  const std::size_t size = size_class(bytes);
  std::lock_guard guard(mutex_);
  if (const auto found = cached_.find({kind, size}); found != cached_.end()) {
    void* pointer = found->second;
    taken_.emplace(pointer, Block{size, kind});
    cached_bytes_ -= size;
    cached_.erase(found);
    return pointer;
  }
  const auto allocate = [&]() -> void* {
    try {
      return sycl::aligned_alloc(vector_alignment, size, queue_.get_device(), queue_.get_context(), kind);
    } catch (const sycl::exception&) {
      return nullptr;
    }
  };
  void* pointer = allocate();
  if (!pointer) {
    release_cached_locked();
    pointer = allocate();
  }
  if (!pointer)
    throw OutOfMemoryError("out of memory: " + std::to_string(bytes) + " bytes for operands could not be allocated on the device. Use smaller blocks, or free arrays that live there.");
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

void* Scratch::require(std::size_t bytes, std::size_t counter_bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > bytes_) {
    queue_.wait();  // kernels in flight may use the old one
    reset();
    const std::size_t size = (bytes + huge_page - 1) / huge_page * huge_page;
    if (host_memory_) {
      data_ = std::aligned_alloc(huge_page, size);
#if defined(__linux__)
      if (data_) madvise(data_, size, MADV_HUGEPAGE);  // packed panels are walked in order: fewer page walks
#endif
    } else {
      data_ = sycl::aligned_alloc_device(vector_alignment, size, queue_);
    }
    if (!data_) throw OutOfMemoryError("out of memory: " + std::to_string(size) + " bytes of scratch could not be allocated.");
    bytes_ = size;
  }
  if (counter_bytes > clean_) queue_.memset(static_cast<char*>(data_) + clean_, 0, counter_bytes - clean_);
  clean_ = counter_bytes;  // what follows the counters is written by the kernel
  return data_;
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

bool host_reachable(const Context::State& context, const void* pointer) {
  if (context.info.is_cpu()) return true;  // all of that device's memory is the host's
  return sycl::get_pointer_type(pointer, context.queue.get_context()) != sycl::usm::alloc::device;
}

namespace {

/// Whether kernels may follow this pointer. System USM: any; otherwise what was allocated in this context.
bool device_reachable(const Context::State& context, const void* pointer) {
  return context.info.usm_system || sycl::get_pointer_type(pointer, context.queue.get_context()) != sycl::usm::alloc::unknown;
}

}  // namespace

Staging::Staging(Context::State& context, const Operands& o, Where where) : context_(context), where_(where) {
  staged_.a = bring_in(o.a, "A", true, false);
  staged_.b = bring_in(o.b, "B", true, false);
  // A result that shares memory with an operand would be read after it was written. The same C in place is fine: each element is read
  // before it is written, by the same work-item.
  const bool in_place = o.c && o.c->data == o.d.data && o.c->row_stride == o.d.row_stride && o.c->col_stride == o.d.col_stride;
  const bool overlaps = may_overlap(o.d, o.a) || may_overlap(o.d, o.b) || (o.c && !in_place && may_overlap(o.d, *o.c));
  staged_.d = bring_in(o.d, overlaps ? "the result (it overlaps an operand)" : "the result", false, overlaps);
  if (o.c) {
    // C must lie as D does, rows or columns contiguous in both.
    const bool c_rows = o.c->col_stride == 1 || o.c->cols <= 1, d_rows = staged_.d.col_stride == 1 || staged_.d.cols <= 1;
    const bool c_columns = o.c->row_stride == 1 || o.c->rows <= 1;
    const bool fits = d_rows ? c_rows : c_columns;
    if (fits || d_rows) {
      staged_.c = bring_in(*o.c, "C", true, !fits);
    } else {
      staged_.c = bring_in(o.c->transposed(), "C", true, true).transposed();
    }
  }
  if (o.bias) staged_.bias = bring_in(*o.bias, "the bias", true, false);
  if (description_.empty()) description_ = where == Where::host ? "host path, nothing is copied" : "zero copy";
}

MatrixView Staging::bring_in(const MatrixView& v, const char* name, bool fill, bool force) {
  const bool reachable = where_ == Where::host || device_reachable(context_, v.data);
  if (!force && reachable && has_normal_form(v)) return v;
  const auto bytes = static_cast<std::size_t>(dense_bytes(v));
  if (!description_.empty()) description_ += "; ";
  description_ += std::string(name) + " is copied (" +
                  (force ? "its memory or its order does not fit" : !reachable ? "the device does not read ordinary memory" : "no axis has stride 1, or it is unaligned") +
                  ", " + std::to_string(bytes) + " bytes)";
  if (!host_reachable(context_, v.data))
    throw UnsupportedError(std::string(name) + " lies in device memory with strides that no kernel reads: make a contiguous copy of it first.");

  // Memory that both sides reach is filled in place; a device with memory of its own gets a copy of a host buffer.
  const bool shared = context_.info.unified_memory && context_.info.usm_host;
  void* memory = context_.pool.take(bytes, shared || where_ == Where::host ? sycl::usm::alloc::host : sycl::usm::alloc::device);
  pooled_.push_back(memory);
  const MatrixView dense = dense_like(v, memory);
  const bool direct = shared || where_ == Where::host;
  if (!fill) {
    result_ = v;
    if (!direct && !is_dense(v)) pooled_.push_back(bounce_ = context_.pool.take(bytes, sycl::usm::alloc::host));
    return dense;
  }
  if (direct) {
    copy_strided(dense, v);
  } else if (is_dense(v)) {
    context_.queue.memcpy(memory, v.data, bytes);
  } else {
    void* buffer = context_.pool.take(bytes, sycl::usm::alloc::host);
    pooled_.push_back(buffer);
    copy_strided(dense_like(v, buffer), v);
    context_.queue.memcpy(memory, buffer, bytes);
  }
  return dense;
}

void Staging::queue_copy_back() {
  if (!result_ || where_ == Where::host || (context_.info.unified_memory && context_.info.usm_host)) return;
  void* to = bounce_ ? bounce_ : result_->data;
  context_.queue.memcpy(to, staged_.d.data, static_cast<std::size_t>(dense_bytes(staged_.d)));
}

void Staging::finish() {
  if (!result_) return;
  const bool direct = where_ == Where::host || (context_.info.unified_memory && context_.info.usm_host);
  if (direct) copy_strided(*result_, staged_.d);
  if (bounce_) copy_strided(*result_, dense_like(*result_, bounce_));
}

Staging::~Staging() {
  for (void* pointer : pooled_) context_.pool.give_back(pointer);
}

}  // namespace sycl_mat
