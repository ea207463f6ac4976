// The only place where a kernel and its constants are chosen.
#pragma once

#include "kernel.hpp"

namespace sycl_mat {

/// Order: what the caller forces → tuning database (user's, then shipped) → defaults from device properties.
Plan make_plan(const Problem& p, const DeviceInfo& device, const GemmOptions& options);

}  // namespace sycl_mat
