// Memory that a device owns or shares, for callers that keep matrices there from one product to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sycl_mat/device.hpp"
#include "sycl_mat/types.hpp"

namespace sycl_mat {

/// device: the device's own, which the processor reaches only where the two are one. shared: both reach it, pages move. host: the
/// processor's, which the device reads over the bus, or as its own where it has no other.
enum class MemoryKind : std::uint8_t { device, shared, host };

/// One allocation, taken from the context's pool and given back with this object. May be destroyed while work that uses it is under
/// way: later users of device memory come after that work in the queue, and for memory of the other kinds the destructor waits.
class DeviceMemory {
 public:
  /// Aligned for any vector load; the content is undefined. Throws UnsupportedError where the device has no such memory,
  /// OutOfMemoryError.
  DeviceMemory(Context& context, std::size_t bytes, MemoryKind kind);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  void* data() const { return data_; }
  MemoryKind kind() const { return kind_; }
  Context& context() const { return *context_; }

 private:
  void release() noexcept;
  Context* context_;
  void* data_ = nullptr;
  MemoryKind kind_;
};

/// What a pointer is to the context's device; none: ordinary memory, or another context's.
std::optional<MemoryKind> kind_of(Context& context, const void* pointer);

/// Whether the processor may follow this pointer.
bool host_reachable(Context& context, const void* pointer);

/// dst ← src, element by element, after everything submitted before; each may lie on the host or on the device, with any strides.
/// Returns when a host side is no longer in use; between two device sides it returns at once, and later products come after it.
/// Strided device memory that the processor does not reach goes through a host buffer: correct, not fast.
/// Throws InputError where shape or dtype differ, DeviceError.
void copy(Context& context, const MatrixView& dst, const MatrixView& src);

}  // namespace sycl_mat
