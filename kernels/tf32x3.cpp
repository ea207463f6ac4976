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
constexpr int STAGES = 4;               // tiles of A and B in local memory
constexpr int BUFFERS = 1;              // stages of A that a producer holds in registers
constexpr int PRODUCER_REGISTERS = 56;  // 56 + 200, or any two multiples of 8 with this sum
constexpr int CONSUMER_REGISTERS = 200;
// constants: end

// One call left is one too many: wgmma would be serialised around it.
#define INLINE __attribute__((always_inline)) inline

namespace sycl_mat {

constexpr int tile_cols = 128, tile_k = 32, group_cols = 64;
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
/// kernel is short of.)
INLINE unsigned lost_bits(float x) { return bits_of(multiply_add(x * 0x1p-13f, -0x1p13f, x)); }

/// True where every matrix of an operand begins at, and every row is apart by, a multiple of `bytes`.
inline bool aligned_to(int bytes, const float* first, index ld, index inner, index outer) {
  return ((reinterpret_cast<index>(first) | (ld | inner | outer) * 4) & (bytes - 1)) == 0;
}

// ---- producers ------------------------------------------------------------------------------------------------------------------

/// A producer's part of every stage of A: 4 neighbours along k, in TILE_ROWS / 32 rows. Stored [k][m], its rows are neighbours, so that
/// loads are vectors along m; else they are 32 apart.
constexpr int a_rows = TILE_ROWS / 32, a_row_step = TRANS_A ? 1 : 32;
/// … and of B: 4 chunks of 4 neighbours along n (along k where B is stored [n][k]).
constexpr int b_chunks = 4, b_chunk_step = TRANS_B ? 32 : 8;

/// The next stage that a producer reads: this work-item's first elements, and how far the edges are.
struct Cursor {
  Work work;
  const in_t *a, *b;
  int a_rows_left, b_left;  // from here to the edge along m for A, along n for B
  int k_left;               // from the stage's beginning
  int stages_left;          // of the present part
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
  return a_rows * ((a_rows == 4 ? low + 2 * middle : middle + 2 * low) + 4 * high + 8 * (id / 64));
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
    const index row = at.row + a_row(id), col = at.col + (TRANS_B ? id / 8 : id % 32 * 4);
    constexpr index far = 1 << 20;
    c.a = of.a + at_a(g, row, k + a_chunk(id) * 4);
    c.b = of.b + at_b(g, k + (TRANS_B ? id % 8 * 4 : id / 32), col);
    c.a_rows_left = int(min(far, g.m - row));
    c.b_left = int(min(far, g.n - col));
    c.k_left = int(min(1 << 30, g.k - k));
    c.stages_left = part.end - part.begin;
  }
  INLINE void advance(Cursor& c) const {
    if (--c.stages_left == 0) return start_part(c);
    c.a += TRANS_A ? tile_k * g.lda : tile_k;
    c.b += TRANS_B ? tile_k : tile_k * g.ldb;
    c.k_left -= tile_k;
  }

  INLINE void fetch_a(const Cursor& c, Fetched& fetched) const {
    const in_t* a = c.a;
    const bool inside = c.k_left >= tile_k && c.a_rows_left > (a_rows - 1) * a_row_step;
    if (vectors_a && inside) {
      if constexpr (TRANS_A) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const auto v = load_aligned<a_rows>(a + e * g.lda);
#pragma unroll
          for (int q = 0; q < a_rows; ++q) fetched.a[q][e] = v[q];
        }
      } else {
#pragma unroll
        for (int q = 0; q < a_rows; ++q) {
          const auto v = load_aligned<4>(a + q * a_row_step * g.lda);
#pragma unroll
          for (int e = 0; e < 4; ++e) fetched.a[q][e] = v[e];
        }
      }
    } else {
      const int k = c.k_left - a_chunk(id) * 4;
#pragma unroll
      for (int q = 0; q < a_rows; ++q)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          fetched.a[q][e] = q * a_row_step < c.a_rows_left && e < k ? a[TRANS_A ? e * g.lda + q : q * a_row_step * g.lda + e] : 0.0f;
    }
  }

  /// B's chunks, in rows of 512 bytes along n whose chunks are in the order c ^ 2(k % 4), or, stored [n][k], in rows of 128 bytes along k
  /// in the order c ^ (n / 2 % 8): consumers then read without bank conflicts.
  INLINE void copy_b(const Cursor& c, unsigned to) const {
    to += TRANS_B ? id / 8 * 128 + (id % 8 ^ id / 16 % 8) * 16 : id / 32 * 512 + (id % 32 ^ 2 * (id / 32 % 4)) * 16;
    const int rows = TRANS_B ? c.b_left : c.k_left - id / 32, columns = TRANS_B ? c.k_left - id % 8 * 4 : c.b_left;
    const bool inside = rows > (b_chunks - 1) * b_chunk_step && columns >= 4;
#pragma unroll
    for (int q = 0; q < b_chunks; ++q) {
      const in_t* from = c.b + q * b_chunk_step * g.ldb;
      if (vectors_b && inside) {
        copy_16(to + q * 4096, from);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const bool copy = q * b_chunk_step < rows && e < columns;
          copy_4_or_zero(to + q * 4096 + e * 4, copy ? from + e : whole.b, copy);
        }
      }
    }
  }

  INLINE void store_a(char* page, const Fetched& fetched) const {
#pragma unroll
    for (int q = 0; q < a_rows; ++q) {
      const int row = a_row(id) + q * a_row_step;
      Vector<unsigned, 4> big, small;
      unsigned lost = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        unsigned x, y;
        split(fetched.a[q][e], x, y);
        lost |= lost_bits(fetched.a[q][e]);
        big[e] = x;
        small[e] = y;
      }
      if (lost) small[0] = 0x7fffffff;  // a NaN
      char* to = page + row * 128 + (a_chunk(id) ^ row % 8) * 16;
      *reinterpret_cast<Vector<unsigned, 4>*>(to) = big;
      *reinterpret_cast<Vector<unsigned, 4>*>(to + a_bytes) = small;
    }
    publish_to_wgmma();
  }

  INLINE void run(char* first_page) const {
    Cursor next{Work(Grid(g)), whole.a, whole.b, 0, 0, 0, 0};
    const int count = next.work.count(Grid(g));
    if (count == 0) return;
    start_part(next);
    // A's loads run BUFFERS stages ahead, or nothing would hide their latency. One cursor does for both where it is 1.
    Cursor ahead = next;
    Fetched fetched[BUFFERS];
    const auto fetch_ahead = [&](Fetched& into) __attribute__((always_inline)) {
      fetch_a(BUFFERS == 1 ? next : ahead, into);
      if constexpr (BUFFERS > 1) advance(ahead);
    };
#pragma unroll
    for (int i = 0; i < BUFFERS; ++i)
      if (i < count) fetch_ahead(fetched[i]);
    int slot = 0, parity = 1;
    for (int first = 0; first < count; first += BUFFERS) {
#pragma unroll
      for (int i = 0; i < BUFFERS; ++i) {
        const int stage = first + i;
        if (stage >= count) break;
        phase_wait(empty(pages, slot), parity);
        copy_b(next, pages + slot * page_bytes + 2 * a_bytes);
        phase_arrive_after_copies(full(pages, slot));
        store_a(first_page + slot * page_bytes, fetched[i]);
        phase_arrive(full(pages, slot));
        advance(next);
        if (stage + BUFFERS < count) fetch_ahead(fetched[i]);
        if (++slot == STAGES) slot = 0, parity ^= 1;
      }
    }
  }
};

// ---- consumers ------------------------------------------------------------------------------------------------------------------

constexpr int sums_count = TILE_ROWS / 2;

/// Eight pairs of neighbouring columns of B at k = t, t + 4, …
INLINE void read_b(const char* b, int group, int warp, int lane, float (&pairs)[8][2]) {
  const int g = lane / 4, t = lane % 4, col = group * group_cols + warp * 16 + 2 * g;
#pragma unroll
  for (int f = 0; f < 8; ++f) {
    if constexpr (TRANS_B) {
      const char* from = b + col * 128 + (f ^ g) * 16 + t * 4;
      pairs[f][0] = *reinterpret_cast<const float*>(from);
      pairs[f][1] = *reinterpret_cast<const float*>(from + 128);
    } else {
      const auto v = *reinterpret_cast<const Vector<float, 2>*>(b + (t + 4 * f) * 512 + (col / 4 ^ 2 * t) * 16 + col % 4 * 4);
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
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) split(pairs[i][h], f.big[i / 2][i % 2 * 2 + h], f.small[i / 2][i % 2 * 2 + h]);
}
INLINE unsigned lost_bits(const float (&pairs)[8][2]) {
  unsigned lost = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) lost |= lost_bits(pairs[i][0]) | lost_bits(pairs[i][1]);
  return lost;
}
INLINE void start_products(float (&d)[sums_count], const Fragments& f, unsigned page) {
  const auto big = swizzled_block(page), small = swizzled_block(page + a_bytes);
  wgmma_fence();
  wgmma<TILE_ROWS, false>(d, f.small[0], big);
#pragma unroll
  for (int i = 1; i < 4; ++i) wgmma<TILE_ROWS, true>(d, f.small[i], big + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<TILE_ROWS, true>(d, f.big[i], small + 2 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma<TILE_ROWS, true>(d, f.big[i], big + 2 * i);
  wgmma_commit();
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
      if (row < g.m && col < g.n) of.d[row * g.ldd + col] = epilogue(sums[i][j], row, col, of.c, bias, g);
    }
}

struct Consumer {
  const Args& g;
  Matrices whole;
  const acc_t* bias;
  void* scratch;  // arrivals at each shared tile, for either warp-group; from scratch_stride on the parts

  /// Adds up the parts of a shared tile. True for the block that arrived last: `sums` is then complete.
  INLINE bool combine(const Part& part, float (&sums)[sums_count]) const {
    constexpr index part_size = TILE_ROWS * tile_cols;
    const int id = fresh_thread_id() % 128, group = fresh_thread_id() / 128;
    // Two parts a block: one that lies inside a tile or ends it, one that begins a tile.
    float* parts = static_cast<float*>(scratch) + g.scratch_stride;
    const auto at = [&](int block, bool begins) { return parts + (2 * block + begins) * part_size + (group * 128 + id) * 4; };
    float* mine = at(block_id(), part.begin == 0);
#pragma unroll
    for (int i = 0; i < sums_count; i += 4) {
      const Vector<float, 4> v = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      *reinterpret_cast<Vector<float, 4>*>(mine + i * consumers) = v;
    }
    const Grid grid(g);
    const unsigned stage = unsigned(part.tile) * unsigned(grid.stages);
    const int first = grid.owner(stage), last = grid.owner(stage + unsigned(grid.stages) - 1);
    int* counter = static_cast<int*>(scratch) + 2 * part.tile + group;
    any_of_group(group, false);  // all of the part is written
    bool is_last = false;
    if (id == 0) is_last = count_arrival(counter) == last - first;
    if (!any_of_group(group, is_last)) return false;
    if (id == 0) *counter = 0;
    const auto add = [&](int block) __attribute__((always_inline)) {
      const float* from = at(block, block == first);
#pragma unroll
      for (int i = 0; i < sums_count; i += 4) {
        const auto v = load_from_others(from + i * consumers);
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i + e] += v[e];
      }
    };
    if (last - first == 1) {  // of two parts the order does not matter, and one is in registers
      add(first + last - block_id());
    } else {
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] = 0;
      for (int block = first; block <= last; ++block) add(block);
    }
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
    if (any_of_group(group, probe != 0)) return compute_again(of, g, bias, at.row, first_col, id);
    const int lane = id % 32;
    const index col = first_col + id / 32 * 16 + lane / 4 * 2;
    const index first_row = at.row + lane % 4 * 2;
    if (col >= g.n) return;
#pragma unroll
    for (int j = 0; j < TILE_ROWS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const index row = first_row + 8 * j + e;
        if (row >= g.m) continue;
        out_t* d = of.d + row * g.ldd + col;
        const float left = epilogue(sums[4 * j + e], row, col, of.c, bias, g);
        if (col + 1 < g.n) {
          const float right = epilogue(sums[4 * j + 2 + e], row, col + 1, of.c, bias, g);
          if (pairs_d) {
            *reinterpret_cast<Vector<float, 2>*>(d) = Vector<float, 2>{left, right};
          } else {
            d[0] = left;
            d[1] = right;
          }
        } else {
          d[0] = left;
        }
      }
  }

  INLINE void run(const char* first_page, unsigned pages) const {
    Work work{Grid(g)};
    const int parts = work.parts(Grid(g));
    const int group = thread_id() / 128, warp = thread_id() / 32 % 4, lane = lane_id();
    int slot = 0, parity = 0;
    for (int i = 0; i < same_in_warp(parts); ++i) {
      const Part part = work.next(Grid(g));
      float sums[sums_count];
#pragma unroll
      for (int i = 0; i < sums_count; ++i) sums[i] = 0;
      unsigned lost = 0;
      float pairs[8][2];
      if (part.begin < part.end) {
        phase_wait(full(pages, slot), parity);
        read_b(first_page + slot * page_bytes + 2 * a_bytes, group, warp, lane, pairs);
        lost = lost_bits(pairs);
      }
      for (int stage = part.begin; stage < part.end; ++stage) {
        float d[sums_count];
        Fragments fragments;
        split_fragments(pairs, fragments);
        start_products(d, fragments, pages + slot * page_bytes);
        const int present = slot;
        if (++slot == STAGES) slot = 0, parity ^= 1;
        if (stage + 1 < part.end) {  // the next stage's B is read while the products run
          phase_wait(full(pages, slot), parity);
          read_b(first_page + slot * page_bytes + 2 * a_bytes, group, warp, lane, pairs);
        }
        lost |= lost_bits(pairs);
        wgmma_wait();
        phase_arrive(empty(pages, present));
#pragma unroll
        for (int i = 0; i < sums_count; ++i) sums[i] += d[i];
      }
      if (lost) sums[0] = __builtin_nanf("");
      if (part.end - part.begin == Grid(g).stages || combine(part, sums)) write(part, sums);
    }
  }
};

KERNEL(3)
tf32x3(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void* scratch, Args g) {
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
    const bool vectors_a = aligned_to(TRANS_A ? a_rows * 4 : 16, a, g.lda, g.a_inner, g.a_outer);
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
