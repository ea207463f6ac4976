// A guess of the time of a set of constants. It need not be right: it says where the search should begin, and is one of the features
// from which the forest learns. Counts operations and divides by what a processor of the kind can do of each a cycle.
#include <algorithm>
#include <cmath>

#include "params_pack.hpp"
#include "params_tile.hpp"
#include "tune_space.hpp"

namespace sycl_mat {
namespace {

double ceil_div(double a, double b) { return std::ceil(a / b); }

/// Cycles of the busiest core. After "Analytical Modeling Is Enough" (Low et al., 2016) for what must stay in which cache.
double guess_packed(const PackParams& c, const Problem& p, const DeviceInfo& device) {
  const double size = double(size_of(p.accumulator));
  const double width = vector_elements(device, p.accumulator);
  const double columns = c.nv * width;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch());
  const double cores = device.compute_units;
  const double l1 = device.l1_cache > 0 ? double(device.l1_cache) : 32 << 10;
  const double l2 = device.l2_cache > 0 ? double(device.l2_cache) : 512 << 10;
  const double l3 = device.l3_cache > 0 ? double(device.l3_cache) / cores : 2 << 20;

  // A step of k: mr·nv multiply-adds, two a cycle; nv + mr loads, two a cycle; at least the latency of four cycles a chain.
  const double step = std::max({c.mr * c.nv / 2.0, (c.mr + c.nv) / 2.0, 4.0});
  const double steps = ceil_div(m, c.mr) * ceil_div(n, columns) * k * batch / cores;
  double cycles = step * steps;
  // Groups split M between cores: the remainder of a core's rows runs in narrower blocks.
  const double blocks_k = ceil_div(k, c.kc), blocks_n = ceil_div(n, c.nc);
  // D is read and written again for every block of K.
  cycles += 2.0 * (blocks_k - 0.5) * m * n / width * batch / cores;
  // A's row panel is fetched again for every block of columns, and the call of the micro-kernel costs some cycles.
  cycles += 12.0 * ceil_div(m, c.mr) * ceil_div(n, columns) * blocks_k * batch / cores;
  const double depth = std::min<double>(c.kc, k);
  const double panel_a = c.mr * depth * size, panel_b = depth * columns * size, block_b = depth * std::min<double>(c.nc, n) * size;
  if (panel_a > l1 / 2) cycles *= 1.04;
  if (panel_b + panel_a > l2 * 0.75) cycles *= 1.06;
  if (block_b > l3) cycles *= 1.05;
  if (block_b < l2 / 4 && blocks_n > 1) cycles *= 1.01;
  // Packing: a pass over B for each core, or on the way of the first row panel; reading in place strides over pages instead.
  const double vectors_b = k * n / width * batch;
  if (c.pack == 1) cycles += 2.5 * vectors_b;
  if (c.pack == 2) cycles += 1.0 * vectors_b;
  if (c.pack == 0 && n * size > 4096) cycles *= 1.0 + 0.02 * std::log2(n * size / 4096);
  if (c.mc > 0) cycles += 1.0 * vectors_b * (ceil_div(m / cores, c.mc) - 1);
  return cycles;
}

/// Cycles of the busiest multiprocessor, in units of one multiply-add of every lane.
double guess_tiled(const TiledChoice& choice, const Problem& p, const DeviceInfo& device) {
  const TileParams& t = choice.params;
  const TileOptions& o = choice.options;
  const double block_m = double(t.tile_m) * t.batch_m, block_n = double(t.tile_n) * t.batch_n;
  const double groups = ceil_div(double(p.m), block_m) * ceil_div(double(p.n), block_n) * double(p.batch()) * o.split_k;
  const double items = double(t.tile_m) * t.tile_n, sums = double(t.batch_m) * t.batch_n;
  const double depth = std::max(double(t.tile_k), ceil_div(double(p.k), o.split_k));

  // One k of one work-item, in lanes' cycles: multiply-adds; words from local memory, several lanes share a word.
  const double rows = o.local == 2 && o.sub_group > 0 ? double(ceil_div(t.batch_m, o.sub_group)) : t.batch_m;  // shared by a sub-group
  const double words = (rows + t.batch_n) * (o.a_transposed || !o.local ? 0.25 : 0.5);
  double step = std::max(sums, words * 4 * 0.9) + 0.15 * words * 4;
  if (!o.local) step += double(t.batch_m + t.batch_n);
  // Loads of the tiles, spread over the group, and the barrier of every tile.
  const TileCosts cost = costs(t, o, p.dtype);
  const double moved = double(cost.chunks_each_a + cost.chunks_each_b) * (4.0 + t.chunk) / t.tile_k;
  const double sync = o.local ? 30.0 / t.tile_k : 0;
  double cycles = (step + moved + sync) * depth * std::max(1.0, items / 128.0);

  // Registers decide how many groups a multiprocessor holds, and so how much latency is hidden; beyond the limit they spill.
  const double registers = std::max(32, cost.registers);
  if (device.is_gpu()) {
    const double resident = std::floor(65536.0 / (registers * items));
    const double by_memory =
        device.local_memory > 0 && cost.local_memory > 0 ? std::floor(2.0 * double(device.local_memory) / double(cost.local_memory)) : 8;
    const double hidden = std::max(1.0, std::min(resident, by_memory)) * items;
    if (hidden < 512) cycles *= 1 + 0.25 * (512 - hidden) / 512;
    if (registers > 240) cycles *= 1 + (registers - 240) / 60;
  } else if (sums > 32) {
    cycles *= sums / 32;  // a processor's vectoriser keeps 16 to 32 vectors
  }
  const double rounds = ceil_div(groups, double(device.compute_units));
  cycles *= rounds;
  // Groups that share a block add their sums through memory.
  if (o.split_k > 1) cycles += 8 * sums * o.split_k;
  return cycles;
}

}  // namespace

double guess_seconds(const Params& params, const Problem& problem, const DeviceInfo& device) {
  if (const auto* pack = std::get_if<PackParams>(&params)) return guess_packed(*pack, problem, device) * 1e-9;
  if (const auto* tiled = std::get_if<TiledChoice>(&params)) return guess_tiled(*tiled, problem, device) * 1e-9;
  return 1e-9;
}

}  // namespace sycl_mat
