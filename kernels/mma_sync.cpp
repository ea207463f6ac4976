// mma_sync: float64, float32, float16 and bfloat16 on the tensor units of NVIDIA devices from compute capability 8.0 on.
//
//         N →  WARPS_N · MMA_N · 8             A block computes one tile of D. Its warps copy pages of A and B, 64 bytes deep, as they
//        ┌───────────┬───────────┐             are into local memory (cp.async), STAGES - 1 of them ahead, and read each page once: every
//   M    │  warp 0   │  warp 1   │             warp computes MMA_M × MMA_N blocks of 16×8 sums.
//   ↓    ├───────────┼───────────┤
//        │  warp 2   │  warp 3   │             Where there are too few tiles for the device, split_k blocks share one along k.
//        └───────────┴───────────┘
//
// The tensor units' own float32 sums round worse than float32. So the terms of one page (16 of float32, 32 of 16-bit numbers) are summed
// there, in fresh accumulators, and those results are added up in float32 registers. Float64 they multiply and add as IEEE says.
//
// float32: the units multiply TF32 numbers (11 bits of mantissa). A float32 is the sum of two of them, x = big + small, so
//   A·B ≈ small(A)·big(B) + big(A)·small(B) + big(A)·big(B)
// where what is left out, small·small, is below 2⁻²⁴ of the product. What TF32 cannot split makes a result that is infinite or NaN:
// infinities and NaN themselves, values that round up to infinity (their small part is infinite or NaN), and values with bits below 2⁻¹³⁶,
// which no denormal TF32 holds (a NaN is put in their place). A block that finds such a result computes its tile again with plain
// multiply-adds in the order of k, as the other kernels do.
#include "ptx.hpp"

// constants: begin
constexpr int WARPS_M = 2;
constexpr int WARPS_N = 2;
constexpr int MMA_M = 4;          // blocks of 16 rows a warp computes: 2 or 4
constexpr int MMA_N = 8;          // blocks of 8 columns: 4 or 8
constexpr int STAGES = 3;         // pages in local memory
constexpr int BLOCKS = 2;         // that shall fit into the registers of one multiprocessor
constexpr int LARGE_FLOAT64 = 0;  // 1: with the float64 instructions of compute capability 9.0, four times the size of those before
// constants: end

#define INLINE __attribute__((always_inline)) inline

namespace sycl_mat {
constexpr int threads = 32 * WARPS_M * WARPS_N;
constexpr int TILE_ROWS = WARPS_M * MMA_M * 16, tile_cols = WARPS_N * MMA_N * 8;
}  // namespace sycl_mat

#include "mma_sync_operand.hpp"
#include "tf32_split.hpp"
#include "tile_shares.hpp"

namespace sycl_mat {

using OperandA = Operand<TILE_ROWS, 2 * MMA_M, !TRANS_A>;
using OperandB = Operand<tile_cols, MMA_N, TRANS_B != 0>;
constexpr int page_bytes = OperandA::page_bytes + OperandB::page_bytes;

// The sums go to D by way of local memory, 16 rows of a warp at a time: neighbouring lanes then write neighbours.
constexpr int warp_cols = MMA_N * 8;
constexpr bool across = !TRANS_B && element_bytes >= 4;    // neighbouring columns that a lane holds lie in neighbouring blocks
constexpr int run = across && element_bytes == 4 ? 4 : 2;  // so many
constexpr int pitch = warp_cols + (across ? run : 8);      // numbers from a row to the next: stores without bank conflicts
constexpr int staging_bytes = WARPS_M * WARPS_N * 16 * pitch * int(sizeof(acc_t));  // in the pages' place
struct alignas(128) Pages {
  char bytes[STAGES * page_bytes > staging_bytes ? STAGES * page_bytes : staging_bytes];
};
static local_memory_of<Pages> local_pages;

using Sums = acc_t[MMA_M][MMA_N][4];

/// What a block computes: stages begin … end - 1 of a tile. split_k blocks share one, split_n stages each, the last of them fewer.
struct Block {
  int tile, part, begin, end;
  Place at;
  Matrices of;
  INLINE Block(const Matrices& whole, const Args& g) {
    const Grid grid(g);
    const int id = fresh_block_id(), parts = int(g.split_k);
    tile = parts == 1 ? id : id / parts;
    part = id - tile * parts;
    begin = int(min(part * g.split_n, grid.stages));
    end = int(min(begin + g.split_n, grid.stages));
    at = place_of(tile, grid);
    of = matrices_at(at, whole, g);
  }
};

/// Float32 numbers into big parts, in their place, and small ones; and the least of them.
template <int rows, int columns>
INLINE void split_all(unsigned (&x)[rows][columns], unsigned (&small)[rows][columns], float& least) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const float whole = __builtin_bit_cast(float, x[i][j]);
      split(whole, x[i][j], small[i][j]);
      least = smaller(least, whole);
    }
}

/// Whether numbers of a page that this lane multiplies lose bits. Rare: it reads them again. (By itself, without its warp.)
template <class Of>
INLINE unsigned look_at(unsigned from, int slots) {
  unsigned lost = 0;
#pragma unroll 1
  for (int slot = 0; slot < slots; slot += 4) {
    unsigned x[4][4];
    Of::read_slots(from, slot, x);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) lost |= lost_bits(__builtin_bit_cast(float, x[i][e]));
  }
  return lost;
}

/// 16-bit numbers are read before the next page's copies are issued, and left operands one ahead: a third faster. Float32 numbers have more
/// to compute meanwhile and no registers for that: 4 % slower.
constexpr bool ahead = ELEMENT != 0;

constexpr int steps = 2;  // instructions along k that a page holds, whose products are added up in the tensor units
/// Operands of a warp: all columns of a page, 16 of its rows.
struct Operands {
  unsigned right[MMA_N][4], left[steps][4];
};
INLINE void read_first(Operands& first, unsigned a, unsigned b) {
  OperandB::read_right(b, first.right);
  OperandA::read_left(a, 0, first.left);
}

/// sums += the products of one page, in float64. Its first operands have been read.
template <class Wide>
INLINE void multiply_wide(Wide& sums, Operands& of, unsigned a) {
#pragma unroll
  for (int i = 0; i < MMA_M; ++i) {
    unsigned left[2][4];
    __builtin_memcpy(left, of.left, sizeof(left));
    if (i + 1 < MMA_M) OperandA::read_left(a, i + 1, of.left);
#pragma unroll
    for (int j = 0; j < MMA_N; ++j) mma(sums[i][j], left, of.right[j]);
  }
}

/// The same of the other types. With `ahead`, its first operands have been read.
INLINE void multiply(Sums& sums, Operands& of, unsigned a, unsigned b, unsigned& lost) {
  float least = 1;
  unsigned right_small[MMA_N][4];
  if (!ahead) OperandB::read_right(b, of.right);
  if constexpr (ELEMENT == 0) split_all(of.right, right_small, least);
#pragma unroll
  for (int i = 0; i < MMA_M; ++i) {
    unsigned left[steps][4], left_small[steps][4];
    if constexpr (ahead) {
      __builtin_memcpy(left, of.left, sizeof(left));
      if (i + 1 < MMA_M) OperandA::read_left(a, i + 1, of.left);
    } else {
      OperandA::read_left(a, i, left);
    }
    float d[MMA_N][4];
    const auto add = [&](const unsigned (&x)[4], const unsigned (&y)[MMA_N][4], int step, auto fresh) SYCL_MAT_LAMBDA {
#pragma unroll
      for (int j = 0; j < MMA_N; ++j) mma<!decltype(fresh)::value>(d[j], x, y[j][2 * step], y[j][2 * step + 1]);
    };
    if constexpr (ELEMENT == 0) {
      split_all(left, left_small, least);
      add(left_small[0], of.right, 0, Number<1>{});  // the small products first
      add(left[0], right_small, 0, Number<0>{});
      add(left_small[1], of.right, 1, Number<0>{});
      add(left[1], right_small, 1, Number<0>{});
      add(left[0], of.right, 0, Number<0>{});
    } else {
      add(left[0], of.right, 0, Number<1>{});
    }
    add(left[1], of.right, 1, Number<0>{});
#pragma unroll
    for (int j = 0; j < MMA_N; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sums[i][j][e] += d[j][e];
        asm volatile("" : "+f"(sums[i][j][e]));  // here and now, or all d would be kept until the page has been looked at
      }
  }
  if constexpr (ELEMENT == 0)
    if (least < keeps_all_bits) lost |= look_at<OperandA>(a, 2 * MMA_M) | look_at<OperandB>(b, MMA_N);
}

/// Leaves the sums in scratch: g.scratch_stride numbers in arrivals at each tile, then the parts. True for the block that arrives last,
/// which then holds the sum of all parts, added up in the order of k.
INLINE bool combine(Sums& sums, const Args& g, void* scratch, const Block& block) {
  const int parts = int(g.split_k);
  constexpr index part_size = TILE_ROWS * tile_cols;
  acc_t* first = static_cast<acc_t*>(scratch) + g.scratch_stride + index(block.tile) * parts * part_size + thread_id() * 4;
  acc_t* mine = first + block.part * part_size;
#pragma unroll
  for (int i = 0; i < MMA_M; ++i)
#pragma unroll
    for (int j = 0; j < MMA_N; ++j)
      *reinterpret_cast<Vector<acc_t, 4>*>(mine + (i * MMA_N + j) * threads * 4) =
          Vector<acc_t, 4>{sums[i][j][0], sums[i][j][1], sums[i][j][2], sums[i][j][3]};
  block_barrier();
  int* counter = static_cast<int*>(scratch) + block.tile;
  bool is_last = false;
  if (thread_id() == 0) is_last = count_arrival(counter) == parts - 1;
  if (!any_of_block(is_last)) return false;
  if (thread_id() == 0) *counter = 0;
#pragma unroll
  for (int i = 0; i < MMA_M; ++i)
#pragma unroll
    for (int j = 0; j < MMA_N; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
  for (int p = 0; p < parts; ++p) {
    const acc_t* from = first + p * part_size;
#pragma unroll
    for (int i = 0; i < MMA_M; ++i)
#pragma unroll
      for (int j = 0; j < MMA_N; ++j) {
        const auto v = load_from_others(from + (i * MMA_N + j) * threads * 4);
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] += v[e];
      }
  }
  return true;
}

/// A tile once more, with multiply-adds in the order of k: a thread computes some rows and columns at a time.
INLINE void compute_again(const Block& block, const Args& g, const acc_t* bias) {
  const Matrices& of = block.of;
  const index first_row = block.at.row, first_col = block.at.col;
  constexpr int down = threads / 8, rows = TILE_ROWS / down < 4 ? TILE_ROWS / down : 4, cols = 4;
  const int id = thread_id();
  for (int i0 = id / 8; i0 < TILE_ROWS; i0 += down * rows)
    for (int j0 = id % 8; j0 < tile_cols; j0 += 8 * cols) {
      acc_t sums[rows][cols] = {};
      for (index k = 0; k < g.k; ++k) {
        acc_t x[rows], y[cols];
#pragma unroll
        for (int i = 0; i < rows; ++i) x[i] = widen(of.a[at_a(g, min(first_row + i0 + down * i, g.m - 1), k)]);
#pragma unroll
        for (int j = 0; j < cols; ++j) y[j] = widen(of.b[at_b(g, k, min(first_col + j0 + 8 * j, g.n - 1))]);
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int j = 0; j < cols; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
      }
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < cols; ++j) {
          const index row = first_row + i0 + down * i, col = first_col + j0 + 8 * j;
          if (row < g.m && col < g.n) of.d[row * g.ldd + col] = epilogue(sums[i][j], row, col, of.c, bias, g);
        }
    }
}

INLINE void write(const Sums& sums, const Block& block, const Args& g, const acc_t* bias) {
  constexpr int each = 16 / int(sizeof(acc_t)), lanes = warp_cols / each;  // columns that a lane writes, and lanes a row
  const int lane = lane_id(), group = lane / 4, t = lane % 4, warp = fresh_thread_id() / 32;
  const unsigned staging = local_address(contents(local_pages).bytes) + warp * 16 * pitch * int(sizeof(acc_t));
  const Matrices& of = block.of;
  const index row = block.at.row + warp / WARPS_N * MMA_M * 16, col = block.at.col + warp % WARPS_N * warp_cols;
  const index places = reinterpret_cast<index>(of.d) | g.ldd * index(sizeof(out_t));
  const bool vectors = places % (each * sizeof(out_t)) == 0;
#pragma unroll
  for (int i = 0; i < MMA_M; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int j = 0; j < MMA_N; j += across ? run : 1)
#pragma unroll
        for (int e = 0; e < 2; e += across ? 1 : 2) {
          acc_t values[run];  // two columns of one block, or one of each of some
#pragma unroll
          for (int x = 0; x < run; ++x) values[x] = across ? sums[i][j + x][2 * h + e] : sums[i][j][2 * h + x];
          unsigned words[sizeof(values) / 4];
          __builtin_memcpy(words, values, sizeof(values));
          store_words(staging + ((h * 8 + group) * pitch + OperandB::outer_of(j, 2 * t + e)) * int(sizeof(acc_t)), words);
        }
    warp_barrier();
    for (int r = lane / lanes; r < 16; r += 32 / lanes) {
      unsigned words[4];
      load_words(staging + (r * pitch + lane % lanes * each) * int(sizeof(acc_t)), words);
      acc_t values[each];
      __builtin_memcpy(values, words, sizeof(values));
      const index at_row = row + OperandA::outer_of(2 * i + r / 8, r % 8), at_col = col + lane % lanes * each;
      if (at_row >= g.m) continue;
      if (at_col + each <= g.n) {
        Vector<out_t, each> results;
#pragma unroll
        for (int e = 0; e < each; ++e) results[e] = epilogue(values[e], at_row, at_col + e, of.c, bias, g);
        out_t* to = of.d + at_row * g.ldd + at_col;
        if (vectors) {
          *reinterpret_cast<Vector<out_t, each>*>(to) = results;
        } else {
#pragma unroll
          for (int e = 0; e < each; ++e) to[e] = results[e];
        }
      } else {
#pragma unroll
        for (int e = 0; e < each - 1; ++e)
          if (at_col + e < g.n) of.d[at_row * g.ldd + at_col + e] = epilogue(values[e], at_row, at_col + e, of.c, bias, g);
      }
    }
    warp_barrier();
  }
}

KERNEL(3)
mma_sync(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void* scratch, Args g) {
  const Matrices whole{a, b, c, d};
  Sums sums = {};
  {
    const Block block(whole, g);
    OperandA next_a(block.of.a, g.lda, g.a_inner, g.a_outer, block.at.row, g.m, index(block.begin) * tile_k);
    OperandB next_b(block.of.b, g.ldb, g.b_inner, g.b_outer, block.at.col, g.n, index(block.begin) * tile_k);
    const int warp = same_in_warp(thread_id() / 32);
    const unsigned first = local_address(contents(local_pages).bytes), last = first + (STAGES - 1) * page_bytes;
    unsigned page_a = first + OperandA::place<true>(warp / WARPS_N, lane_id());
    unsigned page_b = first + OperandA::page_bytes + OperandB::place<false>(warp % WARPS_N, lane_id());
    int used = 0;
    unsigned next_page = first, lost = 0;
    int left = block.end - block.begin;  // stages to be copied
    int depth_left = int(min(g.k - index(block.begin) * tile_k, 1 << 30));
    for (int stage = 1 - STAGES; stage < block.end - block.begin; ++stage) {
      // The page is there for all, and nobody reads any more what was in the next one's place.
      copies_wait<STAGES - 2>();
      block_barrier();
      Operands operands;
      if (ahead) read_first(operands, page_a + used, page_b + used);
      if (left > 0) {
        const int depth = depth_left < tile_k ? depth_left : tile_k;
        next_a.copy(next_page, a, g.lda, depth);
        next_b.copy(next_page + OperandA::page_bytes, b, g.ldb, depth);
        next_page = next_page == last ? first : next_page + page_bytes;
        depth_left -= tile_k;
        --left;
      }
      copies_commit();
      if (stage < 0) continue;
      if constexpr (ELEMENT == 1) {
        multiply_wide(sums, operands, page_a + used);
      } else {
        multiply(sums, operands, page_a + used, page_b + used, lost);
      }
      used = used == (STAGES - 1) * page_bytes ? 0 : used + page_bytes;
    }
    if constexpr (ELEMENT == 0)
      if (lost) sums[0][0][0] = __builtin_bit_cast(float, a_nan);
  }

  // Computed once more rather than kept.
  const Block block(whole, g);
  if (g.split_k > 1 && !combine(sums, g, scratch, block)) return;
  if constexpr (ELEMENT == 0) {
    float probe = 0;  // 0 · x is 0, or NaN where x is infinite or NaN
#pragma unroll
    for (int i = 0; i < MMA_M; ++i)
#pragma unroll
      for (int j = 0; j < MMA_N; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) probe = multiply_add(float(sums[i][j][e]), 0.0f, probe);
    if (any_of_block(probe != 0)) return compute_again(block, g, bias);
  } else {
    block_barrier();  // all have read the last page
  }
  write(sums, block, g, bias);
}

}  // namespace sycl_mat

#undef LAUNCH_BOUNDS_NAMES
#undef LAUNCH_BOUNDS_VALUES
#define LAUNCH_BOUNDS_NAMES , "nvvm.maxntid", "nvvm.minctasm"
#define LAUNCH_BOUNDS_VALUES , sycl_mat::threads, BLOCKS
