// A few sets of constants, each with what a multiprocessor reaches with it, and an estimate in microseconds of what a product takes with
// it: how many blocks the busiest multiprocessor gets, how well so many hide their latency, and what sums of parts cost on their way
// through memory. docs/nvidia.md has the measurements that the numbers come from.
#include "tiled_nvidia.hpp"

#include <algorithm>
#include <cmath>

#include "../params_tile.hpp"

namespace sycl_mat {
namespace {

struct Candidate {
  TileParams params;
  int swizzle;
  double rate;                       // TFLOP/s of 132 multiprocessors, each full; 0: only where blocks are shared out
  double unaligned;                  // the part of it that is left where lines do not begin at multiples of 16 bytes
  int room;                          // groups that a multiprocessor holds at a time
  double share;                      // the rate where blocks are shared out, 0: its kernel has not the registers for that
  double layouts[4] = {1, 1, 1, 1};  // what is left of it: nn, nt, tn, tt
};

// 16-byte chunks, which is what PTX loads at most. 256×128 results need a multiprocessor for themselves. A warp of 256×128 reads 6
// different pieces of 128 bytes from local memory for a k, one of 128×256 reads 12; it runs best with the code for shares, shared out or
// not.
constexpr Candidate candidates[] = {
    {{32, 8, 16, 8, 16, 4}, 4, 0, 0.86, 1, 54.6, {1, 0.985, 1.035, 1.006}},    // 256×128
    {{32, 8, 16, 8, 16, 4}, 4, 53.7, 0.86, 1, 0, {1, 0.9, 0.945, 1}},          // 256×128
    {{8, 32, 16, 16, 8, 4}, 4, 49.5, 0.84, 1, 52.2, {1, 0.935, 0.965, 1.04}},  // 128×256
    {{8, 16, 16, 16, 8, 4}, 4, 53.2, 0.91, 2, 0, {1, 0.985, 1.025, 1.005}},    // 128×128
    {{8, 8, 16, 8, 8, 4}, 0, 46.5, 0.92, 4, 46.5},                             // 64×64 of 8×8
    {{8, 16, 16, 8, 4, 4}, 0, 40, 0.92, 4, 39},                                // 64×64 of 8×4
    {{8, 16, 32, 8, 4, 4}, 0, 41.5, 0.9, 4, 0, {0.93, 0.93, 1, 0.93}},         // 64×64 of 8×4, deeper
    {{16, 16, 16, 4, 4, 4}, 0, 29, 0.95, 4, 0},                                // 64×64 of 4×4
    {{16, 8, 16, 8, 4, 4}, 0, 36, 0.92, 4, 0},                                 // 128×32
    {{8, 16, 16, 4, 8, 4}, 0, 36, 0.92, 4, 0},                                 // 32×128
    {{8, 8, 16, 4, 4, 4}, 0, 25, 0.95, 12, 0},                                 // 32×32
    {{32, 4, 16, 4, 2, 4}, 0, 13, 0.95, 6, 0},                                 // 128×8
    {{4, 32, 16, 2, 4, 4}, 0, 16, 0.95, 6, 0},                                 // 8×128
};
constexpr int splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr int most_splits = 256;

constexpr double launch = 4.5;         // microseconds that every product takes
constexpr double bytes_a_us = 4e6;     // sums through the second cache
constexpr double memory_a_us = 3.6e6;  // A, B and D through memory, if they are larger than the cache
constexpr double cache = 40e6;
constexpr double step_of_adding = 0.35;  // whoever adds up the parts waits so long for each, and longer for large ones

/// How well `groups` groups on a multiprocessor use it, 1: as well as a full one.
double filled(const TileParams& t, double groups) {
  const double warps = groups * t.tile_m * t.tile_n / 32;
  const int sums = t.batch_m * t.batch_n;
  if (sums >= 128) return std::pow(std::min(1.0, warps / 8), 0.65);
  const double enough = sums >= 64 ? 8 : sums >= 32 ? 9 : 24;
  const double empty = std::max(0.0, 1 - warps / enough);
  return std::min(warps / 4, 1 - std::pow(empty, 3.6));
}

/// Reading ahead across the barrier takes registers: not where many groups on a multiprocessor hide the waiting as well.
int reads_ahead(const TileParams& t, double groups, int share) {
  const int sums = t.batch_m * t.batch_n;
  return sums >= 128 || (share == 0 && (sums >= 64 || (sums >= 32 && groups <= 3))) ? 2 : 1;
}

/// Microseconds of the last to arrive, who adds up `count` parts, in two steps if there are many.
double adding(const TileParams& t, double count) {
  if (count <= 1) return 0;
  const double steps = count <= 8 ? count : 2 * std::sqrt(count), sums = t.batch_m * t.batch_n;
  return (count <= 8 ? 1.5 : 3) + steps * step_of_adding * std::max(1.0, sums / 32);
}

struct Estimate {
  double blocks, block_flops, part_bytes, efficiency;
  /// Microseconds that a full multiprocessor takes for a block.
  double block_us(double rate) const { return block_flops / (rate * efficiency * 1e6 / 132); }
};

double split_us(const Candidate& c, const Estimate& e, double processors, int split) {
  const double groups = e.blocks * split, busiest = std::ceil(groups / processors), rest = std::fmod(busiest, c.room);
  const double rounds = (busiest - rest) + (rest > 0 ? rest / filled(c.params, rest) : 0);
  const double sums = split > 1 ? 2 * groups * e.part_bytes / bytes_a_us + adding(c.params, split) : 0;
  const double apart = split > 1 && rounds > 8 * c.room ? 1.02 : 1;  // what parts read again, where there are many rounds of them
  return rounds * e.block_us(c.rate) / split * apart + sums;
}

double share_us(const Candidate& c, const Estimate& e, double processors) {
  const double groups = c.room * processors, shared = std::fmod(e.blocks, groups), parts = groups + shared;
  if (shared == 0) return e.blocks / processors * e.block_us(c.share);
  // Two parts a group, so twice the way to the counters.
  const double sums = 2 * parts * e.part_bytes / bytes_a_us + adding(c.params, groups / shared + 1) + 2.5;
  // Where whole blocks follow, those of other groups run meanwhile.
  return e.blocks / processors * e.block_us(c.share) + (e.blocks > groups ? 0.5 : 1) * sums;
}

TiledChoice on_float64(const Problem& p, const DeviceInfo& device, int chunk) {
  TiledChoice choice{{8, 16, 8, 8, 8, chunk}, {}};
  choice.options.split_k = split_for(p, choice.params, 2 * device.compute_units);
  return choice;
}

}  // namespace

TiledEstimate tiled_on_nvidia(const Problem& p, const DeviceInfo& device) {
  const int chunk = int(16 / size_of(p.dtype));
  if (p.dtype == DType::float64) return {on_float64(p, device, chunk), 0};
  const double processors = std::max<double>(1, double(device.compute_units));
  const bool aligned = p.a.ld % chunk == 0 && p.b.ld % chunk == 0;
  const double matrices = double(p.batch()) * (double(p.m) * double(p.k) * double(size_of(p.dtype)) +
                                               double(p.k) * double(p.n) * double(size_of(p.dtype)) + 4 * double(p.m) * double(p.n));
  const double least = matrices > cache ? matrices / memory_a_us : 0;
  TiledEstimate best{{}, 1e300};
  for (const Candidate& c : candidates) {
    TileParams t = c.params;
    t.chunk = chunk;
    if (p.k <= 8 && chunk <= 8) t.tile_k = 8;
    if (t.tile_n * t.batch_n % chunk != 0) continue;
    const double block_m = t.tile_m * t.batch_m, block_n = t.tile_n * t.batch_n;
    const double depth = std::ceil(double(p.k) / t.tile_k) * t.tile_k;
    Estimate e;
    e.blocks = double(blocks_of(p, t));
    e.block_flops = 2 * block_m * block_n * depth;
    e.efficiency = (aligned ? 1 : c.unaligned) * c.layouts[2 * p.a.transposed + p.b.transposed];
    e.part_bytes = block_m * block_n * 4;
    const auto consider = [&](double us, int split, int share) {
      us += launch + least;
      if (us >= best.microseconds) return;
      const int ahead = reads_ahead(t, e.blocks * split / processors, share);
      const TiledChoice choice{t, {.ahead = ahead, .split_k = split, .swizzle = c.swizzle, .share = share}};
      if (broken_constraint(t, choice.options, device, p.dtype).empty()) best = {choice, us};
    };
    const int tiles = int(std::min(1e9, depth / t.tile_k));
    const auto consider_split = [&](int wanted) {
      const int each = (tiles + wanted - 1) / wanted, split = each > 0 ? (tiles + each - 1) / each : 1;  // none is empty
      if (split == 1 || double(p.k) / split >= 2 * t.tile_k) consider(split_us(c, e, processors, split), split, 0);
    };
    if (c.rate > 0) {
      for (const int split : splits) consider_split(split);
      // And as many as fill one, two, … groups a multiprocessor.
      for (int each = 1; each <= c.room; ++each) consider_split(std::clamp(int(each * processors / e.blocks), 1, most_splits));
    }
    const int share = c.room * int(processors);
    const double shared = std::fmod(e.blocks, share);
    if (c.share > 0 && (shared == 0 || shared * depth / t.tile_k >= 4 * share)) consider(share_us(c, e, processors), 1, share);
  }
  return best;
}

}  // namespace sycl_mat
