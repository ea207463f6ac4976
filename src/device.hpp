// SYCL devices → DeviceInfo; selector strings → devices.
#pragma once

#include <vector>

#include "sycl.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// Everything DeviceInfo holds, asked of the runtime once. `selector` is left to the caller, who knows the numbering.
DeviceInfo describe(const sycl::device& device);

/// The identity under which constants of this model of device are stored and looked up. The only function that makes it.
std::string make_fingerprint(const DeviceInfo& info);

/// The device that a selector string names. Throws DeviceError.
sycl::device select_device(std::string_view selector);

/// The OpenCL CPU driver's device, GPU, … of a SYCL backend as users write it ("opencl", "level_zero", "cuda", "hip").
std::string backend_name(const sycl::device& device);

}  // namespace sycl_mat
