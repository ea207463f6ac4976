// tiled: the ladder's end, and the kernel for GPUs. Everything is a constant that can be tuned for a device; none depends on another.
//
//                                                 BLOCK_N = TILE_N·BATCH_N
//                                               ┌──────────────────────────┐
//                                        TILE_K │  tile b, [k][n], + PAD   │   two pages of both tiles in local memory,
//                                               └──────────────────────────┘   filled in chunks through registers: the next
//                   TILE_K                                                     page's loads start before the present page is
//                  ┌──────┐                     ┌──────────────────────────┐   multiplied and are waited for after it
//      BLOCK_M =   │tile a│ [m][k], or          │▒▒▒▒    ▒▒▒▒              │
//      TILE_M·     │      │ transposed          │▒▒▒▒    ▒▒▒▒              │   ▒ = the BATCH_M × BATCH_N results of one work-item,
//      BATCH_M     │      │ [k][m], + PAD       │                          │   next to each other or, with STRIDED, in pieces of
//                  │      │                     │▒▒▒▒    ▒▒▒▒              │   4 so that neighbouring work-items read neighbouring
//                  └──────┘                     └──────────────────────────┘   parts of a row of a tile: no bank conflicts
//
// Edges cost nothing inside. A block that would hang over an edge of D is moved back until it fits and stores only the part that is
// its own; the last tile along k is moved back too, and what it shares with the tile before it counts as zero. So every tile is
// whole, and only matrices smaller than one block take the path that looks at each element.
//
// Groups share blocks along k where there are too few blocks for the device, or where the last of them would not fill it: see
// tiled_shares.hpp.
#include "device.hpp"

// constants: begin
constexpr int TILE_M = 16;       // work-items of a group along M
constexpr int TILE_N = 16;       // work-items of a group along N
constexpr int TILE_K = 16;       // depth of a tile
constexpr int BATCH_M = 4;       // rows a work-item computes
constexpr int BATCH_N = 4;       // columns a work-item computes
constexpr int CHUNK = 4;         // elements a load moves
constexpr int A_TRANSPOSED = 1;  // tile a in local memory: 0 [m][k], 1 [k][m]
constexpr int PAD = 4;           // elements added to a row of local memory
constexpr int STRIDED = 1;       // rows and columns of a work-item: 0 next to each other, 1 in pieces of 4
constexpr int ORDER = 1;         // products of one k: 0 row by row, 1 serpentine
constexpr int AHEAD = 1;         // operands of the next k are read: 0 when needed, 1 a k ahead, 2 also across the barrier
constexpr int LOCAL = 1;         // operands: 0 straight from global memory, 1 through local memory, 2 with a's read once a sub-group
constexpr int SUB_GROUP = 0;     // required sub-group size, 0: the compiler's choice
constexpr int SPLIT = 0;         // blocks are cut along k: 0 none, 1 each among as many groups, 2 some, shared out evenly among groups
constexpr int RESIDENT = 0;      // groups that a multiprocessor shall have registers for, 0: as it comes (NVIDIA)
constexpr int SWIZZLE = 0;       // block rows walked together so that caches serve them, 0: row by row
constexpr int PADDED_A = 0;      // 1: behind A's lines there is room to read whole chunks
constexpr int PADDED_B = 0;      // the same of B
// constants: end

namespace sycl_mat {
constexpr int BLOCK_M = TILE_M * BATCH_M, BLOCK_N = TILE_N * BATCH_N;
constexpr int ITEMS = TILE_M * TILE_N;
}  // namespace sycl_mat

#include "tiled_operand.hpp"

namespace sycl_mat {

using TileA = Operand<BLOCK_M, !TRANS_A, A_TRANSPOSED != 0>;
using TileB = Operand<BLOCK_N, TRANS_B != 0, true>;

constexpr int PAGE = TileA::SIZE + TileB::SIZE;
struct alignas(64) Pages {
  acc_t page[LOCAL ? 2 : 1][LOCAL ? PAGE : 1];
  int last;  // of the groups that share a block
};
static local_memory_of<Pages> local;

/// The sums of one work-item, and what is done with them.
struct Sums {
  acc_t at[BATCH_M][BATCH_N] = {};

  /// at += column · row. Serpentine: neighbouring products share an operand, which saves reads of the register file.
  SYCL_MAT_MEMBER void add(const acc_t (&column)[BATCH_M], const acc_t (&row)[BATCH_N]) {
#pragma unroll
    for (int i = 0; i < BATCH_M; ++i)
#pragma unroll
      for (int s = 0; s < BATCH_N; ++s) {
        const int j = ORDER && (i & 1) ? BATCH_N - 1 - s : s;
        at[i][j] = multiply_add(column[i], row[j], at[i][j]);
      }
  }
};

struct Place {
  int item, row, column;  // number of the work-item in its group, and its place there
};

// What a work-item holds of the BATCH_M elements of tile a that it multiplies at a k: all, or, where all lanes of its sub-group are in
// one row of work-items and so need the same, a part, which the others read from its register.
constexpr bool BROADCAST = LOCAL == 2 && SUB_GROUP > 0 && TILE_N % (SUB_GROUP > 0 ? SUB_GROUP : 1) == 0;
constexpr int HELD = BROADCAST ? ceil_div(BATCH_M, SUB_GROUP > 0 ? SUB_GROUP : 1) : BATCH_M;

template <int held>
SYCL_MAT_INLINE void read_a(const acc_t* page, const Place& at, int k, acc_t (&fragment)[held]) {
  if constexpr (BROADCAST) {
#pragma unroll
    for (int v = 0; v < HELD; ++v) {
      const int i = int(min(v * SUB_GROUP + lane(), BATCH_M - 1)), row = place<TILE_M, BATCH_M>(at.row, i);
      fragment[v] = page[A_TRANSPOSED ? k * TileA::PITCH + row : row * TileA::PITCH + k];
    }
  } else {
    TileA::template read<TILE_M, BATCH_M>(page, at.row, k, fragment);
  }
}

template <int held>
SYCL_MAT_INLINE void add(Sums& sums, const acc_t (&of_a)[held], const acc_t (&of_b)[BATCH_N]) {
  if constexpr (BROADCAST) {
    acc_t column[BATCH_M];
#pragma unroll
    for (int i = 0; i < BATCH_M; ++i) column[i] = from_lane(of_a[i / SUB_GROUP], i % SUB_GROUP);
    sums.add(column, of_b);
  } else {
    sums.add(of_a, of_b);
  }
}

/// Rows of A and columns of B that may be read: where they lie along the lines of a padded matrix so many that blocks at the edge, too,
/// begin at whole chunks. What comes of those beyond the edge nobody stores.
SYCL_MAT_INLINE index readable_rows(const Args& g) { return PADDED_A && TRANS_A ? (g.m + CHUNK - 1) / CHUNK * CHUNK : g.m; }
SYCL_MAT_INLINE index readable_columns(const Args& g) { return PADDED_B && !TRANS_B ? (g.n + CHUNK - 1) / CHUNK * CHUNK : g.n; }

/// Sums over k in [begin, end), through local memory.
SYCL_MAT_INLINE void multiply_local(Sums& sums, const Args& g, const Place& at, const in_t* a, const in_t* b, index first_i, index first_j,
                                    index begin, index end) {
  TileA tile_a(a, g.lda, first_i, readable_rows(g), begin, at.item);
  TileB tile_b(b, g.ldb, first_j, readable_columns(g), begin, at.item);
  auto& pages = contents(local).page;
  const int whole = int((end - begin) / TILE_K), tiles = int((end - begin + TILE_K - 1) / TILE_K);
  // Tiles whose loads take one question, as nearly all do: every instruction beside the products costs as much as they do.
  const int usual = (!PREFERS_ALIGNED || (tile_a.aligned && tile_b.aligned)) && tile_a.simple() && tile_b.simple() ? whole : 0;

  const auto load = [&](int t) SYCL_MAT_LAMBDA {
    if (t < usual) {
      tile_a.load(at.item, true);
      tile_b.load(at.item, true);
    } else if (t < tiles) {
      // The last tile is moved back over what the one before it had, if the matrix is deep enough.
      const index k0 = begin + index(t) * TILE_K, missing = k0 + TILE_K - end;
      const int shared = missing > 0 && end >= TILE_K ? int(missing) : 0;
      const int inside = int(min(end - k0 + shared, TILE_K));
      const auto load_one = [&](auto& tile) SYCL_MAT_LAMBDA {
        if (PREFERS_ALIGNED && t < whole && tile.simple()) {
          tile.load(at.item, tile.aligned);
        } else {
          tile.load_any(at.item, k0 - shared, inside, shared);
        }
      };
      load_one(tile_a);
      load_one(tile_b);
    }
  };
  const auto store = [&](int page) SYCL_MAT_LAMBDA {
    tile_a.store(at.item, pages[page]);
    tile_b.store(at.item, pages[page] + TileA::SIZE);
  };
  constexpr int fragments = AHEAD ? 2 : 1;
  acc_t of_a[fragments][HELD], of_b[fragments][BATCH_N];
  const auto read = [&](int page, int k, int to) SYCL_MAT_LAMBDA {
    read_a(pages[page], at, k, of_a[to]);
    TileB::template read<TILE_N, BATCH_N>(pages[page] + TileA::SIZE, at.column, k, of_b[to]);
  };

  load(0);
  store(0);
  barrier();
  int page = 0;
  if constexpr (AHEAD == 2) read(0, 0, 0);
  for (int t = 0; t < tiles; ++t) {
    load(t + 1);
    if constexpr (AHEAD == 1) read(page, 0, 0);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
      const int present = AHEAD ? k % 2 : 0;
      if constexpr (AHEAD == 0) read(page, k, 0);
      if (AHEAD && k + 1 < TILE_K) read(page, k + 1, 1 - present);
      if (AHEAD == 2 && k + 1 == TILE_K) {  // after the last tile, too, where nobody uses what is stored and read: a branch would cost more
        store(page ^ 1);
        barrier();
        read(page ^ 1, 0, 1 - present);
      }
      add(sums, of_a[present], of_b[present]);
    }
    page ^= 1;
    if constexpr (AHEAD != 2) {
      store(page);
      barrier();
    }
  }
}

/// Sums over k in [begin, end), each work-item reading what it needs from global memory: for devices whose caches are fast enough.
SYCL_MAT_INLINE void multiply_direct(Sums& sums, const Args& g, const Place& at, const in_t* a, const in_t* b, index first_i, index first_j,
                                     index begin, index end) {
  constexpr int depth = gcd(CHUNK, TILE_K);  // elements along k read together
  index row[BATCH_M], column[BATCH_N];       // beyond an edge the last one is read again
#pragma unroll
  for (int i = 0; i < BATCH_M; ++i) row[i] = min(first_i + place<TILE_M, BATCH_M>(at.row, i), g.m - 1);
#pragma unroll
  for (int j = 0; j < BATCH_N; ++j) column[j] = min(first_j + place<TILE_N, BATCH_N>(at.column, j), g.n - 1);

  const auto step = [&](index k0, auto width) SYCL_MAT_LAMBDA {
    constexpr int n = decltype(width)::value;
    acc_t of_a[n][BATCH_M], of_b[n][BATCH_N];
#pragma unroll
    for (int i = 0; i < BATCH_M; ++i) {
      if constexpr (!TRANS_A) {
        const auto v = load_unaligned<n>(a + at_a(g, row[i], k0));
#pragma unroll
        for (int e = 0; e < n; ++e) of_a[e][i] = widen(v[e]);
      } else {
#pragma unroll
        for (int e = 0; e < n; ++e) of_a[e][i] = widen(a[at_a(g, row[i], k0 + e)]);
      }
    }
#pragma unroll
    for (int j = 0; j < BATCH_N; ++j) {
      if constexpr (TRANS_B) {
        const auto v = load_unaligned<n>(b + at_b(g, k0, column[j]));
#pragma unroll
        for (int e = 0; e < n; ++e) of_b[e][j] = widen(v[e]);
      } else {
#pragma unroll
        for (int e = 0; e < n; ++e) of_b[e][j] = widen(b[at_b(g, k0 + e, column[j])]);
      }
    }
#pragma unroll
    for (int e = 0; e < n; ++e) sums.add(of_a[e], of_b[e]);
  };
  index k0 = begin;
  for (; k0 + depth <= end; k0 += depth) step(k0, Number<depth>());
  for (; k0 < end; ++k0) step(k0, Number<1>());
}

}  // namespace sycl_mat

#include "tiled_shares.hpp"

namespace sycl_mat {

/// Stores what is the block's own: rows from own_i and columns from own_j on.
SYCL_MAT_INLINE void store(const Sums& sums, const Args& g, const Place& at, const out_t* c, out_t* d, const acc_t* bias, index first_i,
                           index first_j, index own_i, index own_j) {
  constexpr int piece = gcd(BATCH_N, 4);
  constexpr index bytes = piece * sizeof(out_t);
  using Stored = Choice<PREFERS_ALIGNED, Vector<out_t, piece>, UnalignedVector<out_t, piece>>;
  const bool whole = own_i == first_i && own_j == first_j && first_i + BLOCK_M <= g.m && first_j + BLOCK_N <= g.n;
  const bool vectors = whole && (!PREFERS_ALIGNED || (reinterpret_cast<index>(d + first_j) | (g.ldd * index(sizeof(out_t)))) % bytes == 0);
#pragma unroll
  for (int r = 0; r < BATCH_M; ++r)
#pragma unroll
    for (int s = 0; s < BATCH_N; s += piece) {
      const index i = first_i + place<TILE_M, BATCH_M>(at.row, r), j = first_j + place<TILE_N, BATCH_N>(at.column, s);
      Vector<out_t, piece> results;
#pragma unroll
      for (int e = 0; e < piece; ++e) results[e] = epilogue(sums.at[r][s + e], min(i, g.m - 1), min(j + e, g.n - 1), c, bias, g);
      if (vectors) {
        *reinterpret_cast<Stored*>(d + i * g.ldd + j) = results;
      } else {
#pragma unroll
        for (int e = 0; e < piece; ++e)
          if (i >= own_i && i < g.m && j + e >= own_j && j + e < g.n) d[i * g.ldd + j + e] = results[e];
      }
    }
}

/// Where a block of D lies: row by row, or SWIZZLE block rows side by side so that groups that run together share more of A and B.
struct Block {
  index own_i, own_j;      // first row and column that are its own
  index first_i, first_j;  // and that it computes
  SYCL_MAT_MEMBER Block(const Args& g, int rows, int columns, int number) {
    int block_row = number / columns, block_column = number % columns;
    if constexpr (SWIZZLE > 1) {
      const int band = number / (SWIZZLE * columns), inside = number - band * SWIZZLE * columns;
      const int height = rows - band * SWIZZLE < SWIZZLE ? rows - band * SWIZZLE : SWIZZLE;
      block_row = band * SWIZZLE + inside % height;
      block_column = inside / height;
    }
    own_i = index(block_row) * BLOCK_M;
    own_j = index(block_column) * BLOCK_N;
    first_i = g.m >= BLOCK_M ? min(own_i, readable_rows(g) - BLOCK_M) : 0;
    first_j = g.n >= BLOCK_N ? min(own_j, readable_columns(g) - BLOCK_N) : 0;
  }
};

KERNEL_WITH_SUB_GROUP(3, SUB_GROUP)
tiled(const in_t* __restrict__ a, const in_t* __restrict__ b, const out_t* c, out_t* d, const acc_t* __restrict__ bias, void* scratch,
      Args g) {
  // All groups stand in one line, which devices allow to be longest.
  const int rows = int((g.m + BLOCK_M - 1) / BLOCK_M), columns = int((g.n + BLOCK_N - 1) / BLOCK_N), each = rows * columns;
  const Place at{local_id(1) * TILE_N + local_id(0), local_id(1), local_id(0)};
  int done = 0;  // tiles of this group's share
  bool more = false;
  do {
    Sums sums;
    {
      const Part part = part_of(g, group_id(0), done, each);
      const Matrices from = matrices(a, b, c, d, g, part.block / each);
      const Block block(g, rows, columns, part.block % each);
      // Without parts all of k: for Intel's compiler float64 sums then leave just enough registers. PTX comes out better as it is.
      constexpr bool parts = SPLIT || OWN_POINTERS;
      const index begin = parts ? index(part.begin) * TILE_K : 0, end = parts ? min(g.k, index(part.end) * TILE_K) : g.k;
      if (begin < end) {
        if constexpr (LOCAL) {
          multiply_local(sums, g, at, from.a, from.b, block.first_i, block.first_j, begin, end);
        } else {
          multiply_direct(sums, g, at, from.a, from.b, block.first_i, block.first_j, begin, end);
        }
      }
    }
    // Where that was is worked out anew: kept in registers it would slow down the loop over k.
    const Part part = part_of(g, anew(group_id(0)), anew(done), each);
    done += part.end - part.begin;
    more = SPLIT == 2 && part.more;
    if constexpr (SPLIT)
      if (part.count > 1 && !gather(sums, g, at.item, scratch, part, each)) continue;
    const Matrices to = matrices(a, b, c, d, g, part.block / each);
    const Block block(g, rows, columns, part.block % each);
    store(sums, g, at, to.c, to.d, bias, block.first_i, block.first_j, block.own_i, block.own_j);
  } while (more);
}

}  // namespace sycl_mat

#undef LAUNCH_BOUNDS_NAMES
#undef LAUNCH_BOUNDS_VALUES
#define LAUNCH_BOUNDS_NAMES , RESIDENT > 0 ? "nvvm.maxntid" : "sycl-mat-no-maxntid", RESIDENT > 0 ? "nvvm.minctasm" : "sycl-mat-no-minctasm"
#define LAUNCH_BOUNDS_VALUES , sycl_mat::ITEMS, RESIDENT
