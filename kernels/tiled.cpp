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
// SPLIT_K groups share a block where there are too few blocks for the device: each leaves its sums in scratch memory, and whoever
// comes last adds them up in a fixed order, so that the result does not depend on who that is.
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
constexpr int SPLIT_K = 1;       // groups that share one block along k
constexpr int SWIZZLE = 0;       // block rows walked together so that caches serve them, 0: row by row
// constants: end

namespace sycl_mat {

constexpr int BLOCK_M = TILE_M * BATCH_M, BLOCK_N = TILE_N * BATCH_N;
constexpr int ITEMS = TILE_M * TILE_N;

// Vector loads that need no alignment are split into single ones by the PTX back end, and are slow for elements below 4 bytes on
// Intel GPUs: there it pays to look whether the addresses are aligned.
//
// Each work-item walks with a pointer of its own there, which saves PTX registers. Intel's graphics compiler (22.43) crashes on that
// where a work-item has several chunks: it gets the sum written out, and finds the common part itself.
#ifdef __NVPTX__
constexpr bool PREFERS_ALIGNED = true, OWN_POINTERS = true;
#else
constexpr bool PREFERS_ALIGNED = sizeof(in_t) < 4, OWN_POINTERS = false;
#endif

/// Which row (or column) of the block is number `i` of work-item `lane`: pieces of up to 4 stay together.
template <int TILE, int BATCH>
SYCL_MAT_INLINE int place(int lane, int i) {
  constexpr int piece = STRIDED ? gcd(BATCH, 4) : BATCH;
  return i / piece * (TILE * piece) + lane * piece + i % piece;
}

/// One operand: OUTER rows of A (or columns of B) × TILE_K. ALONG_K: neighbours in global memory follow each other along k.
/// BY_K: in local memory, the elements of one k lie together.
template <int OUTER, bool ALONG_K, bool BY_K>
struct Operand {
  static constexpr int LINE = ALONG_K ? TILE_K : OUTER;  // elements of a tile that lie together in global memory
  static constexpr int WIDTH = gcd(CHUNK, LINE);
  static constexpr int PER_LINE = LINE / WIDTH;
  static constexpr int CHUNKS = OUTER * TILE_K / WIDTH;
  static constexpr int EACH = ceil_div(CHUNKS, ITEMS);  // chunks a work-item moves
  static constexpr bool EVEN = ITEMS % PER_LINE == 0;   // its chunks stand below one another
  static constexpr int PITCH = (BY_K ? OUTER : TILE_K) + PAD;
  static constexpr int SIZE = ceil_div((BY_K ? TILE_K : OUTER) * PITCH, 8) * 8;

  const in_t* from;  // the block's element at k = 0
  index ld;
  int outside;       // rows of the matrix from the block's first on: fewer than OUTER only in small matrices
  bool aligned;      // as far as it matters
  const in_t* next;  // the next tile; with OWN_POINTERS, this work-item's first chunk of it
  Vector<in_t, WIDTH> chunks[EACH];

  SYCL_MAT_MEMBER Operand(const in_t* matrix, index ld_, index first, index extent, index begin, int item)
      : from(matrix + (ALONG_K ? first * ld_ : first)), ld(ld_), outside(int(min(extent - first, OUTER))) {
    constexpr index bytes = WIDTH * sizeof(in_t);
    next = from + (ALONG_K ? begin : begin * ld);
    aligned = (reinterpret_cast<index>(next) | (ld * index(sizeof(in_t)))) % bytes == 0;
    if constexpr (EVEN && OWN_POINTERS) next += line_of(item, 0) * ld + column_of(item, 0);
  }
  /// Whole tiles can be loaded by load(): no row is missing.
  SYCL_MAT_MEMBER bool simple() const { return outside == OUTER; }

  /// Line and first element of this work-item's chunk number q.
  SYCL_MAT_INLINE int line_of(int item, int q) {
    if constexpr (EVEN) return item / PER_LINE + q * (ITEMS / PER_LINE);
    return (item + q * ITEMS) / PER_LINE;
  }
  SYCL_MAT_INLINE int column_of(int item, int q) {
    if constexpr (EVEN) return item % PER_LINE * WIDTH;
    return (item + q * ITEMS) % PER_LINE * WIDTH;
  }
  SYCL_MAT_INLINE bool has(int item, int q) { return CHUNKS % ITEMS == 0 || item + q * ITEMS < CHUNKS; }

  /// Starts the loads of the next tile, which is whole.
  SYCL_MAT_MEMBER void load(int item) {
    if (PREFERS_ALIGNED && aligned) {
#pragma unroll
      for (int q = 0; q < EACH; ++q)
        if (has(item, q)) chunks[q] = load_constant_aligned<WIDTH>(next + offset(item, q));
    } else {
#pragma unroll
      for (int q = 0; q < EACH; ++q)
        if (has(item, q)) chunks[q] = load_unaligned<WIDTH>(next + offset(item, q));
    }
    next += ALONG_K ? index(TILE_K) : TILE_K * ld;
  }
  SYCL_MAT_MEMBER index offset(int item, int q) const {
    return EVEN && OWN_POINTERS ? q * (ITEMS / PER_LINE) * ld : line_of(item, q) * ld + column_of(item, q);
  }

  /// The same for any tile, at k0. `inside` elements along k exist; the first `shared` were in the tile before and count as zeros.
  SYCL_MAT_MEMBER void load_any(int item, index k0, int inside, int shared) {
    const in_t* tile = from + (ALONG_K ? k0 : k0 * ld);
#pragma unroll
    for (int q = 0; q < EACH; ++q) {
      if (!has(item, q)) continue;
      const int line = line_of(item, q), column = column_of(item, q);
      load_masked(tile, q, line, column, inside);
#pragma unroll
      for (int e = 0; e < WIDTH; ++e)
        if ((ALONG_K ? column + e : line) < shared) chunks[q][e] = in_t(0);
    }
  }

  /// Beyond the matrix's edge the last row is read again (nobody stores what comes of it), beyond the end of k zeros are taken.
  SYCL_MAT_MEMBER void load_masked(const in_t* tile, int q, int line, int column, int inside) {
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
      const int outer = ALONG_K ? line : column + e, k = ALONG_K ? column + e : line;
      const index o = outer < outside ? outer : outside - 1, p = k < inside ? k : inside - 1;
      const in_t x = tile[ALONG_K ? o * ld + p : p * ld + o];
      chunks[q][e] = k < inside ? x : in_t(0);
    }
  }

  /// Waits for the loads and puts the chunks into a page.
  SYCL_MAT_MEMBER void store(int item, acc_t* page) {
#pragma unroll
    for (int q = 0; q < EACH; ++q) {
      if (!has(item, q)) continue;
      const int line = line_of(item, q), column = column_of(item, q);
      if constexpr (ALONG_K == BY_K) {  // turned round on the way
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) page[(column + e) * PITCH + line] = widen(chunks[q][e]);
      } else {
        Vector<acc_t, WIDTH> wide;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) wide[e] = widen(chunks[q][e]);
        acc_t* to = page + line * PITCH + column;
        if constexpr (PITCH % WIDTH == 0 && WIDTH <= 8) {
          *reinterpret_cast<Vector<acc_t, WIDTH>*>(to) = wide;
        } else {
          *reinterpret_cast<UnalignedVector<acc_t, WIDTH>*>(to) = wide;
        }
      }
    }
  }

  /// The BATCH elements that work-item `lane` multiplies at k.
  template <int TILE, int BATCH>
  SYCL_MAT_INLINE void read(const acc_t* page, int lane, int k, acc_t (&fragment)[BATCH]) {
    constexpr int piece = gcd(BATCH, 4);
    if constexpr (BY_K && PITCH % piece == 0) {
#pragma unroll
      for (int i = 0; i < BATCH; i += piece) {
        const auto v = load_aligned<piece>(page + k * PITCH + place<TILE, BATCH>(lane, i));
#pragma unroll
        for (int e = 0; e < piece; ++e) fragment[i + e] = v[e];
      }
    } else {
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int outer = place<TILE, BATCH>(lane, i);
        fragment[i] = page[BY_K ? k * PITCH + outer : outer * PITCH + k];
      }
    }
  }
};

using TileA = Operand<BLOCK_M, !TRANS_A, A_TRANSPOSED != 0>;
using TileB = Operand<BLOCK_N, TRANS_B != 0, true>;

constexpr int PAGE = TileA::SIZE + TileB::SIZE;
struct alignas(64) Pages {
  acc_t page[LOCAL ? 2 : 0][PAGE];
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

/// Sums over k in [begin, end), through local memory.
SYCL_MAT_INLINE void multiply_local(Sums& sums, const Args& g, const Place& at, const in_t* a, const in_t* b, index first_i, index first_j,
                                    index begin, index end) {
  TileA tile_a(a, g.lda, first_i, g.m, begin, at.item);
  TileB tile_b(b, g.ldb, first_j, g.n, begin, at.item);
  auto& pages = contents(local).page;
  const int whole = int((end - begin) / TILE_K), tiles = int((end - begin + TILE_K - 1) / TILE_K);
  const int simple = tile_a.simple() && tile_b.simple() ? whole : 0;  // tiles that need no second look

  const auto load = [&](int t) SYCL_MAT_LAMBDA {
    if (t < simple) {
      tile_a.load(at.item);
      tile_b.load(at.item);
    } else {
      // The last tile is moved back over what the one before it had, if the matrix is deep enough.
      const index k0 = begin + index(t) * TILE_K, missing = k0 + TILE_K - end;
      const int shared = missing > 0 && end >= TILE_K ? int(missing) : 0;
      const int inside = int(min(end - k0 + shared, TILE_K));
      tile_a.load_any(at.item, k0 - shared, inside, shared);
      tile_b.load_any(at.item, k0 - shared, inside, shared);
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
    const bool more = t + 1 < tiles;
    if (more) load(t + 1);
    if constexpr (AHEAD == 1) read(page, 0, 0);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
      const int present = AHEAD ? k % 2 : 0;
      if constexpr (AHEAD == 0) read(page, k, 0);
      if (AHEAD && k + 1 < TILE_K) read(page, k + 1, 1 - present);
      if (AHEAD == 2 && k + 1 == TILE_K && more) {
        store(page ^ 1);
        barrier();
        read(page ^ 1, 0, 1 - present);
      }
      add(sums, of_a[present], of_b[present]);
    }
    page ^= 1;
    if constexpr (AHEAD != 2) {
      if (more) store(page);
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

/// Leaves the sums in scratch memory; true for the work-items of the group that came last, which then hold the sums of all.
/// Scratch: one counter a block (zero before and after), then SPLIT_K times BLOCK_M·BLOCK_N sums a block.
SYCL_MAT_INLINE bool gather(Sums& sums, const Args& g, const Place& at, void* scratch, int split, index block, index counters) {
  int* counter = static_cast<int*>(scratch) + block;
  acc_t* parts =
      reinterpret_cast<acc_t*>(static_cast<char*>(scratch) + (counters * 4 + 255) / 256 * 256) + block * SPLIT_K * g.scratch_stride;
  acc_t* mine = parts + split * g.scratch_stride + at.item;
#pragma unroll
  for (int i = 0; i < BATCH_M; ++i)
#pragma unroll
    for (int j = 0; j < BATCH_N; ++j) mine[(i * BATCH_N + j) * ITEMS] = sums.at[i][j];
  device_fence();
  barrier();
  if (at.item == 0) contents(local).last = fetch_add(counter, 1) == SPLIT_K - 1;
  barrier();
  if (!contents(local).last) return false;
  device_fence();
#pragma unroll
  for (int i = 0; i < BATCH_M; ++i)
#pragma unroll
    for (int j = 0; j < BATCH_N; ++j) {
      acc_t sum = 0;
      for (int s = 0; s < SPLIT_K; ++s) sum += parts[s * g.scratch_stride + at.item + (i * BATCH_N + j) * ITEMS];
      sums.at[i][j] = sum;
    }
  if (at.item == 0) *counter = 0;
  return true;
}

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

KERNEL_WITH_SUB_GROUP(3, SUB_GROUP)
tiled(const in_t* __restrict__ a, const in_t* __restrict__ b, const out_t* c, out_t* d, const acc_t* __restrict__ bias, void* scratch,
      Args g) {
  // All groups stand in one line, which devices allow to be longest: columns, rows, splits, matrices of the stack.
  const int rows = int((g.m + BLOCK_M - 1) / BLOCK_M), columns = int((g.n + BLOCK_N - 1) / BLOCK_N), blocks = rows * columns;
  const int number = group_id(0) % blocks, split = group_id(0) / blocks % SPLIT_K, batch = group_id(0) / blocks / SPLIT_K;
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, batch);
  const Place at{local_id(1) * TILE_N + local_id(0), local_id(1), local_id(0)};

  // Which block: row by row, or SWIZZLE block rows side by side so that groups that run together share more of A and B.
  int block_row = number / columns, block_column = number % columns;
  if constexpr (SWIZZLE > 1) {
    const int band = number / (SWIZZLE * columns), inside = number - band * SWIZZLE * columns;
    const int height = rows - band * SWIZZLE < SWIZZLE ? rows - band * SWIZZLE : SWIZZLE;
    block_row = band * SWIZZLE + inside % height;
    block_column = inside / height;
  }
  const index own_i = index(block_row) * BLOCK_M, own_j = index(block_column) * BLOCK_N;
  const index first_i = g.m >= BLOCK_M ? min(own_i, g.m - BLOCK_M) : 0, first_j = g.n >= BLOCK_N ? min(own_j, g.n - BLOCK_N) : 0;

  // Splits are whole tiles, the last ones may be empty.
  const index depth = ((g.k + TILE_K - 1) / TILE_K + SPLIT_K - 1) / SPLIT_K * TILE_K;
  const index begin = split * depth, end = min(g.k, begin + depth);

  Sums sums;
  if (begin < end) {
    if constexpr (LOCAL) {
      multiply_local(sums, g, at, a0, b0, first_i, first_j, begin, end);
    } else {
      multiply_direct(sums, g, at, a0, b0, first_i, first_j, begin, end);
    }
  }
  if constexpr (SPLIT_K > 1) {
    const int counters = group_count(0) / SPLIT_K;
    if (!gather(sums, g, at, scratch, split, index(batch) * blocks + number, counters)) return;
  }
  store(sums, g, at, c0, d0, bias, first_i, first_j, own_i, own_j);
}

}  // namespace sycl_mat
