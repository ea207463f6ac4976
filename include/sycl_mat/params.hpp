// The constants of the kernel families: plain numbers in, plain numbers out. src/params_tile.cpp and src/params_pack.cpp hold the
// constraints, each written once with its reason; the planner, the tuner and the error messages all ask there.
#pragma once

#include <compare>
#include <string>
#include <variant>
#include <vector>

namespace sycl_mat {

struct DeviceInfo;

/// The six constants of the tiled kernels. A work-group of tile_m × tile_n work-items computes a block of
/// (tile_m·batch_m) × (tile_n·batch_n) results, walking K in steps of tile_k; every load moves `chunk` elements.
struct TileParams {
  int tile_m = 16;  ///< work-items of a group along M
  int tile_n = 16;  ///< work-items of a group along N
  int tile_k = 16;  ///< depth of a tile
  int batch_m = 4;  ///< rows a work-item computes
  int batch_n = 4;  ///< columns a work-item computes
  int chunk = 4;    ///< elements a load moves
  auto operator<=>(const TileParams&) const = default;
};

/// The other choices inside the tiled kernel, with a default an architecture (see docs/kernels.md for what each was worth where).
struct TileOptions {
  int a_transposed = 1;  ///< local copy of A stored [k][m], so that a work-item reads its rows as vectors
  int pad = 4;           ///< elements added to a row of local memory, against bank conflicts
  int strided = 1;       ///< rows and columns of a work-item: 0 contiguous, 1 strided in chunks of 4
  int order = 1;         ///< products of a k: 0 row by row, 1 serpentine
  int ahead = 1;         ///< the next k's operands are read: 0 when needed, 1 before the present products, 2 also across the barrier
  int local = 1;         ///< operands: 0 straight from global memory, 1 through local memory, 2 with A's read once a sub-group
  int sub_group = 0;     ///< required sub-group size, 0: the compiler's choice
  int split_k = 1;       ///< groups that share one block of C along K, summed in a fixed order
  int swizzle = 0;       ///< block rows walked together so that caches serve them, 0: row by row
  int share = 0;         ///< groups that run at once: blocks of C that do not come out even are shared out among so many along K, 0: none
  auto operator<=>(const TileOptions&) const = default;
};

/// The constants of the packed (CPU) kernel: a micro-kernel of mr rows × nv vectors, inside blocks of kc × nc of B and mc rows of A.
struct PackParams {
  int mr = 6;     ///< rows of the micro-kernel
  int nv = 4;     ///< vectors of the micro-kernel's row
  int kc = 512;   ///< depth of a packed block of B
  int mc = 0;     ///< rows of A a core walks before the next block of B, 0: all of its rows
  int nc = 2048;  ///< columns of a packed block of B
  int pack = 2;   ///< 0: B read in place, 1: packed before use, 2: packed on the way
  auto operator<=>(const PackParams&) const = default;
};

struct TiledChoice {
  TileParams params;
  TileOptions options;
  auto operator<=>(const TiledChoice&) const = default;
};

/// The constants of one kernel: none for kernels that have no choice.
using Params = std::variant<std::monostate, TiledChoice, PackParams>;

std::string to_string(const TileParams& p);   ///< "16,16,8,8,4,8"
std::string to_string(const TileOptions& o);  ///< "a_transposed=1 pad=4 …"
std::string to_string(const PackParams& p);

}  // namespace sycl_mat
