// Products on the tensor units of NVIDIA devices from compute capability 8.0 on: which tile, and how many blocks share one along K.
#include <algorithm>
#include <limits>

#include "../ptx_target.hpp"
#include "families.hpp"
#include "short_sums.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

constexpr index_t page_depth = 64;  // bytes along K
constexpr int stages = 3;           // pages in local memory

/// What the kernel does differently, in the order of the arrays below.
enum Kind { float32, sixteen_bits, float64 };
Kind kind_of(DType type) { return type == DType::float64 ? float64 : type == DType::float32 ? float32 : sixteen_bits; }

/// A size of tile: how the warps stand, the 16×8 blocks of each, how many tiles a multiprocessor's registers hold at a time; and, fitted to
/// what was measured on an H200, in microseconds, what a stage takes where it has one of them, or each of several.
struct Tile {
  int warps_m, warps_n, mma_m, mma_n, blocks[3];
  double alone[3], each[3];
  int rows() const { return warps_m * mma_m * 16; }
  int cols() const { return warps_n * mma_n * 8; }
  int work_items() const { return warps_m * warps_n * 32; }
};
constexpr Tile tiles[] = {{2, 2, 4, 8, {2, 2, 0}, {1.73, 0.70, 0}, {1.07, 0.405, 0}},  // float64 has not the registers for it
                          {2, 2, 4, 4, {3, 3, 2}, {1.24, 0.38, 0.45}, {0.50, 0.196, 0.29}},
                          {2, 2, 2, 4, {4, 4, 4}, {0.76, 0.23, 0.30}, {0.32, 0.130, 0.15}},
                          {4, 1, 2, 4, {4, 4, 4}, {0.87, 0.30, 0.32}, {0.32, 0.135, 0.16}},
                          {1, 4, 2, 4, {4, 4, 4}, {0.85, 0.27, 0.32}, {0.34, 0.129, 0.16}}};
/// What goes with an area of 128×128: writing it, and adding up a part of it; and what it takes that parts wait for each other.
constexpr double writing[] = {5.4, 3.8, 8}, adding[] = {0.06, 0.30, 0.6}, waiting[] = {1.3, 1.7, 1.7};
constexpr index_t most_parts = 64;

struct Schedule {
  const Tile* tile = nullptr;
  index_t tiles = 0, stages = 0;
  index_t parts = 1, part_stages = 0;  // blocks that share a tile, and their stages
  double microseconds = std::numeric_limits<double>::infinity();
};

index_t tiles_of(const Problem& p, const Tile& t) { return ceil_div(p.m, t.rows()) * ceil_div(p.n, t.cols()) * p.batch(); }

double model(const Schedule& s, Kind type, index_t processors) {
  const Tile& t = *s.tile;
  const index_t on_one = ceil_div(s.tiles * s.parts, processors);  // blocks of the busiest multiprocessor
  const auto stage = [&](index_t together) { return together == 0 ? 0 : std::max(t.alone[type], double(together) * t.each[type]); };
  const double area = double(t.rows() * t.cols()) / 16384;
  const index_t room = t.blocks[type];
  double time = double(s.part_stages) * (double(on_one / room) * stage(room) + stage(on_one % room));
  time += double(on_one) * area * writing[type];
  if (s.parts > 1) time += waiting[type] + adding[type] * area * double(s.parts) * double(std::min(on_one, room));
  return time;
}

Schedule choose(const Problem& p, const DeviceInfo& device) {
  const index_t processors = std::max(device.compute_units, 1);
  const Kind type = kind_of(p.dtype);
  Schedule best;
  for (const Tile& tile : tiles) {
    if (tile.blocks[type] == 0) continue;
    Schedule s;
    s.tile = &tile;
    s.tiles = tiles_of(p, tile);
    s.stages = ceil_div(p.k, page_depth / index_t(size_of(p.dtype)));
    const index_t most =
        std::min<index_t>({most_parts, std::max<index_t>(s.stages / 4, 1), std::max<index_t>(4 * processors / s.tiles, 1)});
    for (index_t parts = 1; parts <= most; ++parts) {
      s.part_stages = ceil_div(s.stages, parts);
      s.parts = std::max<index_t>(s.part_stages == 0 ? 1 : ceil_div(s.stages, s.part_stages), 1);
      s.microseconds = model(s, type, processors);
      if (s.microseconds < best.microseconds) best = s;
    }
  }
  return best;
}

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (compute_capability(device) < 80) return "it needs an NVIDIA device of compute capability 8.0 or newer";
  if (p.dtype != DType::float64 && p.dtype != DType::float32 && p.dtype != DType::float16 && p.dtype != DType::bfloat16)
    return "it multiplies float64, float32, float16 and bfloat16 only";
  if (p.precision == Precision::ieee && p.dtype != DType::float64) return "precision \"ieee\" asks for multiply-adds in float32";
  if (const std::string why = p.dtype == DType::float32 ? why_short_sums(p) : ""; !why.empty()) return why;
  if (tiles_of(p, tiles[2]) > 0x3fffffff || p.k > 0x3fffffff) return "the product has too many tiles";
  return why_no_mma_sync();
}

Params defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }

Plan plan(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  const Schedule s = choose(p, device);
  const Tile& t = *s.tile;
  const Kind type = kind_of(p.dtype);
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"WARPS_M", t.warps_m},
                                               {"WARPS_N", t.warps_n},
                                               {"MMA_M", t.mma_m},
                                               {"MMA_N", t.mma_n},
                                               {"STAGES", stages},
                                               {"BLOCKS", t.blocks[type]},
                                               {"LARGE_FLOAT64", type == float64 && why_no_sm90a().empty()}});
  plan.range = {{1, 1, std::size_t(s.tiles * s.parts * t.work_items())}, {1, 1, std::size_t(t.work_items())}};
  plan.local_memory = std::int64_t(stages) * (t.rows() + t.cols()) * page_depth;
  plan.split_k = s.parts;
  plan.split_n = s.part_stages;
  if (s.parts > 1) {
    plan.counter_bytes = std::size_t(ceil_div(s.tiles * 4, 256) * 256);
    const index_t bytes = size_of(p.accumulator);
    plan.scratch_stride = index_t(plan.counter_bytes) / bytes;
    plan.scratch_bytes = plan.counter_bytes + std::size_t(s.tiles * s.parts * t.rows() * t.cols() * bytes);
  }
  plan.reason = std::to_string(s.tiles) + " tiles of " + std::to_string(t.rows()) + "×" + std::to_string(t.cols());
  if (s.parts > 1) plan.reason += ", each shared by " + std::to_string(s.parts) + " blocks along K";
  if (type == float32) plan.reason += ", three TF32 products";
  return plan;
}

/// How much longer a product takes where an operand's lines do not begin at multiples of 16 bytes, as measured on an H200: pieces of 4 or 8
/// bytes are copied, 16-bit numbers at odd places one by one.
double unaligned(const Problem& p, const Operand& o) {
  const index_t elements = 16 / size_of(p.dtype);
  if (o.ld % elements == 0) return 1;
  constexpr double pieces[] = {1.07, 1.5, 1.09}, single = 1.75;
  return size_of(p.dtype) == 2 && o.ld % 2 != 0 ? single : pieces[kind_of(p.dtype)];
}

double microseconds(const Problem& p, const DeviceInfo& device) {
  return choose(p, device).microseconds * unaligned(p, p.a) * unaligned(p, p.b);
}

/// TF32 products of the tensor units at a rate of more than three times that of float32 multiply-adds, by the data sheets: the large chips.
/// Others (8.6, 8.7, 8.9, 12.x) have once or twice that rate, and multiply-adds are faster.
bool has_fast_tf32(int capability) { return capability == 80 || capability == 90 || capability == 100 || capability == 103; }

/// Float64 on the tensor units at twice the rate of float64 multiply-adds, by the data sheets.
bool has_fast_float64(int capability) { return capability == 80 || capability == 90; }

/// Above the general kernel and below those for Hopper; but for products so narrow that most of a tile would be empty, or so small that
/// they end before the stages are under way.
int preference(const Problem& p, const DeviceInfo& device) {
  const double work = double(p.m) * double(p.n) * double(p.k) * double(p.batch());
  const index_t narrow = std::min(p.m, p.n), broad = std::max(p.m, p.n);
  if (p.dtype == DType::float64) return has_fast_float64(compute_capability(device)) ? 15 : 0;
  if (p.dtype != DType::float32) return narrow < 16 || broad < 32 || p.k <= 32 || work < 1e6 ? 5 : 15;
  if (!has_fast_tf32(compute_capability(device))) return 0;
  return narrow < 24 || broad < 48 || work < 1.5e8 ? 5 : 15;
}

}  // namespace

std::span<const Kernel> mma_sync_kernels() {
  static const Kernel kernels[] = {
      {.name = "mma_sync",
       .file = "mma_sync.cpp",
       .summary =
           "float64, float32 (by three TF32 products), float16 and bfloat16 on NVIDIA's tensor units, compute capability 8.0 and newer",
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
