// How the kernels that keep one block a multiprocessor (kernels/tile_shares.hpp) share a product out: which tile, and how many tiles are
// cut along K so that all blocks end at the same time. A model in microseconds chooses.
#pragma once

#include <limits>

#include "../kernel.hpp"

namespace sycl_mat {

/// A size of tile with what goes with it in its kernel, and what it takes there (fitted to measurements, in microseconds): a stage, the
/// beginning and end of a tile, and a part of a shared tile that the last block reads.
struct ScheduledTile {
  int rows = 0, cols = 0, depth = 0;  ///< depth: terms of K a stage
  int stages = 0;                     ///< in local memory
  int producer_registers = 0, consumer_registers = 0;
  double stage = 0, tile = 0, part = 0;
  double mixed = 1;  ///< how much longer whole tiles take behind shared ones: blocks then walk along K at different places
  double pair = 0;   ///< what the two blocks of a cluster take to exchange halves of their sums; 0: the kernel knows no clusters
};

/// One way of sharing out a product.
struct TileSchedule {
  ScheduledTile tile;
  bool swapped = false;  ///< Dᵀ = Bᵀ·Aᵀ
  index_t tiles = 0, stages = 0;
  index_t blocks = 1;
  index_t shared_tiles = 0;
  bool pairs = false;  ///< clusters of two blocks share a tile each (kernels/tile_pairs.hpp)
  double microseconds = std::numeric_limits<double>::infinity();
};

/// Why K is too long for the producers, which count what is left of it; empty: it is not.
std::string why_too_deep(const Problem& p);

/// Every block computes whole tiles.
TileSchedule whole_tiles(const Problem& p, const ScheduledTile& tile, bool swapped);
/// `best` becomes the best way with this tile, if that is better.
void consider_tile(TileSchedule& best, const Problem& p, const ScheduledTile& tile, bool swapped, index_t processors);
/// Range, shares, scratch and the tile's constants (TILE_ROWS, TILE_COLS, STAGES, PRODUCER_REGISTERS, CONSUMER_REGISTERS).
void set_schedule(Plan& plan, const TileSchedule& schedule, std::size_t work_items);

}  // namespace sycl_mat
