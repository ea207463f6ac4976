// float32 products on Hopper's tensor units: which tile, and how the tiles are shared out among the multiprocessors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../ptx_target.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

constexpr index_t tile_k = 32, counters_of_a_tile = 32;  // as in the kernel
constexpr std::size_t work_items = 512;
/// Below so many terms, what splitting loses can be more than what float32 sums lose: measured on numbers of widely different size, see
/// docs/nvidia.md.
constexpr index_t shortest_sum = 256;

/// A size of tile with what goes with it in the kernel, and what it takes on an H200 (fitted to what was measured there, in microseconds):
/// a stage, the beginning and end of a tile, and a part of a shared tile that the last block reads.
struct Tile {
  int rows, cols;
  int stages, producer_registers, consumer_registers;
  double stage, tile, part;
};
constexpr Tile tiles[] = {
    {128, 256, 3, 56, 200, 2.10, 2.0, 2.0}, {128, 128, 4, 48, 208, 1.04, 1.5, 1.0}, {64, 128, 7, 88, 168, 0.66, 1.5, 0.4}};

/// One way of sharing out a product; see kernels/tf32x3.cpp.
struct Schedule {
  Tile tile;
  bool swapped = false;  // Dᵀ = Bᵀ·Aᵀ
  index_t tiles = 0, stages = 0;
  index_t blocks = 1;
  index_t shared_tiles = 0;
  double microseconds = std::numeric_limits<double>::infinity();
};

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

Schedule whole_tiles(const Problem& p, const Tile& tile, bool swapped) {
  Schedule s;
  s.tile = tile;
  s.swapped = swapped;
  s.tiles = ceil_div(swapped ? p.n : p.m, tile.rows) * ceil_div(swapped ? p.m : p.n, tile.cols) * p.batch();
  s.stages = ceil_div(p.k, tile_k);
  return s;
}

/// Parts that are added up one after the other: of more than 8, sums of neighbours are.
double steps_of(double parts) { return parts <= 8 ? parts : 2 * std::ceil(std::sqrt(parts)) + 4; }

double model(const Schedule& s) {
  const double rounds = double(ceil_div(s.tiles - s.shared_tiles, s.blocks));
  double time = rounds * (double(s.stages) * s.tile.stage + s.tile.tile);
  if (s.shared_tiles > 0) {
    const index_t units = s.shared_tiles * s.stages;
    const bool even = s.blocks % s.shared_tiles == 0 && units % s.blocks == 0;  // each block then has a part of one tile only
    const double parts = steps_of(double(ceil_div(s.blocks, s.shared_tiles)) + (even ? 0 : 1));
    time += double(ceil_div(units, s.blocks)) * s.tile.stage + s.tile.tile + (even ? 2.5 : 4.5) + parts * s.tile.part;
  }
  return time;
}

void consider(Schedule& best, Schedule s) {
  s.microseconds = model(s);
  if (s.microseconds < best.microseconds) best = s;
}

/// The best way with tiles of one size.
void consider_tile(Schedule& best, const Problem& p, const Tile& tile, bool swapped, index_t processors) {
  Schedule s = whole_tiles(p, tile, swapped);
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
  }
}

Schedule choose(const Problem& p, const DeviceInfo& device) {
  Schedule best;
  for (const bool swapped : {false, true}) {
    // How the kernel then finds A and B: stored along m, A takes longer.
    const bool trans_a = swapped ? !p.b.transposed : p.a.transposed, trans_b = swapped ? !p.a.transposed : p.b.transposed;
    for (Tile tile : tiles) {
      if (tile.cols == 256 && trans_b) continue;  // its registers would spill
      if (tile.cols == 128 && trans_a) tile.stage *= 1.1;
      consider_tile(best, p, tile, swapped, device.compute_units);
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
  if (whole_tiles(p, tiles[2], false).tiles > 0x3fffffff || ceil_div(p.k, tile_k) > 0x3fffffff) return "the product has too many tiles";
  return why_no_sm90a();
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  const Schedule s = choose(p, device);
  const Tile& t = s.tile;
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  for (auto& [name, value] : plan.constants) {
    if (s.swapped && name == "TRANS_A") value = !p.b.transposed;
    if (s.swapped && name == "TRANS_B") value = !p.a.transposed;
  }
  plan.constants.insert(plan.constants.end(), {{"TILE_ROWS", t.rows},
                                               {"TILE_COLS", t.cols},
                                               {"SWAPPED", s.swapped},
                                               {"STAGES", t.stages},
                                               {"PRODUCER_REGISTERS", t.producer_registers},
                                               {"CONSUMER_REGISTERS", t.consumer_registers}});
  plan.range = {{1, 1, std::size_t(s.blocks) * work_items}, {1, 1, work_items}};
  plan.local_memory = t.stages * (2 * t.rows + t.cols) * tile_k * 4 + 1024;
  plan.split_n = s.shared_tiles;
  if (s.shared_tiles > 0) {
    plan.split_k = s.shared_tiles * s.stages / s.blocks;
    plan.split_m = s.shared_tiles * s.stages % s.blocks;
    plan.counter_bytes = std::size_t(s.shared_tiles * 2 * counters_of_a_tile * 4);
    plan.scratch_stride = index_t(plan.counter_bytes) / 4;
    plan.scratch_bytes = plan.counter_bytes + std::size_t(s.blocks * 2 * t.rows * t.cols * 4);
  }
  plan.reason = std::to_string(s.tiles) + " tiles of " + std::to_string(t.rows) + "×" + std::to_string(t.cols) +
                (s.swapped ? " of Dᵀ" : "") + " for " + std::to_string(s.blocks) + " blocks, " + std::to_string(s.shared_tiles) +
                " of them cut along K";
  return plan;
}

/// Above the general kernel, except for products so narrow that most of a tile would be empty, or so small that they end before the
/// many stages of this kernel are under way.
int preference(const Problem& p, const DeviceInfo&) {
  const double work = double(p.m) * double(p.n) * double(p.k) * double(p.batch());
  return std::min(p.m, p.n) < 24 || std::max(p.m, p.n) < 48 || work < 4e7 ? 5 : 20;
}

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
