// How groups of `tiled` share blocks of D along k: which part of which block each computes, and how the parts' sums come together.
//
// SPLIT = 1: so many groups a block, each with as many tiles of it. SPLIT = 2: the tiles of the first so many blocks, counted through all
// of them, are dealt out in equal shares among so many groups; where a share ends in one block it goes on in the next. Blocks that would
// not fill the device in a last round of their own then fill it, in less time. The other blocks have a group each.
//
//     block      0               1               2                        what a part's sums are called in scratch memory:
//            ├───────────────┼───────────────┼───────────────┤
//     group  │0  │1  │2  │3  │4  │5  │6  │7  │8  │9  │10 │11 │              4 groups a block: slot = group
//     group  │0     │1     │2    │3    │4     │5     │6      │              shares of 7 groups: slot = group where the group begins in this
//                       └ group 2 begins in block 0 and ends in block 1      block, 7 + group where it goes on in it
//
// Scratch memory: counters, zero before and after, then BLOCK_M·BLOCK_N sums a slot. Whoever comes last to a counter adds up what is
// there, in the order of k, so the result does not depend on who that is. Nobody waits for anybody.
//
// To be included where Sums, `local` and the constants of tiled.cpp are known.
#pragma once

#include "device.hpp"

namespace sycl_mat {

/// A part of a block: its tiles begin … end - 1 of all `tiles`, and who computes the other parts.
struct Part {
  int block, begin, end;
  int number, count;            // this part's place among the block's parts
  int zeroth_slot, first_slot;  // of part 0, and of part 0 as if it were in line with parts 1, 2, …
  bool more;                    // the group has another part
  SYCL_MAT_MEMBER int slot(int part) const { return part == 0 ? zeroth_slot : first_slot + part; }
};

/// A number that the compiler cannot know to be the same as before.
SYCL_MAT_INLINE int anew(int x) {
#ifdef __NVPTX__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

/// What SPLIT = 2 deals out. The host chose the numbers, and keeps the number of shared tiles below 2³¹.
struct ShareOut {
  int tiles;           // of a block, along k
  int shared, groups;  // blocks that are shared, and by how many groups
  int share, longer;   // tiles of them that a group computes, and how many groups compute one more

  SYCL_MAT_MEMBER ShareOut(const Args& g, int blocks)
      : tiles(int((g.k + TILE_K - 1) / TILE_K)),
        shared(int(g.split_n)),
        groups(group_count(0) - (blocks - shared)),
        share(int(g.split_k)),
        longer(int(g.split_m)) {}
  /// First tile, counted through all shared blocks, of a group; and the group that computes a tile.
  SYCL_MAT_MEMBER unsigned first_of(int group) const { return unsigned(group * share + (group < longer ? group : longer)); }
  SYCL_MAT_MEMBER int owner(unsigned tile) const {
    const unsigned long_ones = unsigned(longer * (share + 1));
    return int(tile < long_ones ? tile / unsigned(share + 1) : unsigned(longer) + (tile - long_ones) / unsigned(share));
  }
  /// What a group computes after the first `done` tiles of its share.
  SYCL_MAT_MEMBER Part part(int group, int done) const {
    if (group >= groups) return {shared + group - groups, 0, tiles, 0, 1, 0, 0, false};
    const unsigned at = first_of(group) + unsigned(done), end = first_of(group + 1);
    const int block = int(at / unsigned(tiles));
    const unsigned first = unsigned(block * tiles), next = first + unsigned(tiles);
    const int from = owner(first), to = owner(next - 1);
    return {block,        int(at - first), int((end < next ? end : next) - first),
            group - from, to - from + 1,   first_of(from) < first ? groups + from : from,
            from,         end > next};
  }
};

/// Blocks in all, those of a matrix of the stack being `each`.
SYCL_MAT_INLINE int blocks_of(const Args& g, int each) { return each * int(g.batch); }

/// What a group computes after `done` tiles of its share.
SYCL_MAT_INLINE Part part_of(const Args& g, int group, int done, int each) {
  if constexpr (SPLIT == 2) return ShareOut(g, blocks_of(g, each)).part(group, done);
  const int tiles = int((g.k + TILE_K - 1) / TILE_K), splits = SPLIT ? int(g.split_k) : 1;
  const int split = SPLIT ? group / each % splits : 0, block = SPLIT ? group / each / splits * each + group % each : group;
  const int depth = (tiles + splits - 1) / splits;  // the last splits may be empty
  return {block, split * depth, (split + 1) * depth, split, splits, block * splits, block * splits, false};
}

constexpr int most_at_once = 8;  // of more parts, neighbours are added first, then their sums

constexpr int SUMS = BATCH_M * BATCH_N;

SYCL_MAT_INLINE void leave(const Sums& sums, acc_t* to) {
#pragma unroll
  for (int p = 0; p < SUMS; ++p) to[p * ITEMS] = sums.at[p / BATCH_N][p % BATCH_N];
}

/// Adds up parts first, first + step, … before `end`, in this order.
SYCL_MAT_INLINE void add_up(Sums& sums, auto at, int first, int end, int step) {
  constexpr int together = SUMS <= 16 ? 4 : SUMS <= 32 ? 2 : 1;  // parts whose loads are under way at a time, beside those of all sums
  sums = Sums();
  int number = first;
  if constexpr (together > 1)
    for (; number + (together - 1) * step < end; number += together * step) {
      acc_t x[together][SUMS];
#pragma unroll
      for (int t = 0; t < together; ++t)
#pragma unroll
        for (int p = 0; p < SUMS; ++p) x[t][p] = at(number + t * step)[p * ITEMS];
#pragma unroll
      for (int t = 0; t < together; ++t)
#pragma unroll
        for (int p = 0; p < SUMS; ++p) sums.at[p / BATCH_N][p % BATCH_N] += x[t][p];
    }
  for (; number < end; number += step) {
    const acc_t* const from = at(number);
#pragma unroll
    for (int p = 0; p < SUMS; ++p) sums.at[p / BATCH_N][p % BATCH_N] += from[p * ITEMS];
  }
}

/// Leaves the sums of a part in scratch memory; true for the work-items of the group that came last, which then hold the sums of all.
SYCL_MAT_INLINE bool gather(Sums& sums, const Args& g, int item, void* scratch, const Part& part, int each) {
  // Counters of blocks, then of slots.
  const int blocks = blocks_of(g, each), slot_counters = SPLIT == 2 ? int(g.split_n) : blocks;
  const int slots = SPLIT == 2 ? 2 * ShareOut(g, blocks).groups : blocks * int(g.split_k), counters = slot_counters + slots;
  int* const counter = static_cast<int*>(scratch);
  acc_t* const parts = reinterpret_cast<acc_t*>(static_cast<char*>(scratch) + (index(counters) * 4 + 255) / 256 * 256) + item;
  const auto at = [&](int number) SYCL_MAT_LAMBDA { return parts + part.slot(number) * g.scratch_stride; };

  int near = part.count;  // how many neighbours are added first
  if (part.count > most_at_once) {
    near = most_at_once;
    while (near * near < part.count) near *= 2;
  }
  int step = 1, first = part.number / near * near, end = int(min(first + near, part.count)), mine = part.number;
  while (true) {
    const bool all = end - first == part.count || step > 1;  // these are the last sums of the block
    int* const arrived = counter + (all ? part.block : slot_counters + part.slot(first));
    leave(sums, at(mine));
    device_fence();
    barrier();
    if (item == 0) {
      const bool last = fetch_add(arrived, 1) == (end - first + step - 1) / step - 1;
      contents(local).last = last;
      if (last) *arrived = 0;
    }
    barrier();
    if (!contents(local).last) return false;
    device_fence();
    add_up(sums, at, first, end, step);
    if (all) return true;
    mine = first, first = 0, end = part.count, step = near;
  }
}

}  // namespace sycl_mat
