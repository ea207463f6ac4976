#include "sycl_mat/array.hpp"

#include <string>
#include <utility>

#include "context.hpp"
#include "staging.hpp"
#include "strided_copy.hpp"
#include "sycl_mat/errors.hpp"
#include "view.hpp"

namespace sycl_mat {
namespace {

sycl::usm::alloc usm_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return sycl::usm::alloc::device;
    case MemoryKind::shared:
      return sycl::usm::alloc::shared;
    case MemoryKind::host:
      return sycl::usm::alloc::host;
  }
  return sycl::usm::alloc::unknown;
}

bool supports(const DeviceInfo& info, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return info.usm_device;
    case MemoryKind::shared:
      return info.usm_shared;
    case MemoryKind::host:
      return info.usm_host;
  }
  return false;
}

const char* name_of(MemoryKind kind) { return kind == MemoryKind::device ? "device" : kind == MemoryKind::shared ? "shared" : "host"; }

/// Host memory for the way between strided device memory and anything else.
char* buffer(Borrowed& memory, std::int64_t bytes) {
  return static_cast<char*>(memory.take(static_cast<std::size_t>(bytes), sycl::usm::alloc::host));
}

void move_bytes(Context::State& context, void* to, const void* from, std::int64_t bytes) {
  context.queue.memcpy(to, from, static_cast<std::size_t>(bytes));
  context.pending.submitted();
}

/// dense ← src; the queue is empty afterwards.
void gather(Context::State& context, const MatrixView& dense, const MatrixView& src) {
  if (host_reachable(context, src.data)) {
    context.wait();
    return copy_strided(dense, src);
  }
  if (is_dense(src)) {
    move_bytes(context, dense.data, src.data, dense_bytes(src));
    return context.wait();
  }
  const auto [begin, end] = bytes_of(src);
  Borrowed memory(context.pool);
  char* const span = buffer(memory, end - begin);
  move_bytes(context, span, static_cast<const char*>(src.data) + begin, end - begin);
  context.wait();
  MatrixView on_host = src;
  on_host.data = span - begin;
  copy_strided(dense, on_host);
}

/// dst ← dense; needs an empty queue and leaves one.
void scatter(Context::State& context, const MatrixView& dst, const MatrixView& dense) {
  if (host_reachable(context, dst.data)) return copy_strided(dst, dense);
  if (is_dense(dst)) {
    move_bytes(context, dst.data, dense.data, dense_bytes(dst));
    return context.wait();
  }
  const auto [begin, end] = bytes_of(dst);  // what lies between the elements must stay as it is
  Borrowed memory(context.pool);
  char* const span = buffer(memory, end - begin);
  char* on_device = static_cast<char*>(dst.data) + begin;
  move_bytes(context, span, on_device, end - begin);
  context.wait();
  MatrixView on_host = dst;
  on_host.data = span - begin;
  copy_strided(on_host, dense);
  move_bytes(context, on_device, span, end - begin);
  context.wait();
}

void check_same(const MatrixView& dst, const MatrixView& src) {
  bool same = dst.rows == src.rows && dst.cols == src.cols && dst.batch.size() == src.batch.size();
  for (std::size_t i = 0; same && i < dst.batch.size(); ++i) same = dst.batch[i].extent == src.batch[i].extent;
  if (!same) throw SizeError("Size Error: a copy wants two arrays of one shape, not " + shape_text(src) + " and " + shape_text(dst) + ".");
  if (dst.dtype != src.dtype) throw UnsupportedError("a copy converts no element types.");
}

}  // namespace

DeviceMemory::DeviceMemory(Context& context, std::size_t bytes, MemoryKind kind) : context_(&context), kind_(kind) {
  if (!supports(context.device(), kind)) throw UnsupportedError(context.device().name + " has no " + name_of(kind) + " memory.");
  if (const auto most = static_cast<std::size_t>(context.device().global_memory);
      most > 0 && bytes > most)  // where it is virtual, taking more would end the process later
    throw OutOfMemoryError("out of memory: " + std::to_string(bytes) + " bytes are more than " + context.device().name + " has.");
  data_ = context.state().pool.take(bytes, usm_of(kind));
}

DeviceMemory::~DeviceMemory() { release(); }

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : context_(other.context_), data_(std::exchange(other.data_, nullptr)), kind_(other.kind_) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this != &other) {
    release();
    context_ = other.context_;
    kind_ = other.kind_;
    data_ = std::exchange(other.data_, nullptr);
  }
  return *this;
}

void DeviceMemory::release() noexcept {
  if (!data_) return;
  Context::State& context = context_->state();
  // The next user of device memory is a later command of the same in-order queue, or waits for the queue. Memory of the other kinds may
  // be written by the processor at once.
  if (kind_ != MemoryKind::device && context.pending) {
    try {
      context.wait();
    } catch (...) {  // whoever needs the result that failed will hear of it
    }
  }
  context.pool.give_back(data_);
}

std::optional<MemoryKind> kind_of(Context& context, const void* pointer) {
  switch (sycl::get_pointer_type(pointer, context.state().queue.get_context())) {
    case sycl::usm::alloc::device:
      return MemoryKind::device;
    case sycl::usm::alloc::shared:
      return MemoryKind::shared;
    case sycl::usm::alloc::host:
      return MemoryKind::host;
    default:
      return std::nullopt;
  }
}

bool host_reachable(Context& context, const void* pointer) { return host_reachable(context.state(), pointer); }

void copy(Context& context, const MatrixView& dst, const MatrixView& src) { copy(context.state(), dst, src); }

void copy(Context::State& context, const MatrixView& dst, const MatrixView& src) {
  check_same(dst, src);
  if (is_empty(dst)) return;
  try {
    const bool from_host = host_reachable(context, src.data), to_host = host_reachable(context, dst.data), overlap = may_overlap(dst, src);
    if (from_host && to_host && !overlap) {
      context.wait();
      return copy_strided(dst, src);
    }
    const bool by_rows = is_dense(dst) && is_dense(src), by_columns = is_dense(dst.transposed()) && is_dense(src.transposed());
    if ((by_rows || by_columns) && !overlap) {
      move_bytes(context, dst.data, src.data, dense_bytes(dst));
      if (from_host || to_host) context.wait();
      return;
    }
    Borrowed memory(context.pool);
    const MatrixView dense = dense_like(dst, buffer(memory, dense_bytes(dst)));
    gather(context, dense, src);
    scatter(context, dst, dense);
  } catch (const sycl::exception& e) {
    rethrow(e, context.info);
  }
}

}  // namespace sycl_mat
