// Memory of devices as the base of NumPy arrays: views of it know their owner, and products find the memory by its pointer.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "numpy_api.hpp"
#include "sycl_mat/array.hpp"

namespace sycl_mat::python {

/// What keeps the memory of an array: an allocation of ours, or somebody else's and how to give it back.
class Memory {
 public:
  explicit Memory(DeviceMemory owned) : owned_(std::move(owned)) {}
  /// `context`, where given, has work under way that may use the memory: it is given back after that, without the GIL.
  Memory(Context* context, std::function<void()> give_back) : context_(context), give_back_(std::move(give_back)) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// From now on, work of this context may use it.
  void adopt(Context& context) { context_ = &context; }
  /// Somebody else can see it now, who does not know of our queue: products that use it are waited for.
  void shown() { private_ = false; }
  /// Whether only Arrays know it, so that nobody can look before a product is done.
  bool is_private() const { return owned_ && private_; }

 private:
  std::optional<DeviceMemory> owned_;
  Context* context_ = nullptr;
  std::function<void()> give_back_;
  bool private_ = true;
};

/// The owner of an array that is, or is a view of, an array of this library; nullptr for others.
Memory* memory_of(nanobind::handle array);

/// An array over memory that `owner` keeps. Strides in bytes; nullptr: C order.
nanobind::object array_over(void* data, nanobind::object dtype, const std::vector<npy_intp>& shape, const npy_intp* strides, bool writeable,
                            std::unique_ptr<Memory> owner);

/// Anything that NumPy takes as a dtype.
nanobind::object dtype_from(nanobind::handle value);

}  // namespace sycl_mat::python
