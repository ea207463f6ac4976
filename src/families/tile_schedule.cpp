#include "tile_schedule.hpp"

#include <algorithm>
#include <cmath>

#include "families.hpp"

namespace sycl_mat {
namespace {

constexpr index_t counters_of_a_tile = 32;  // as in kernels/shared_parts.hpp

/// Parts that are added up one after the other: of more than 8, sums of neighbours are.
double steps_of(double parts) { return parts <= 8 ? parts : 2 * std::ceil(std::sqrt(parts)) + 4; }

double model(const TileSchedule& s) {
  if (s.pairs) return double(s.stages / 2) * s.tile.stage + s.tile.tile + s.tile.pair;
  const double rounds = double(ceil_div(s.tiles - s.shared_tiles, s.blocks));
  double time = rounds * (double(s.stages) * s.tile.stage + s.tile.tile);
  if (s.shared_tiles > 0) {
    time *= s.tile.mixed;
    const index_t units = s.shared_tiles * s.stages;
    const bool even = s.blocks % s.shared_tiles == 0 && units % s.blocks == 0;  // each block then has a part of one tile only
    const double parts = steps_of(double(ceil_div(s.blocks, s.shared_tiles)) + (even ? 0 : 1));
    time += double(ceil_div(units, s.blocks)) * s.tile.stage + s.tile.tile + (even ? 2.5 : 4.5) + parts * s.tile.part;
  }
  return time;
}

void consider(TileSchedule& best, TileSchedule s) {
  s.microseconds = model(s);
  if (s.microseconds < best.microseconds) best = s;
}

}  // namespace

std::string why_too_deep(const Problem& p) { return p.k > 1 << 30 ? "k is above 2^30: the kernel counts down from there" : ""; }

TileSchedule whole_tiles(const Problem& p, const ScheduledTile& tile, bool swapped) {
  TileSchedule s;
  s.tile = tile;
  s.swapped = swapped;
  s.tiles = ceil_div(swapped ? p.n : p.m, tile.rows) * ceil_div(swapped ? p.m : p.n, tile.cols) * p.batch();
  s.stages = ceil_div(p.k, tile.depth);
  return s;
}

void consider_tile(TileSchedule& best, const Problem& p, const ScheduledTile& tile, bool swapped, index_t processors) {
  TileSchedule s = whole_tiles(p, tile, swapped);
  s.blocks = std::min(s.tiles, processors);
  consider(best, s);
  // The kernel counts the stages of shared tiles in 32 bits; there are fewer of those than twice the blocks.
  if (s.stages < 2 || s.stages > 0x3fffffff / processors) return;
  if (s.tiles >= processors) {
    // The last full round and what is left after it are shared: everybody ends at the same time.
    const index_t left = s.tiles % processors;
    if (left == 0) return;
    s.shared_tiles = std::min(s.tiles, processors + left);
    consider(best, s);
    s.shared_tiles = left;
    consider(best, s);
  } else {
    s.shared_tiles = s.tiles;
    for (index_t parts = 2; parts <= std::min(s.stages, processors); ++parts) {
      s.blocks = std::min({s.tiles * parts, processors, s.tiles * s.stages});
      consider(best, s);
    }
    if (tile.pair > 0 && s.stages % 2 == 0 && 2 * s.tiles <= processors) {
      s.blocks = 2 * s.tiles;
      s.pairs = true;
      consider(best, s);
    }
  }
}

void set_schedule(Plan& plan, const TileSchedule& s, std::size_t work_items) {
  const ScheduledTile& t = s.tile;
  plan.constants.insert(plan.constants.end(), {{"TILE_ROWS", t.rows},
                                               {"TILE_COLS", t.cols},
                                               {"STAGES", t.stages},
                                               {"PRODUCER_REGISTERS", t.producer_registers},
                                               {"CONSUMER_REGISTERS", t.consumer_registers}});
  plan.range = {{1, 1, std::size_t(s.blocks) * work_items}, {1, 1, work_items}};
  plan.split_n = s.shared_tiles;
  if (s.shared_tiles > 0) {
    plan.split_k = s.shared_tiles * s.stages / s.blocks;
    plan.split_m = s.shared_tiles * s.stages % s.blocks;
  }
  if (s.shared_tiles > 0 && !s.pairs) {
    plan.counter_bytes = std::size_t(s.shared_tiles * 2 * counters_of_a_tile * 4);
    plan.scratch_stride = index_t(plan.counter_bytes) / 4;
    plan.scratch_bytes = plan.counter_bytes + std::size_t(s.blocks * 2 * t.rows * t.cols * 4);
  }
  plan.reason = std::to_string(s.tiles) + " tiles of " + std::to_string(t.rows) + "×" + std::to_string(t.cols) +
                (s.swapped ? " of Dᵀ" : "") + " for " + std::to_string(s.blocks) + " blocks" + (s.pairs ? " in pairs, " : ", ") +
                std::to_string(s.shared_tiles) + " of them cut along K";
}

}  // namespace sycl_mat
