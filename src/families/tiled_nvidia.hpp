// Which constants `tiled` runs with on an NVIDIA GPU.
#pragma once

#include "../params_tile.hpp"
#include "../problem.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// The defaults for a device with no record: what an estimate of the time, fitted to an H200 (sm_90), finds to be fastest.
TiledChoice tiled_on_nvidia(const Problem& p, const DeviceInfo& device);

}  // namespace sycl_mat
