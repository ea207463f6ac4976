// float32 products on Hopper's tensor units: which tile, and how the tiles are shared out among the multiprocessors.
#include <algorithm>
#include <limits>

#include "../ptx_target.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

constexpr index_t tile_cols = 128, tile_k = 32;
constexpr std::size_t work_items = 512;
/// Below so many terms, what splitting loses can be more than what float32 sums lose: measured on numbers of widely different size, see
/// docs/nvidia.md.
constexpr index_t shortest_sum = 256;

/// One way of sharing out a product; see kernels/tf32x3.cpp.
struct Schedule {
  int tile_rows = 128;
  index_t tiles = 0, stages = 0;
  index_t blocks = 1;
  index_t shared_tiles = 0;
  double microseconds = std::numeric_limits<double>::infinity();
};

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

Schedule whole_tiles(const Problem& p, int tile_rows) {
  Schedule s;
  s.tile_rows = tile_rows;
  s.tiles = ceil_div(p.m, tile_rows) * ceil_div(p.n, tile_cols) * p.batch();
  s.stages = ceil_div(p.k, tile_k);
  return s;
}

/// What a schedule takes on an H200, in microseconds (fitted to what was measured there): the stages, the beginning and end of a tile,
/// and for shared tiles the parts that a block writes and that the last one reads.
double model(const Schedule& s) {
  const bool large = s.tile_rows == 128;
  const double stage = large ? 1.10 : 0.74, tile = 1.5, part = large ? 1.0 : 0.4;
  const double rounds = double(ceil_div(s.tiles - s.shared_tiles, s.blocks));
  double time = rounds * (double(s.stages) * stage + tile);
  if (s.shared_tiles > 0) {
    const index_t units = s.shared_tiles * s.stages;
    const bool even = s.blocks % s.shared_tiles == 0 && units % s.blocks == 0;  // each block then has a part of one tile only
    const double parts = double(ceil_div(s.blocks, s.shared_tiles)) + (even ? 0 : 1);
    time += double(ceil_div(units, s.blocks)) * stage + tile + (even ? 2.5 : 4.5) + parts * part;
  }
  return time;
}

void consider(Schedule& best, Schedule s) {
  s.microseconds = model(s);
  if (s.microseconds < best.microseconds) best = s;
}

Schedule choose(const Problem& p, const DeviceInfo& device) {
  const index_t processors = device.compute_units;
  Schedule best;
  for (const int tile_rows : {128, 64}) {
    Schedule s = whole_tiles(p, tile_rows);
    s.blocks = std::min(s.tiles, processors);
    consider(best, s);
    // The kernel counts the stages of shared tiles in 32 bits; there are fewer of those than twice the blocks.
    if (s.stages < 2 || s.stages > 0x3fffffff / processors) continue;
    if (s.tiles >= processors) {
      // The last full round and what is left after it are shared: everybody ends at the same time.
      const index_t left = s.tiles % processors;
      if (left == 0) continue;
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
    }
  }
  return best;
}

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (device.backend != "cuda" || device.architecture != "nvidia-sm90") return "it needs an NVIDIA device of compute capability 9.0";
  if (p.dtype != DType::float32) return "it multiplies float32 only";
  if (p.precision == Precision::ieee) return "precision \"ieee\" asks for multiply-adds in float32";
  if (p.precision == Precision::automatic && p.k < shortest_sum)
    return "sums of fewer than " + std::to_string(shortest_sum) +
           " terms can be more accurate by multiply-adds (precision \"tf32\" allows them)";
  if (whole_tiles(p, 64).tiles > 0x3fffffff || ceil_div(p.k, tile_k) > 0x3fffffff) return "the product has too many tiles";
  return why_no_sm90a();
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  const Schedule s = choose(p, device);
  const bool large = s.tile_rows == 128;
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"TILE_ROWS", s.tile_rows},
                                               {"STAGES", large ? 4 : 6},
                                               {"BUFFERS", large ? 1 : 2},
                                               {"PRODUCER_REGISTERS", large ? 56 : 88},
                                               {"CONSUMER_REGISTERS", large ? 200 : 168}});
  plan.range = {{1, 1, std::size_t(s.blocks) * work_items}, {1, 1, work_items}};
  plan.local_memory = (large ? 4 : 6) * (2 * s.tile_rows + tile_cols) * tile_k * 4 + 1024;
  plan.split_n = s.shared_tiles;
  if (s.shared_tiles > 0) {
    plan.split_k = s.shared_tiles * s.stages / s.blocks;
    plan.split_m = s.shared_tiles * s.stages % s.blocks;
    plan.counter_bytes = std::size_t(ceil_div(s.shared_tiles * 2 * 4, 256) * 256);
    plan.scratch_stride = index_t(plan.counter_bytes) / 4;
    plan.scratch_bytes = plan.counter_bytes + std::size_t(s.blocks * 2 * s.tile_rows * tile_cols * 4);
  }
  plan.reason = std::to_string(s.tiles) + " tiles of " + std::to_string(s.tile_rows) + "×128 for " + std::to_string(s.blocks) +
                " blocks, " + std::to_string(s.shared_tiles) + " of them cut along K";
  return plan;
}

/// Above the general kernel, except for products so narrow that most of a tile would be empty.
int preference(const Problem& p, const DeviceInfo&) { return p.n < 48 || p.m < 24 ? 5 : 20; }

}  // namespace

std::span<const Kernel> tf32x3_kernels() {
  static const Kernel kernels[] = {
      {.name = "tf32x3",
       .file = "tf32x3.cpp",
       .summary = "float32 by three TF32 products on Hopper's tensor units, more accurate than float32 sums",
       .params = "none",
       .why_not = why_not,
       .defaults = defaults,
       .plan = plan,
       .preference = preference},
  };
  return kernels;
}

}  // namespace sycl_mat
