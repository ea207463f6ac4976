// The GPU kernel: its defaults, one function a target, and how a product is cut into work-groups.
#include <algorithm>

#include "../params_tile.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"
#include "tiled_nvidia.hpp"

namespace sycl_mat {

index_t blocks_of(const Problem& p, const TileParams& t) {
  const index_t block_m = t.tile_m * t.batch_m, block_n = t.tile_n * t.batch_n;
  return ceil_div(p.m, block_m) * ceil_div(p.n, block_n) * p.batch();
}

int split_for(const Problem& p, const TileParams& t, index_t wanted) {
  int split = 1;
  while (blocks_of(p, t) * split * 2 <= wanted && p.k / (split * 2) >= 256 && split < 32) split *= 2;
  return split;
}

namespace {

/// What SPLIT = 2 deals out: the blocks that would not fill a last round of o.share groups, along k (kernels/tiled_shares.hpp).
struct Shared {
  index_t blocks = 0, tiles = 0, groups = 0;  // of all these blocks together; 0: every block has a group
};
Shared shared_of(const Problem& p, const TiledChoice& c, index_t blocks) {
  Shared s;
  if (c.options.share == 0 || blocks % c.options.share == 0) return s;
  s.blocks = blocks % c.options.share;
  s.tiles = s.blocks * ceil_div(p.k, c.params.tile_k);
  s.groups = std::min<index_t>(c.options.share, s.tiles);
  if (s.groups <= s.blocks || s.tiles > 0x7fffffff) return {};
  return s;
}

// Intel GPUs. Nothing here spills: docs/intel-registers.md has what the compiler makes of each set, docs/kernels.md the model behind
// them. Local memory is what limits them: 64 bytes a clock for 64 multiply-adds. So A's rows are read once a sub-group, whose lanes
// all want the same ones, and then come from registers.

/// Float64 sums take two registers each: 4×4 of them fit if nothing is read ahead.
constexpr TiledChoice intel_float64{{16, 16, 8, 4, 4, 2}, {.ahead = 0}};

TiledChoice intel(const Problem& p, TiledChoice large, int sub_group, index_t wanted_groups) {
  const TiledChoice small{{16, 16, 16, 4, 4, 4}, {.local = 2}};
  TiledChoice choice = p.dtype == DType::float64 ? intel_float64 : blocks_of(p, large.params) < wanted_groups ? small : large;
  choice.options.sub_group = sub_group;
  choice.options.split_k = split_for(p, choice.params, wanted_groups);
  return choice;
}

constexpr TiledChoice intel_8x4{{16, 16, 8, 8, 4, 4}, {.local = 2}}, intel_8x8{{8, 16, 8, 8, 8, 4}, {.local = 2}};

// Gen9 (HD/UHD Graphics 6xx): a subslice of 8 execution units holds 448 work-items of SIMD8, so a group of 256 a subslice.
TiledChoice intel_gen9(const Problem& p, const DeviceInfo& device) { return intel(p, intel_8x4, 8, std::max(device.compute_units / 8, 1)); }

// Iris Xe: 16 execution units and 128 KB of local memory a dual subslice. The conversions of narrow types need registers too.
TiledChoice intel_xe_lp(const Problem& p, const DeviceInfo& device) {
  return intel(p, p.dtype == DType::float32 ? intel_8x8 : intel_8x4, 8, std::max(device.compute_units / 8, 1));
}

// Arc: 16 vector engines a core.
TiledChoice intel_xe_hpg(const Problem& p, const DeviceInfo& device) { return intel_xe_lp(p, device); }

// Data Center GPU Max: 8 vector engines a core, with registers twice as wide. The compiler takes SIMD32 where it may choose, and spills.
TiledChoice intel_xe_hpc(const Problem& p, const DeviceInfo& device) {
  TiledChoice choice = intel(p, intel_8x8, 16, std::max(device.compute_units / 4, 1));
  // Adding up the other groups' sums takes the last registers where a product needs more of them.
  if (choice.options.split_k > 1 && (p.dtype == DType::float64 || p.dtype == DType::int8)) choice.params.batch_n = 2;
  return choice;
}

// Anything else, the processor included (the packed kernel is the one for it): constants that spill nowhere.
TiledChoice generic(const Problem&, const DeviceInfo&) { return {{16, 16, 16, 4, 4, 4}, {}}; }

Params defaults(const Problem& p, const DeviceInfo& device) {
  const std::string& name = device.architecture;
  TiledChoice choice = name == "intel-gen9"            ? intel_gen9(p, device)
                       : name == "intel-xe-lp"         ? intel_xe_lp(p, device)
                       : name == "intel-xe-hpg"        ? intel_xe_hpg(p, device)
                       : name == "intel-xe-hpc"        ? intel_xe_hpc(p, device)
                       : name.starts_with("nvidia-sm") ? tiled_on_nvidia(p, device).choice
                                                       : generic(p, device);
  if (broken_constraint(choice.params, choice.options, device, p.dtype).empty()) return choice;
  return nearest(choice.params, choice.options, device, p.dtype).value_or(choice);
}

/// `share` says how many groups a multiprocessor has room for: registers are to be had for as many.
int resident(const TiledChoice& c, const DeviceInfo& device) {
  return device.architecture.starts_with("nvidia") ? c.options.share / std::max(1, int(device.compute_units)) : 0;
}

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  const auto* forced = std::get_if<TiledChoice>(&params);
  const TiledChoice choice = forced ? *forced : std::get<TiledChoice>(defaults(p, device));
  const auto& [t, o] = choice;
  check(t, o, device, p.dtype);
  const index_t blocks = blocks_of(p, t);
  const Shared s = shared_of(p, choice, blocks);
  const bool shares = s.groups > 0;
  // Where blocks come out even the code for shares runs all the same: it is what such constants were measured with.
  const bool code_for_shares = shares || (o.share > 0 && blocks % o.share == 0);
  const index_t groups = (blocks - s.blocks) * o.split_k + s.groups;
  if (groups > 0x7fffffff / t.tile_n) throw UnsupportedError("the product needs more work-groups than one launch has");

  Plan plan;
  plan.kernel = &kernel;
  plan.params = choice;
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"TILE_M", t.tile_m},
                                               {"TILE_N", t.tile_n},
                                               {"TILE_K", t.tile_k},
                                               {"BATCH_M", t.batch_m},
                                               {"BATCH_N", t.batch_n},
                                               {"CHUNK", t.chunk},
                                               {"A_TRANSPOSED", o.a_transposed},
                                               {"PAD", o.pad},
                                               {"STRIDED", o.strided},
                                               {"ORDER", o.order},
                                               {"AHEAD", o.ahead},
                                               {"LOCAL", o.local},
                                               {"SUB_GROUP", o.sub_group},
                                               {"SWIZZLE", o.swizzle},
                                               {"PADDED_A", p.a.padded},
                                               {"PADDED_B", p.b.padded},
                                               {"SPLIT", code_for_shares ? 2
                                                         : o.split_k > 1 ? 1
                                                                         : 0},
                                               {"RESIDENT", resident(choice, device)}});
  plan.range = {{1, std::size_t(t.tile_m), std::size_t(groups * t.tile_n)}, {1, std::size_t(t.tile_m), std::size_t(t.tile_n)}};
  plan.local_memory = local_memory_bytes(t, o, p.dtype);
  plan.split_k = o.split_k;
  if (code_for_shares) {
    plan.split_n = s.blocks;
    plan.split_k = shares ? s.tiles / s.groups : 1;
    plan.split_m = shares ? s.tiles % s.groups : 0;
  }
  // As gather() in kernels/tiled_shares.hpp has it: counters of blocks and of slots, then a slot's sums.
  if (o.split_k > 1 || shares) {
    const index_t slots = shares ? 2 * s.groups : groups;
    plan.scratch_stride = index_t(t.tile_m) * t.batch_m * t.tile_n * t.batch_n;
    plan.counter_bytes = std::size_t(((shares ? s.blocks : blocks) + slots) * 4 + 255) / 256 * 256;
    plan.scratch_bytes = plan.counter_bytes + std::size_t(slots * plan.scratch_stride * size_of(p.accumulator));
  }
  return plan;
}

double microseconds(const Problem& p, const DeviceInfo& device) {
  return device.architecture.starts_with("nvidia-sm") ? tiled_on_nvidia(p, device).microseconds : 0;
}

/// The general kernel of a GPU; elsewhere the last resort, for the processor has its own.
int preference(const Problem&, const DeviceInfo& device) { return device.is_gpu() ? 10 : 1; }

}  // namespace

std::span<const Kernel> tiled_kernels() {
  static const Kernel kernels[] = {
      {.name = "tiled",
       .file = "tiled.cpp",
       .summary = "rectangular register and local-memory tiles, for GPUs",
       .params = "tile",
       .why_not = unsupported_type,
       .defaults = defaults,
       .plan = plan,
       .preference = preference,
       .microseconds = microseconds},
  };
  return kernels;
}

}  // namespace sycl_mat
