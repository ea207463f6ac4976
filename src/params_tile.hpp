// The constraints of TileParams and TileOptions, each written once with its reason, and what a set costs: asked by the planner, the
// tuner, explain() and the error messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "problem.hpp"
#include "sycl_mat/params.hpp"

namespace sycl_mat {

/// What a set of constants means for a work-group and a work-item, for accumulators of `size` bytes.
struct TileCosts {
  int work_items = 0;                        ///< of a group
  int block_m = 0, block_n = 0;              ///< results of a group
  int chunks_a = 0, chunks_b = 0;            ///< chunks of one tile of A, of B
  int chunks_each_a = 0, chunks_each_b = 0;  ///< … that one work-item moves
  int idle_a = 0, idle_b = 0;                ///< work-items that move none
  std::int64_t local_memory = 0;             ///< bytes
  int registers = 0;                         ///< estimate: 32-bit registers a work-item needs
};
TileCosts costs(const TileParams& p, const TileOptions& o, DType element = DType::float32);

/// Bytes of local memory for two pages of both tiles.
std::int64_t local_memory_bytes(const TileParams& p, const TileOptions& o, DType element = DType::float32);
/// 32-bit registers of a work-item: sums, fragments, chunks on their way, and addresses.
int registers_estimate(const TileParams& p, const TileOptions& o, DType element = DType::float32);

/// The first constraint that a set breaks, in words ("tile_k = 6 is no multiple of chunk = 4: …"); empty: it holds all.
std::string broken_constraint(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element = DType::float32);

/// The set with the smallest change of constants that holds every constraint; none where the device is too small for any.
std::optional<TiledChoice> nearest(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element = DType::float32);

/// Throws ParamsError that names the broken constraint and the nearest set that holds it.
void check(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element = DType::float32);

}  // namespace sycl_mat
