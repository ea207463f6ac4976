// A copy that leaves the caches alone.
#pragma once

#include <cstddef>

namespace sycl_mat {

/// As memcpy, for megabytes that this core will not read again: a line that is written whole need not be read first, which saves a third of
/// the memory's traffic. What was written is visible to others, a device's copy among them, once this returns.
/// `lines` times, each time so many bytes further on.
void stream_copy(void* dst, std::ptrdiff_t dst_step, const void* src, std::ptrdiff_t src_step, std::size_t bytes, std::size_t lines = 1);

}  // namespace sycl_mat
