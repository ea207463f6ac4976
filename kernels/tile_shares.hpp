// Which tiles, and which parts of tiles cut along K, each block of a persistent kernel computes. Nobody waits for anybody: what a block
// does follows from its number.
//
// The first shared_tiles tiles are cut: their stages, counted through all of them, are dealt out in equal shares, so that a block's share
// may end one tile and begin the next. After its share a block takes whole tiles in turn.
//
// To be included where TILE_ROWS, tile_cols, tile_k and INLINE are known.
#pragma once

#include "ptx.hpp"

namespace sycl_mat {

/// Tiles are walked in bands of so many rows of tiles, which share their parts of B in the cache: about a square is computed at a time.
constexpr int tile_rows_in_a_band = tile_cols == 256 && tile_k == 64 ? 16 : 8;

/// A part of a tile: stages begin … end - 1 of its `stages`.
struct Part {
  int tile, begin, end;
};

/// Sizes in tiles and stages. Made where they are needed: registers are dearer than a few instructions a tile.
struct Grid {
  int rows, columns, tiles, stages, shared_tiles, blocks;
  int share, longer;  // stages of shared tiles a block computes, and how many blocks compute one more; the host keeps their sum in 31 bits
  static index rounded_up(index size, int tile) { return index(static_cast<unsigned long long>(size + tile - 1) / unsigned(tile)); }
  explicit Grid(const Args& g) {
    rows = int(rounded_up(g.m, TILE_ROWS));
    columns = int(rounded_up(g.n, tile_cols));
    tiles = rows * columns * int(g.batch);
    stages = int(rounded_up(g.k, tile_k));
    shared_tiles = int(g.split_n);
    blocks = block_count();
    share = int(g.split_k);
    longer = int(g.split_m);
  }
  /// First stage of the shared tiles, counted through all of them, that a block computes; and the block that computes a stage.
  unsigned first_of(int block) const { return unsigned(block * share + (block < longer ? block : longer)); }
  int owner(unsigned stage) const {
    const unsigned long_ones = unsigned(longer * (share + 1));
    return int(stage < long_ones ? stage / unsigned(share + 1) : unsigned(longer) + (stage - long_ones) / unsigned(share));
  }
};

struct Work {
  int tile, begin, left;  // the next part of the shared tiles, and how many stages of them are left for this block
  int whole;              // the next whole tile

  explicit Work(const Grid& grid) {
    const int block = block_id();
    const unsigned first = grid.first_of(block);
    tile = begin = left = 0;
    if (grid.shared_tiles > 0) {
      tile = 2 * grid.share == grid.stages && grid.longer == 0 ? block / 2 : int(first / unsigned(grid.stages));
      begin = int(first) - tile * grid.stages;
      left = grid.share + (block < grid.longer);
    }
    whole = grid.shared_tiles + block;
  }
  /// Stages in all.
  int count(const Grid& grid) const {
    return left + (whole < grid.tiles ? (grid.tiles - whole + grid.blocks - 1) / grid.blocks : 0) * grid.stages;
  }
  int parts(const Grid& grid) const {
    const int cut = left > 0 ? int(unsigned(begin + left - 1) / unsigned(grid.stages)) + 1 : 0;
    return cut + (whole < grid.tiles ? int(unsigned(grid.tiles - whole + grid.blocks - 1) / unsigned(grid.blocks)) : 0);
  }
  bool more(const Grid& grid) const { return left > 0 || whole < grid.tiles; }
  /// To be called while there are more.
  INLINE Part next(const Grid& grid) {
    Part part{whole, 0, grid.stages};
    if (left > 0) {
      part = {tile, begin, int(min(grid.stages, begin + left))};
      left -= part.end - begin;
      ++tile;
      begin = 0;
    } else {
      whole += grid.blocks;
    }
    return part;
  }
};

/// Where a tile lies: its matrices and its first row and column.
struct Place {
  int batch;
  index row, col;
};
/// Divisions take so long that those are left out which a product without a stack, or its first band, can do without.
inline Place place_of(int tile, const Grid& grid) {
  const unsigned rows = unsigned(grid.rows), columns = unsigned(grid.columns), each = rows * columns;
  constexpr unsigned most = tile_rows_in_a_band;
  unsigned t = unsigned(tile), batch = 0, first = 0;
  if (t >= each) batch = t / each, t -= batch * each;
  if (t >= most * columns) {
    const unsigned band = t / (most * columns);
    first = band * most, t -= first * columns;
  }
  const unsigned height = first + most < rows ? most : rows - first, column = height == most ? t / most : t / height;
  return {int(batch), index(first + t - column * height) * TILE_ROWS, index(column) * tile_cols};
}
/// The matrices there. A division of 64 bits takes so long that a product without a stack had better not wait for it.
INLINE Matrices matrices_at(const Place& at, const Matrices& whole, const Args& g) {
  return at.batch == 0 ? whole : matrices(whole.a, whole.b, whole.c, whole.d, g, at.batch);
}

}  // namespace sycl_mat
