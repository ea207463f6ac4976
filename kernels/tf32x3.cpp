// tf32x3: float32 products on Hopper's tensor units, with smaller errors than float32 multiply-adds have.
//
// The tensor units multiply TF32 numbers (11 bits of mantissa). A float32 is the sum of two of them, x = big + small, so
//   A·B ≈ small(A)·big(B) + big(A)·small(B) + big(A)·big(B)
// where what is left out, small·small, is below 2⁻²⁴ of the product. The units' own sums round worse than float32; so 32 terms at most
// are summed there, and those results are added up in float32 registers.
//
//        N →  128 columns                       A block of 512 work-items computes TILE_ROWS × 128 results, 32 deep a stage:
//       ┌─────────┬─────────┐                     producers (2 warp-groups) read A, split it and store both parts, swizzled; they copy
//   M   │  64 of  │  64 of  │                     B as it is. Up to STAGES stages are under way.
//   ↓   │ group 0 │ group 1 │                     consumers (2 warp-groups, 64 columns each) split B's elements in registers and
//       └─────────┴─────────┘                     compute Dᵀ = Bᵀ·Aᵀ, because wgmma takes its left operand from registers.
//
// Work: one block a multiprocessor, each takes whole tiles in turn ("tile, tile + blocks, …"). The first `split_n` tiles are instead cut
// along K into equal shares of `split_k` stages, one a block (and one stage more for the first `split_m` blocks), so that no
// multiprocessor idles: the parts of a tile go to scratch and the block that arrives last adds them, always in K's order. The same call
// gives the same bits.
//
// What TF32 cannot split makes a result that is infinite or NaN: infinities and NaN themselves, values that round up to infinity (their
// small part is infinite or NaN), and values with bits below 2⁻¹³⁶, which no denormal TF32 holds (a NaN is put in their place). A
// warp-group that finds such a result computes its 64 columns of the tile again with plain multiply-adds in the order of k, as the
// other kernels do.
#include "wgmma.hpp"

// constants: begin
constexpr int TILE_ROWS = 128;          // 64 or 128
constexpr int TILE_COLS = 128;          // 128 or 256 (with 128 rows)
constexpr int SWAPPED = 0;              // Dᵀ = Bᵀ·Aᵀ is computed: a is B and b is A, TRANS_A and TRANS_B speak of those, m and n as well
constexpr int STAGES = 4;               // tiles of A and B in local memory
constexpr int PRODUCER_REGISTERS = 48;  // 48 + 208, or any two multiples of 8 with this sum
constexpr int CONSUMER_REGISTERS = 208;
// constants: end

// One call left is one too many: wgmma would be serialised around it.
#define INLINE __attribute__((always_inline)) inline

namespace sycl_mat {

constexpr int tile_cols = TILE_COLS, tile_k = 32, group_cols = tile_cols / 2;
constexpr int consumers = 256, producers = 256;
constexpr int a_bytes = TILE_ROWS * tile_k * 4, b_bytes = tile_k * tile_cols * 4, page_bytes = 2 * a_bytes + b_bytes;

struct alignas(1024) Pages {
  char bytes[STAGES * page_bytes];   // big(A), small(A), B
  unsigned long long full[STAGES];   // a stage can be computed
  unsigned long long empty[STAGES];  // a stage can be overwritten
};
static local_memory_of<Pages> local_pages;
inline unsigned full(unsigned pages, int slot) { return pages + STAGES * page_bytes + 8 * slot; }
inline unsigned empty(unsigned pages, int slot) { return full(pages, slot + STAGES); }

}  // namespace sycl_mat

#include "tile_shares.hpp"

namespace sycl_mat {

// ---- splitting ------------------------------------------------------------------------------------------------------------------

inline unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }

/// x as two TF32 numbers. `big` is rounded to the nearest; the units ignore the low 13 bits of `small`.
INLINE void split(float x, unsigned& big, unsigned& small) {
  big = (bits_of(x) + 0x1000) & 0xffffe000;
  small = bits_of(x - __builtin_bit_cast(float, big));
}
/// Other than zero where x has bits below 2⁻¹³⁶: only then is x · 2⁻¹³ rounded. (By multiply-adds, because integer operations are what this
/// kernel is short of.) Larger numbers than keeps_all_bits have none, so that the least of many is looked at first.
INLINE unsigned lost_bits(float x) { return bits_of(multiply_add(x * 0x1p-13f, -0x1p13f, x)); }
constexpr float keeps_all_bits = 0x1p-112f;
INLINE float smaller(float least, float x) { return __builtin_fminf(least, __builtin_fabsf(x)); }
constexpr unsigned a_nan = 0x7fffffff;

/// True where every matrix of an operand begins at, and every row is apart by, a multiple of `bytes`.
inline bool aligned_to(int bytes, const float* first, index ld, index inner, index outer) {
  return ((reinterpret_cast<index>(first) | (ld | inner | outer) * 4) & (bytes - 1)) == 0;
}

// ---- producers ------------------------------------------------------------------------------------------------------------------

/// A producer's part of every stage of A: 4 neighbours along k, in a_rows rows. Stored [k][m], up to 4 of its rows are neighbours, so that
/// loads are vectors along m, and the next ones 64 apart; else they are producers / 8 apart.
constexpr int a_rows = TILE_ROWS * 8 / producers, a_vector = a_rows < 4 ? a_rows : 4;
constexpr int row_of(int q) { return TRANS_A ? q % a_vector + q / a_vector * 64 : q * (producers / 8); }
/// … and of B: chunks of 4 neighbours along n (along k where B is stored [n][k]), rows b_step apart.
constexpr int b_chunks = tile_cols * 8 / producers, b_line_chunks = TRANS_B ? 8 : tile_cols / 4, b_step = producers / b_line_chunks;
/// Where B's rows do not begin at multiples of 16 bytes: single elements, of which a warp copies 32 neighbours.
constexpr int b_singles = tile_cols * tile_k / producers, b_line_bytes = b_line_chunks * 16;

/// The 16-byte chunks of B's line number `line` are in the order chunk ^ b_swizzle(line): consumers then read without bank conflicts.
constexpr int b_swizzle(int line) { return TRANS_B ? line / 2 % 8 : 2 * (line % 4); }

/// The next stage that a producer reads: this work-item's first elements, and how far the edges are.
struct Cursor {
  Work work;
  const in_t *a, *b;
  int rows_left, cols_left, k_left;  // from the stage's beginning to the edges
  int stages_left;                   // of the present part
  int plain;                         // of those, how many from here on lie wholly inside the matrices
};

struct Fetched {
  float a[a_rows][4];
};

/// Which 4 neighbours along k of A a producer reads, and its first row in the tile. Stored [m][k], 8 work-items read a row's 32 elements.
/// Stored [k][m], a warp reads 4 lines along k; 8 work-items that store together still meet 8 different chunks of the swizzled page.
INLINE int a_chunk(int id) { return TRANS_A ? id / 2 % 4 + id / 32 % 2 * 4 : id % 8; }
INLINE int a_row(int id) {
  if constexpr (!TRANS_A) return id / 8;
  const int low = id % 2, middle = id / 8 % 2, high = id / 16 % 2;
  return a_vector * ((a_vector == 4 ? low + 2 * middle : middle + 2 * low) + 4 * high + 8 * (id / 64));
}

struct Producer {
  const Args& g;
  Matrices whole;  // of the batch's first matrix
  int id;
  bool vectors_a, vectors_b;  // addresses and distances allow loads of vectors
  unsigned pages;             // local address

  INLINE void start_part(Cursor& c) const {
    const Grid grid(g);
    const Part part = c.work.next(grid);
    if (part.tile >= grid.tiles) return;
    const Place at = place_of(part.tile, grid);
    const Matrices of = matrices_at(at, whole, g);
    const index k = index(part.begin) * tile_k;
    constexpr index far = 1 << 20;
    c.a = of.a + at_a(g, at.row + a_row(id), k + a_chunk(id) * 4);
    c.b = of.b + at_b(g, k + (TRANS_B ? b_place() : b_line()), at.col + (TRANS_B ? b_line() : b_place()));
    c.rows_left = int(min(far, g.m - at.row));
    c.cols_left = int(min(far, g.n - at.col));
    c.k_left = int(min(1 << 30, g.k - k));
    c.stages_left = part.end - part.begin;
    c.plain = c.rows_left >= TILE_ROWS && c.cols_left >= tile_cols ? int(min(c.stages_left, c.k_left / tile_k)) : 0;
  }
  INLINE void advance(Cursor& c) const {
    if (--c.stages_left == 0) return start_part(c);
    c.a += TRANS_A ? tile_k * g.lda : tile_k;
    c.b += TRANS_B ? tile_k : tile_k * g.ldb;
    c.k_left -= tile_k;
    --c.plain;
  }

  INLINE void fetch_a(const Cursor& c, Fetched& fetched) const {
    const in_t* a = c.a;
    const auto place = [&](int q, int e) { return TRANS_A ? e * g.lda + row_of(q) : row_of(q) * g.lda + e; };
    if (c.plain <= 0) {
      const int k = c.k_left - a_chunk(id) * 4, rows = c.rows_left - a_row(id);
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = row_of(q) < rows && e < k ? a[place(q, e)] : 0.0f;
    } else if (!vectors_a) {
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = load_single(a + place(q, e));
    } else if constexpr (TRANS_A) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int q = 0; q < a_rows; q += a_vector) {
          const auto v = load_aligned<a_vector>(a + place(q, e));
#pragma unroll
          for (int i = 0; i < a_vector; ++i) fetched.a[q + i][e] = v[i];
        }
    } else {
#pragma unroll
      for (int q = 0; q < a_rows; ++q) {
        const auto v = load_aligned<4>(a + place(q, 0));
#pragma unroll
        for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
      }
    }
  }

  /// Where this producer's elements of B lie: its first line and its place there, of chunks or of single elements.
  INLINE int b_line() const { return vectors_b ? id / b_line_chunks : id / 32; }
  INLINE int b_place() const { return vectors_b ? id % b_line_chunks * 4 : id % 32; }

  /// B's lines in a page: along n, or, stored [n][k], along k.
  INLINE void copy_b(const Cursor& c, unsigned to) const {
    const int line = b_line(), lines = (TRANS_B ? c.cols_left : c.k_left) - line, along = (TRANS_B ? c.k_left : c.cols_left) - b_place();
    to += line * b_line_bytes;
    if (vectors_b) {
      to += (id % b_line_chunks ^ b_swizzle(line)) * 16;
      if (c.plain > 0) {
#pragma unroll
        for (int q = 0; q < b_chunks; ++q) copy_16(to + q * (producers * 16), c.b + q * b_step * g.ldb);
      } else {
#pragma unroll
        for (int q = 0; q < b_chunks; ++q)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const bool copy = q * b_step < lines && e < along;
            copy_4_or_zero(to + q * (producers * 16) + e * 4, copy ? c.b + q * b_step * g.ldb + e : whole.b, copy);
          }
      }
    } else {
      constexpr int each_line = b_line_chunks / 8, line_step = producers / 32;
      int lane = id % 32;
      asm volatile("" : "+r"(lane));  // or eight places would be computed before the loop and kept
      to += lane % 4 * 4;
      const auto each = [&](auto copy) __attribute__((always_inline)) {
#pragma unroll
        for (int q = 0; q < b_singles; ++q) {
          const int down = q / each_line * line_step, right = q % each_line * 32;
          copy(to + down * b_line_bytes + right * 4 + (lane / 4 ^ b_swizzle(line + down)) * 16, c.b + down * g.ldb + right, down, right);
        }
      };
      if (c.plain > 0) {
        each([&](unsigned at, const in_t* from, int, int) __attribute__((always_inline)) { copy_4(at, from); });
      } else {
        each([&](unsigned at, const in_t* from, int down, int right) __attribute__((always_inline)) {
          const bool copy = down < lines && right < along;
          copy_4_or_zero(at, copy ? from : whole.b, copy);
        });
      }
    }
  }

  /// A's elements, split, into a page.
  INLINE void store_row(char* page, const Fetched& fetched, int q, unsigned lost) const {
    const int row = a_row(id) + row_of(q);
    Vector<unsigned, 4> big, small;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      unsigned x, y;
      split(fetched.a[q][e], x, y);
      big[e] = x;
      small[e] = y;
    }
    if (lost) small[0] = a_nan;
    char* to = page + row * 128 + (a_chunk(id) ^ row % 8) * 16;
    *reinterpret_cast<Vector<unsigned, 4>*>(to) = big;
    *reinterpret_cast<Vector<unsigned, 4>*>(to + a_bytes) = small;
  }
  /// Whether any of them loses bits.
  INLINE unsigned look_at(const Fetched& fetched) const {
    float least[2] = {1, 1};
#pragma unroll
    for (int q = 0; q < a_rows; ++q)
#pragma unroll
      for (int e = 0; e < 4; ++e) least[e % 2] = smaller(least[e % 2], fetched.a[q][e]);
    unsigned lost = 0;
    if (smaller(least[0], least[1]) < keeps_all_bits) {
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e) lost |= lost_bits(fetched.a[q][e]);
    }
    return lost;
  }

  INLINE void run(char* first_page) const {
    Cursor next{Work(Grid(g)), whole.a, whole.b, 0, 0, 0, 0, 0};
    const int count = next.work.count(Grid(g));
    if (count == 0) return;
    start_part(next);
    Fetched fetched;
    fetch_a(next, fetched);
    int slot = 0, parity = 1;
    for (int stage = 0; stage < count; ++stage) {
      phase_wait(empty(pages, slot), parity);
      copy_b(next, pages + slot * page_bytes + 2 * a_bytes);
      phase_arrive_after_copies(full(pages, slot));
      // With small tiles A's next elements are on their way as soon as the present ones have left their registers; with large ones that was
      // 4 % slower.
      char* page = first_page + slot * page_bytes;
      const unsigned lost = look_at(fetched);
      const bool more = stage + 1 < count;
      advance(next);
      if (TILE_ROWS == 64 && !TRANS_A && more && vectors_a && next.plain > 0) {
#pragma unroll
        for (int q = 0; q < a_rows; ++q) {
          store_row(page, fetched, q, lost);
          const auto v = load_aligned<4>(next.a + row_of(q) * g.lda);
#pragma unroll
          for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
        }
        phase_arrive(full(pages, slot));
      } else {
#pragma unroll
        for (int q = 0; q < a_rows; ++q) store_row(page, fetched, q, lost);
        phase_arrive(full(pages, slot));
        if (more) fetch_a(next, fetched);
      }
      if (++slot == STAGES) slot = 0, parity ^= 1;
    }
  }
};

// ---- consumers ------------------------------------------------------------------------------------------------------------------

/// A consumer's part: of 64 columns each, TILE_ROWS / 2 sums.
constexpr int column_blocks = group_cols / 64, block_sums = TILE_ROWS / 2, sums_count = column_blocks * block_sums;

/// Eight pairs of neighbouring columns of B at k = t, t + 4, …; `from` is this lane's place in a page of B, for the first of them.
INLINE int place_in_b(int group, int warp, int lane) {
  const int g = lane / 4, t = lane % 4, col = group * group_cols + warp * 16 + 2 * g;
  int from = TRANS_B ? col * b_line_bytes + g * 16 + t * 4 : t * b_line_bytes + (col / 4 ^ 2 * t) * 16 + col % 4 * 4;
  asm("" : "+r"(from));  // in one register, rather than its parts in many
  return from;
}
INLINE void read_b(const char* b, int from, float (&pairs)[8][2]) {
  if constexpr (TRANS_B) asm volatile("" : "+r"(from));  // or eight places would be computed before the loop and kept
#pragma unroll
  for (int f = 0; f < 8; ++f) {
    if constexpr (TRANS_B) {
      const char* at = b + (from ^ f * 16);
      pairs[f][0] = *reinterpret_cast<const float*>(at);
      pairs[f][1] = *reinterpret_cast<const float*>(at + b_line_bytes);
    } else {
      const auto v = *reinterpret_cast<const Vector<float, 2>*>(b + from + 4 * f * b_line_bytes);
      pairs[f][0] = v[0];
      pairs[f][1] = v[1];
    }
  }
}

/// sums += one stage: the small products first, then the big ones, in fresh accumulators.
struct Fragments {
  unsigned big[4][4], small[4][4];
};
INLINE void split_fragments(const float (&pairs)[8][2], Fragments& f) {
  float least[2] = {1, 1};
  unsigned lost = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      split(pairs[i][h], f.big[i / 2][i % 2 * 2 + h], f.small[i / 2][i % 2 * 2 + h]);
      if constexpr (column_blocks == 1)
        least[h] = smaller(least[h], pairs[i][h]);
      else
        lost |= lost_bits(pairs[i][h]);  // without a branch: it would need registers
    }
  if (column_blocks == 1 && smaller(least[0], least[1]) < keeps_all_bits) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) lost |= lost_bits(__builtin_bit_cast(float, f.big[i][j]) + __builtin_bit_cast(float, f.small[i][j]));
  }
  if (lost) f.small[0][0] = a_nan;
}

/// d ← the products of 64 columns and `rows` rows of a stage.
template <int rows>
INLINE void start_products(float (&d)[rows / 2], const Fragments& f, unsigned a) {
  const auto big = swizzled_block(a), small = swizzled_block(a + a_bytes);
  wgmma_fence();
  wgmma<rows, false>(d, f.small[0], big);
#pragma unroll
  for (int i = 1; i < 4; ++i) wgmma<rows, true>(d, f.small[i], big + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<rows, true>(d, f.big[i], small + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<rows, true>(d, f.big[i], big + 2 * i);
  wgmma_commit();
}

/// One element of D, in its own row and column.
INLINE void write_one(float sum, index i, index j, const Matrices& of, const acc_t* bias, const Args& g) {
  of.d[i * g.ldd + j] = epilogue(sum, i, j, of.c, bias, g);
}

/// The columns of a warp-group once more, with multiply-adds in the order of k: 8 columns and TILE_ROWS / 16 rows a work-item.
INLINE void compute_again(const Matrices of, const Args& g, const acc_t* bias, index first_row, index first_col, int id) {
  constexpr int rows = TILE_ROWS / 16, cols = 8;
  const in_t *a[rows], *b[cols];
  acc_t sums[rows][cols] = {};
#pragma unroll
  for (int i = 0; i < rows; ++i) a[i] = of.a + at_a(g, min(first_row + id / 8 + 16 * i, g.m - 1), 0);
#pragma unroll
  for (int j = 0; j < cols; ++j) b[j] = of.b + at_b(g, 0, min(first_col + id % 8 + 8 * j, g.n - 1));
  for (index k = 0; k < g.k; ++k) {
    acc_t x[rows], y[cols];
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = *a[i], a[i] += TRANS_A ? g.lda : 1;
#pragma unroll
    for (int j = 0; j < cols; ++j) y[j] = *b[j], b[j] += TRANS_B ? 1 : g.ldb;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < cols; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < cols; ++j) {
      const index row = first_row + id / 8 + 16 * i, col = first_col + id % 8 + 8 * j;
      if (row < g.m && col < g.n) write_one(sums[i][j], SWAPPED ? col : row, SWAPPED ? row : col, of, bias, g);
    }
}

/// Counters of arrivals for a shared tile and warp-group, and how many neighbouring blocks add up their parts first: so few that there are
/// fewer counters than that.
constexpr int counters_of_a_tile = 32;
INLINE int neighbours(int parts) {
  if (parts <= 8) return parts;
  int together = 3;
  while (together * together < parts) ++together;
  return together;
}

struct Consumer {
  const Args& g;
  Matrices whole;
  const acc_t* bias;
  void* scratch;  // arrivals at each shared tile, for either warp-group; from g.scratch_stride on the parts

  /// Adds up the parts of a shared tile: of many, first those of some neighbouring blocks, and then their sums. True for the block that
  /// arrived last: `sums` is then complete.
  INLINE bool combine(const Part& part, float (&sums)[sums_count]) const {
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

  INLINE void write(const Part& part, const float (&sums)[sums_count]) const {
    const int id = fresh_thread_id() % 128, group = fresh_thread_id() / 128;
    const Place at = place_of(part.tile, Grid(g));
    const Matrices of = matrices_at(at, whole, g);
    const index first_col = at.col + group * group_cols;
    const bool pairs_d = aligned_to(8, whole.d, g.ldd, g.d_inner, g.d_outer);  // stores of two
    float probe = 0;                                                           // 0 · x is 0, or NaN where x is infinite or NaN
#pragma unroll
    for (int i = 0; i < sums_count; ++i) probe = multiply_add(sums[i], 0.0f, probe);
    if (any_of_group(group, probe != 0)) {
      for (int block = 0; block < column_blocks; ++block) compute_again(of, g, bias, at.row, first_col + block * 64, id);
      return;
    }
    const int lane = id % 32;
    const index first_row = at.row + lane % 4 * 2;
    const index rows = SWAPPED ? g.n : g.m, columns = SWAPPED ? g.m : g.n;  // of D
#pragma unroll
    for (int block = 0; block < column_blocks; ++block) {
      const index col = first_col + block * 64 + id / 32 * 16 + lane / 4 * 2;
      if (col >= g.n) return;
#pragma unroll
      for (int j = 0; j < TILE_ROWS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // Two neighbours in a row of D: columns of the tile, or, swapped, its rows.
          const float* sum = sums + block * block_sums + 4 * j;
          const float left = sum[SWAPPED ? 2 * e : e], right = sum[SWAPPED ? 2 * e + 1 : e + 2];
          const index row = SWAPPED ? col + e : first_row + 8 * j + e, column = SWAPPED ? first_row + 8 * j : col;
          if (row >= rows || column >= columns) continue;
          if (pairs_d && column + 1 < columns) {
            const Vector<float, 2> pair = {epilogue(left, row, column, of.c, bias, g), epilogue(right, row, column + 1, of.c, bias, g)};
            *reinterpret_cast<Vector<float, 2>*>(of.d + row * g.ldd + column) = pair;
          } else {
            write_one(left, row, column, of, bias, g);
            if (column + 1 < columns) write_one(right, row, column + 1, of, bias, g);
          }
        }
    }
  }

  INLINE void run(const char* first_page, unsigned pages) const {
    Work work{Grid(g)};
    const int parts = work.parts(Grid(g));
    const int from = place_in_b(thread_id() / 128, thread_id() / 32 % 4, lane_id());
    int slot = 0, parity = 0;
    for (int i = 0; i < same_in_warp(parts); ++i) {
      const Part part = work.next(Grid(g));
      float sums[sums_count];
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] = 0;
      const auto wait_for_stage = [&](int slot, int parity) __attribute__((always_inline)) {
        phase_wait(full(pages, slot), parity);
        stores_to_wgmma();
      };
      const auto read = [&](int block, Fragments& into) __attribute__((always_inline)) {
        float pairs[8][2];
        read_b(first_page + slot * page_bytes + 2 * a_bytes + block * (TRANS_B ? 64 * b_line_bytes : 256), from, pairs);
        split_fragments(pairs, into);
      };
      if constexpr (column_blocks == 1) {
        // While a stage's products run, the next stage's B is read and split: between two stages there are only the sums to add up.
        Fragments even, odd;
        const auto compute = [&](const Fragments& present, Fragments& next, bool more) __attribute__((always_inline)) {
          float d[block_sums];
          start_products<TILE_ROWS>(d, present, pages + slot * page_bytes);
          const int used = slot;
          if (++slot == STAGES) slot = 0, parity ^= 1;
          if (more) {
            wait_for_stage(slot, parity);
            read(0, next);
          }
          wgmma_wait();
          phase_arrive(empty(pages, used));
#pragma unroll
          for (int i = 0; i < sums_count; ++i) sums[i] += d[i];
        };
        if (part.begin < part.end) {
          wait_for_stage(slot, parity);
          read(0, even);
        }
        for (int left = part.end - part.begin; left > 0; left -= 2) {
          compute(even, odd, left > 1);
          if (left == 1) break;
          compute(odd, even, left > 2);
        }
      } else {
        // Registers hold 64×64 products at a time; while they are added up, the other warp-group's run.
        for (int stage = part.begin; stage < part.end; ++stage) {
          wait_for_stage(slot, parity);
#pragma unroll
          for (int block = 0; block < column_blocks; ++block) {
            Fragments fragments;
            read(block, fragments);
#pragma unroll
            for (int half = 0; half < TILE_ROWS / 64; ++half) {
              float d[32];
              start_products<64>(d, fragments, pages + slot * page_bytes + half * 8192);
              wgmma_wait();
              if (block == column_blocks - 1 && half == TILE_ROWS / 64 - 1) phase_arrive(empty(pages, slot));
#pragma unroll
              for (int i = 0; i < 32; ++i) sums[block * block_sums + half * 32 + i] += d[i];
            }
          }
          if (++slot == STAGES) slot = 0, parity ^= 1;
        }
      }
      if (part.end - part.begin == Grid(g).stages || combine(part, sums)) write(part, sums);
    }
  }
};

template <class T>
INLINE void swap(T& x, T& y) {
  const T z = x;
  x = y;
  y = z;
}

KERNEL(3)
tf32x3(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void* scratch, Args g) {
  if constexpr (SWAPPED) {
    swap(a, b);
    swap(g.m, g.n);
    swap(g.lda, g.ldb);
    swap(g.a_inner, g.b_inner);
    swap(g.a_outer, g.b_outer);
  }
  Pages& local = contents(local_pages);
  const int id = thread_id();
  const unsigned pages = local_address(local.bytes);
  if (id == 0) {
    for (int slot = 0; slot < STAGES; ++slot) {
      phase_init(full(pages, slot), 2 * producers);  // each arrives for A, and once more when its copies of B are done
      phase_init(empty(pages, slot), consumers);
    }
    phase_init_done();
  }
  block_barrier();
  const Matrices whole{a, b, c, d};
  if (id >= consumers) {
    fewer_registers<PRODUCER_REGISTERS>();
    const bool vectors_a = aligned_to(TRANS_A ? a_vector * 4 : 16, a, g.lda, g.a_inner, g.a_outer);
    const bool vectors_b = aligned_to(16, b, g.ldb, g.b_inner, g.b_outer);
    const Producer producer{g, whole, id - consumers, vectors_a, vectors_b, pages};
    producer.run(local.bytes);
  } else {
    more_registers<CONSUMER_REGISTERS>();
    const Consumer consumer{g, whole, bias, scratch};
    consumer.run(local.bytes, pages);
  }
}

}  // namespace sycl_mat

// Without launch bounds the compiler does not obey the two register counts.
#undef LAUNCH_BOUNDS_NAMES
#undef LAUNCH_BOUNDS_VALUES
#define LAUNCH_BOUNDS_NAMES , "nvvm.maxntid", "nvvm.minctasm"
#define LAUNCH_BOUNDS_VALUES , "512", "1"
