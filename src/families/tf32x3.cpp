// float32 products on Hopper's tensor units: which tile, and how the tiles are shared out among the multiprocessors.
#include <algorithm>

#include "../ptx_target.hpp"
#include "families.hpp"
#include "short_sums.hpp"
#include "sycl_mat/device.hpp"
#include "tile_schedule.hpp"

namespace sycl_mat {
namespace {

constexpr int tile_k = 32;  // as in the kernel
constexpr std::size_t work_items = 512;

/// As measured on an H200.
constexpr ScheduledTile tiles[] = {{128, 256, tile_k, 3, 56, 200, 2.10, 2.0, 2.0},
                                   {128, 128, tile_k, 4, 48, 208, 1.00, 1.5, 1.0, 1, 1.2},
                                   {64, 128, tile_k, 7, 88, 168, 0.66, 1.5, 0.4}};

TileSchedule choose(const Problem& p, const DeviceInfo& device) {
  TileSchedule best;
  for (const bool swapped : {false, true}) {
    // How the kernel then finds A and B: stored along m, A takes longer.
    const bool trans_a = swapped ? !p.b.transposed : p.a.transposed, trans_b = swapped ? !p.a.transposed : p.b.transposed;
    for (ScheduledTile tile : tiles) {
      if (tile.cols == 256 && trans_b) continue;  // its registers would spill
      if (tile.cols == 128 && trans_a) tile.stage *= 1.04;
      consider_tile(best, p, tile, swapped, device.compute_units);
    }
  }
  return best;
}

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (compute_capability(device) != 90) return "it needs an NVIDIA device of compute capability 9.0";
  if (p.dtype != DType::float32) return "it multiplies float32 only";
  if (p.precision == Precision::ieee) return "precision \"ieee\" asks for multiply-adds in float32";
  if (const std::string why = why_short_sums(p); !why.empty()) return why;
  if (const std::string why = why_too_deep(p); !why.empty()) return why;
  if (whole_tiles(p, tiles[2], false).tiles > 0x3fffffff) return "the product has too many tiles";
  return why_no_sm90a();
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  const TileSchedule s = choose(p, device);
  const ScheduledTile& t = s.tile;
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  for (auto& [name, value] : plan.constants) {
    if (s.swapped && name == "TRANS_A") value = !p.b.transposed;
    if (s.swapped && name == "TRANS_B") value = !p.a.transposed;
  }
  plan.constants.emplace_back("SWAPPED", s.swapped);
  plan.constants.emplace_back("PAIRS", s.pairs);
  set_schedule(plan, s, work_items);
  plan.local_memory = t.stages * (2 * t.rows + t.cols) * tile_k * 4 + 1024 + (s.pairs ? t.rows / 2 * t.cols * 4 : 0);
  return plan;
}

/// Lines that do not begin at multiples of 16 bytes are copied number by number.
double unaligned(const Operand& o) { return o.ld % 4 != 0 ? 1.12 : 1; }

double microseconds(const Problem& p, const DeviceInfo& device) {
  const TileSchedule s = choose(p, device);
  const bool along_m = s.swapped ? !p.b.transposed : p.a.transposed;  // its A: beside what the choice of tiles counts for that
  return s.microseconds * (along_m ? 1.05 : 1) * unaligned(p.a) * unaligned(p.b);
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
       .preference = preference,
       .microseconds = microseconds},
  };
  return kernels;
}

}  // namespace sycl_mat
