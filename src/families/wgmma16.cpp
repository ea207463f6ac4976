// float16 and bfloat16 products on Hopper's tensor units: which tile, and how the tiles are shared out among the multiprocessors.
#include <algorithm>

#include "../ptx_target.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"
#include "tile_schedule.hpp"

namespace sycl_mat {
namespace {

constexpr int tile_k = 64;  // as in the kernel
constexpr std::size_t work_items = 384;
/// The units cut off what is beyond float32's last bit after every 16 terms, always towards zero: of longer sums so many stages are summed
/// there at a time. See docs/nvidia.md.
constexpr int longest_sum = 128;

/// As measured on an H200. Blocks that walk along K together find more of A and B in the L2 cache.
constexpr double mixed = 1.1;
constexpr double loading = 0.0105;  // a line of a stage, where elements are loaded one by one
constexpr ScheduledTile tiles[] = {
    {128, 256, tile_k, 4, 104, 200, 0.70, 2.5, 2.5, mixed},  {128, 192, tile_k, 5, 104, 200, 0.54, 2.2, 2.0, mixed},
    {128, 128, tile_k, 6, 104, 200, 0.395, 1.5, 1.2, mixed}, {64, 256, tile_k, 5, 104, 200, 0.44, 1.5, 1.2, mixed},
    {64, 128, tile_k, 8, 104, 200, 0.26, 1.2, 0.6, mixed},   {128, 64, tile_k, 8, 104, 200, 0.26, 1.2, 0.6, mixed}};

TileSchedule choose(const Problem& p, const DeviceInfo& device) {
  // Lines so far apart mostly begin at addresses where elements have to be loaded, which takes longer than multiplying them. It is not
  // the addresses that decide, for they shall not change a result's bits.
  const bool loads_a = p.a.ld % 8 != 0, loads_b = p.b.ld % 8 != 0;
  TileSchedule best;
  for (ScheduledTile tile : tiles) {
    tile.stage = std::max(tile.stage, loading * ((loads_a ? tile.rows : 0) + (loads_b ? tile.cols : 0)));
    consider_tile(best, p, tile, false, device.compute_units);
  }
  return best;
}

/// Whether a block sums more than longest_sum stages of one tile.
bool is_long(const TileSchedule& s) {
  const bool all_shared = s.shared_tiles == s.tiles && s.shared_tiles > 0;
  return (all_shared ? std::min(s.stages, s.shared_tiles * s.stages / s.blocks + 1) : s.stages) > longest_sum;
}

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (compute_capability(device) != 90) return "it needs an NVIDIA device of compute capability 9.0";
  if (p.dtype != DType::float16 && p.dtype != DType::bfloat16) return "it multiplies float16 and bfloat16 only";
  if (p.precision == Precision::ieee) return "precision \"ieee\" asks for multiply-adds in float32";
  if (const std::string why = why_too_deep(p); !why.empty()) return why;
  // The kernel counts tiles, and a block's stages of all its tiles, in 31 bits. Narrow products have twice as many tiles of 128×64.
  const TileSchedule most = whole_tiles(p, tiles[4], false);
  const double stages = double(most.tiles) * double(most.stages) / std::max(device.compute_units, 1);
  if (most.tiles > 0x1fffffff || stages > 0x1fffffff) return "the product has too many tiles";
  return why_no_sm90a();
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  const TileSchedule s = choose(p, device);
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  plan.constants.emplace_back("FLUSH", is_long(s) ? longest_sum : 0);
  set_schedule(plan, s, work_items);
  plan.local_memory = s.tile.stages * (s.tile.rows + s.tile.cols) * tile_k * 2 + 1024;
  if (is_long(s)) {
    plan.scratch_bytes += std::size_t(s.blocks * s.tile.rows * s.tile.cols * 4);
    plan.reason += ", sums of " + std::to_string(longest_sum * tile_k) + " terms at a time";
  }
  return plan;
}

double microseconds(const Problem& p, const DeviceInfo& device) {
  const double results = p.d.ld % 8 != 0 ? double(p.m) * double(p.n) * double(p.batch()) : 0;  // that are written one by one
  return choose(p, device).microseconds + results * 0.24e-5;
}

/// Above the general kernel, which is as fast only where half of a stage would be empty.
int preference(const Problem& p, const DeviceInfo&) { return p.k <= tile_k / 2 ? 5 : 20; }

}  // namespace

std::span<const Kernel> wgmma16_kernels() {
  static const Kernel kernels[] = {
      {.name = "wgmma16",
       .file = "wgmma16.cpp",
       .summary = "float16 and bfloat16 on Hopper's tensor units, summed in float32",
       .params = "none",
       .why_not = why_not,
       .defaults = defaults,
       .plan = plan,
       .preference = preference,
       .microseconds = microseconds},
  };
  return kernels;
}

}  // namespace sycl_mat
