#include "staging.hpp"

#include "strided_copy.hpp"

namespace sycl_mat {
namespace {

/// Whether kernels may follow this pointer. System USM: any; otherwise what was allocated in this context.
bool device_reachable(const Context::State& context, const void* pointer) {
  return context.info.usm_system || sycl::get_pointer_type(pointer, context.queue.get_context()) != sycl::usm::alloc::unknown;
}

/// The view with each matrix that a stack repeats (stride 0) once.
MatrixView without_repeats(MatrixView v) {
  for (Axis& axis : v.batch)
    if (axis.stride == 0) axis.extent = 1;
  return v;
}

/// The opposite: `v` walked as often as `like` is.
MatrixView with_repeats_of(MatrixView v, const MatrixView& like) {
  for (std::size_t i = 0; i < v.batch.size(); ++i)
    if (like.batch[i].stride == 0) v.batch[i] = {like.batch[i].extent, 0};
  return v;
}

bool rows_contiguous(const MatrixView& v) { return v.col_stride == 1 || v.cols <= 1; }
bool columns_contiguous(const MatrixView& v) { return v.row_stride == 1 || v.rows <= 1; }

}  // namespace

void* Borrowed::take(std::size_t bytes, sycl::usm::alloc kind) {
  pointers_.reserve(pointers_.size() + 1);  // so that nothing can fail once the memory is ours
  void* memory = pool_.take(bytes, kind);
  pointers_.push_back(memory);
  return memory;
}

bool host_reachable(const Context::State& context, const void* pointer) {
  if (context.info.is_cpu()) return true;  // all of that device's memory is the host's
  return sycl::get_pointer_type(pointer, context.queue.get_context()) != sycl::usm::alloc::device;
}

Staging::Staging(Context::State& context, const Operands& o, Where where)
    : context_(context),
      where_(where),
      direct_(where == Where::host || (context.info.unified_memory && context.info.usm_host)),
      memory_(context.pool) {
  staged_.a = bring_in(o.a, "A", nullptr);
  staged_.b = bring_in(o.b, "B", nullptr);
  // A result that shares memory with an operand would be read after it was written. The same C in place is fine: each element is read
  // before it is written, by the same work-item.
  const bool in_place = o.c && same_places(*o.c, o.d);
  const bool overlaps = may_overlap(o.d, o.a) || may_overlap(o.d, o.b) || (o.c && !in_place && may_overlap(o.d, *o.c));
  staged_.d = bring_result(o.d, overlaps);
  if (o.c) {  // C must lie as D does: rows contiguous in both, or columns
    const bool by_rows = rows_contiguous(staged_.d);
    const char* forced = (by_rows ? rows_contiguous(*o.c) : columns_contiguous(*o.c)) ? nullptr : "its order is not the result's";
    staged_.c = by_rows ? bring_in(*o.c, "C", forced) : bring_in(o.c->transposed(), "C", forced).transposed();
  }
  if (o.bias) staged_.bias = bring_in(*o.bias, "the bias", nullptr);
}

bool Staging::usable(const MatrixView& v) const {
  return has_normal_form(v) && (where_ == Where::host || device_reachable(context_, v.data));
}

MatrixView Staging::dense_copy_of(const MatrixView& v, const char* name, const char* why) {
  const auto bytes = static_cast<std::size_t>(dense_bytes(v));
  if (!why) why = has_normal_form(v) ? "the device does not read ordinary memory" : "no axis has stride 1, or it is unaligned";
  copies_ += std::string(copies_.empty() ? "" : "; ") + name + " is copied (" + why + ", " + std::to_string(bytes) + " bytes)";
  const bool by_host = direct_ && host_reachable(context_, v.data);
  return dense_like(v, memory_.take(bytes, by_host ? sycl::usm::alloc::host : sycl::usm::alloc::device));
}

MatrixView Staging::bring_in(const MatrixView& v, const char* name, const char* forced) {
  if (is_empty(v) || (!forced && usable(v))) return v;
  const MatrixView once = without_repeats(v);
  const MatrixView dense = dense_copy_of(once, name, forced);
  const auto bytes = static_cast<std::size_t>(dense_bytes(once));
  const bool far = !host_reachable(context_, once.data);
  const bool by_queue = far || (!direct_ && is_dense(once));
  if (!by_queue && context_.pending) context_.wait();  // the operand may be the result of a product still under way
  if (far) {
    copy(context_, dense, once);
  } else if (direct_) {
    copy_strided(dense, once);
  } else if (is_dense(once)) {
    context_.queue.memcpy(dense.data, once.data, bytes);
  } else {
    const MatrixView buffer = dense_like(once, memory_.take(bytes, sycl::usm::alloc::host));
    copy_strided(buffer, once);
    context_.queue.memcpy(dense.data, buffer.data, bytes);
  }
  return with_repeats_of(dense, v);
}

MatrixView Staging::bring_result(const MatrixView& v, bool overlaps) {
  if (!overlaps && usable(v)) return v;
  const MatrixView dense = dense_copy_of(v, "the result", overlaps ? "it overlaps an operand" : nullptr);
  result_ = v;
  far_result_ = !host_reachable(context_, v.data);
  if (!far_result_ && !direct_ && !is_dense(v)) bounce_ = memory_.take(static_cast<std::size_t>(dense_bytes(v)), sycl::usm::alloc::host);
  return dense;
}

void Staging::queue_copy_back() {
  if (!result_ || direct_ || far_result_) return;
  context_.queue.memcpy(bounce_ ? bounce_ : result_->data, staged_.d.data, static_cast<std::size_t>(dense_bytes(staged_.d)));
}

void Staging::finish() {
  if (!result_) return;
  if (far_result_) return copy(context_, *result_, staged_.d);
  if (direct_) copy_strided(*result_, staged_.d);
  if (bounce_) copy_strided(*result_, dense_like(*result_, bounce_));
}

std::string Staging::description() const {
  if (!copies_.empty()) return copies_;
  return where_ == Where::host ? "host path, nothing is copied" : "zero copy";
}

}  // namespace sycl_mat
