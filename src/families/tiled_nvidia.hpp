// Which constants `tiled` runs with on an NVIDIA GPU, and what the choice of constants asks of tiled.cpp.
#pragma once

#include "../params_tile.hpp"
#include "../problem.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// Blocks of D, all of the stack's.
index_t blocks_of(const Problem& p, const TileParams& t);

/// Groups that share a block along K where there are too few blocks to keep `wanted` groups busy: a power of two, each with at least
/// 256 of K, since the partial sums have to be written and read again.
int split_for(const Problem& p, const TileParams& t, index_t wanted);

/// Constants, and what the product is estimated to take with them; 0 where nothing is known.
struct TiledEstimate {
  TiledChoice choice;
  double microseconds = 0;
};

/// The defaults for a device with no record: what an estimate of the time, fitted to an H200 (sm_90), finds to be fastest.
TiledEstimate tiled_on_nvidia(const Problem& p, const DeviceInfo& device);

}  // namespace sycl_mat
