// The parts of tiles that several blocks share are added up by whichever block arrives last, always in the order of K: the same call gives
// the same bits, and nobody waits for anybody.
//
// To be included where TILE_ROWS, tile_cols, tile_k, INLINE and `consumers` are known: work-items, in two warp-groups, that hold a tile's
// sums.
#pragma once

#include "tile_shares.hpp"

namespace sycl_mat {

/// Counters of arrivals for a shared tile and warp-group, and how many neighbouring blocks add up their parts first: so few that there are
/// fewer counters than that.
constexpr int counters_of_a_tile = 32;
INLINE int neighbours(int parts) {
  if (parts <= 8) return parts;
  int together = 3;
  while (together * together < parts) ++together;
  return together;
}

/// Adds up the parts of a shared tile: of many, first those of some neighbouring blocks, and then their sums. True for the block that
/// arrived last: `sums` is then complete.
template <int sums_count>
INLINE bool combine(const Part& part, float (&sums)[sums_count], const Args& g, void* scratch) {
  constexpr index part_size = TILE_ROWS * tile_cols;
  const int id = fresh_thread_id() % 128, group = fresh_thread_id() / 128;
  const Grid grid(g);
  const unsigned stage = unsigned(part.tile) * unsigned(grid.stages);
  const int first = grid.owner(stage), count = grid.owner(stage + unsigned(grid.stages) - 1) - first + 1, mine = block_id() - first;
  // Two parts a block: one that lies inside a tile or ends it, one that begins a tile.
  float* parts = static_cast<float*>(scratch) + g.scratch_stride;
  const auto at = [&](int part) { return parts + (2 * (first + part) + (part == 0)) * part_size + (group * 128 + id) * 4; };
  int* counters = static_cast<int*>(scratch) + (2 * part.tile + group) * counters_of_a_tile;
  // Leaves the sums where part `to` belongs. True if all `expected` have then arrived at a counter.
  const auto arrive = [&](int to, int counter, int expected) __attribute__((always_inline)) {
    float* place = at(to);
#pragma unroll
    for (int i = 0; i < sums_count; i += 4) {
      const Vector<float, 4> v = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      *reinterpret_cast<Vector<float, 4>*>(place + i * consumers) = v;
    }
    any_of_group(group, false);  // all of it is written
    bool is_last = false;
    if (id == 0) is_last = count_arrival(counters + counter) == expected - 1;
    if (!any_of_group(group, is_last)) return false;
    if (id == 0) counters[counter] = 0;
    return true;
  };
  // In their order, `number` of them on their way at a time.
  const auto add = [&](int part, int step, auto number) __attribute__((always_inline)) {
    constexpr int ahead = decltype(number)::value;
    Vector<float, 4> v[ahead][sums_count / 4];
#pragma unroll
    for (int p = 0; p < ahead; ++p)
#pragma unroll
      for (int i = 0; i < sums_count / 4; ++i) v[p][i] = load_from_others(at(part + p * step) + i * 4 * consumers);
#pragma unroll
    for (int p = 0; p < ahead; ++p)
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] += v[p][i / 4][i % 4];
  };
  const auto add_all = [&](int from, int to, int step) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < sums_count; ++i) sums[i] = 0;
    int part = from;
    if constexpr (sums_count <= 32)
      for (; part + step < to; part += 2 * step) add(part, step, Number<2>{});
    for (; part < to; part += step) add(part, step, Number<1>{});
  };
  const int together = neighbours(count), begin = mine / together * together, end = int(min(begin + together, count));
  if (!arrive(mine, 1 + begin / together, end - begin)) return false;
  if (end - begin == 2) {
    add(2 * begin + 1 - mine, 0, Number<1>{});  // of two parts the order does not matter, and one is in registers
  } else {
    add_all(begin, end, 1);
  }
  if (together >= count) return true;
  if (!arrive(begin, 0, (count + together - 1) / together)) return false;
  add_all(0, count, together);
  return true;
}

}  // namespace sycl_mat
