// The only place where a kernel and its constants are chosen.
#pragma once

#include "kernel.hpp"

namespace sycl_mat {

/// Whether the product is computed on the calling thread, without a launch: tiny ones, and where the caller says kernel="host".
bool on_host(const Problem& p, const DeviceInfo& device, const GemmOptions& options);

/// Order: what the caller forces → tuning database (user's, then shipped) → defaults from device properties.
/// Throws UnsupportedError, ParamsError.
Plan make_plan(const Problem& p, const DeviceInfo& device, const GemmOptions& options);

/// What would run if the user had tuned nothing: with the shipped records, or without any. For comparisons.
Plan untuned_plan(const Problem& p, const DeviceInfo& device, bool shipped);

}  // namespace sycl_mat
