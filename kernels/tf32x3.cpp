// tf32x3: float32 products on Hopper's tensor units, with smaller errors than float32 multiply-adds have.
//
// The tensor units multiply TF32 numbers (11 bits of mantissa). A float32 is the sum of two of them, x = big + small, so
//   A·B ≈ small(A)·big(B) + big(A)·small(B) + big(A)·big(B)
// where what is left out, small·small, is below 2⁻²⁴ of the product. The units' own sums round worse than float32; so 32 terms at most
// are summed there, and those results are added up in float32 registers.
//
//        N →  TILE_COLS                         A block of 512 work-items computes TILE_ROWS × TILE_COLS results, 32 deep a stage:
//       ┌─────────┬─────────┐                     producers (2 warp-groups) read A, split it and store both parts, swizzled; they copy
//   M   │ half of │ half of │                     B as it is. Up to STAGES stages are under way.
//   ↓   │ group 0 │ group 1 │                     consumers (2 warp-groups, half of the columns each) split B's elements in registers and
//       └─────────┴─────────┘                     compute Dᵀ = Bᵀ·Aᵀ, because wgmma takes its left operand from registers. They take
//                                                 turns: while one's products run, the other adds up and splits.
//
// Work: one block a multiprocessor, each takes whole tiles in turn ("tile, tile + blocks, …"). The first `split_n` tiles are instead cut
// along K into equal shares of `split_k` stages, one a block (and one stage more for the first `split_m` blocks), so that no
// multiprocessor idles: the parts of a tile go to scratch and the block that arrives last adds them, always in K's order. The same call
// gives the same bits.
//
// Where each tile is shared by two blocks alone, those can be a cluster (PAIRS): each sends the other half of its sums through the
// multiprocessors' own network, adds up and writes the other half (tile_pairs.hpp), with no memory and no waiting for stores in between.
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
constexpr int PAIRS = 0;                // 1: clusters of two blocks compute a tile each, see below
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
  unsigned long long received[2];    // of a pair: a warp-group has the other block's sums
  alignas(128) char exchanged[PAIRS ? TILE_ROWS / 2 * tile_cols * 4 : 4];
};
static local_memory_of<Pages> local_pages;
inline unsigned full(unsigned pages, int slot) { return pages + STAGES * page_bytes + 8 * slot; }
inline unsigned empty(unsigned pages, int slot) { return full(pages, slot + STAGES); }
inline unsigned received(unsigned pages, int group) { return full(pages, group + 2 * STAGES); }
inline unsigned exchanged(unsigned pages) { return pages + unsigned(__builtin_offsetof(Pages, exchanged)); }

/// B's lines in a page lie along n, or, where it is stored [n][k], along k: how many chunks of 16 bytes each.
constexpr int b_line_chunks = TRANS_B ? 8 : tile_cols / 4, b_line_bytes = b_line_chunks * 16;
/// The 16-byte chunks of B's line number `line` are in the order chunk ^ b_swizzle(line): consumers then read without bank conflicts.
constexpr int b_swizzle(int line) { return TRANS_B ? line / 2 % 8 : 2 * (line % 4); }

}  // namespace sycl_mat

#include "tf32_split.hpp"
#include "tile_pairs.hpp"
#include "tile_shares.hpp"

namespace sycl_mat {

/// True where every matrix of an operand begins at, and every row is apart by, a multiple of `bytes`.
inline bool aligned_to(int bytes, const float* first, index ld, index inner, index outer) {
  return ((reinterpret_cast<index>(first) | (ld | inner | outer) * 4) & (bytes - 1)) == 0;
}

}  // namespace sycl_mat

#include "tf32x3_consumer.hpp"
#include "tf32x3_producer.hpp"

namespace sycl_mat {

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
    if constexpr (PAIRS)
      for (int group = 0; group < 2; ++group) {
        phase_init(received(pages, group), 1);
        phase_expect(received(pages, group), int(sizeof(local.exchanged) / 2));
      }
    phase_init_done();
  }
  block_barrier();
  if constexpr (PAIRS) pair_arrive();
  const Matrices whole{a, b, c, d};
  if (id >= consumers) {
    fewer_registers<PRODUCER_REGISTERS>();
    const bool vectors_a = aligned_to(TRANS_A ? a_vector * 4 : 16, a, g.lda, g.a_inner, g.a_outer);
    const bool vectors_b = aligned_to(16, b, g.ldb, g.b_inner, g.b_outer);
    const Producer producer{g, whole, id - consumers, vectors_a, vectors_b, pages};
    producer.run();
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
#define LAUNCH_BOUNDS_NAMES , "nvvm.maxntid", "nvvm.minctasm", PAIRS ? "nvvm.cluster_dim" : "sycl-mat-no-cluster"
#define LAUNCH_BOUNDS_VALUES , "512", "1", "2"
