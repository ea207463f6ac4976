// wgmma16: float16 and bfloat16 products on Hopper's tensor units, summed in float32.
//
//        N →     TILE_COLS              A block of 384 work-items computes TILE_ROWS × TILE_COLS results, 64 deep a stage:
//       ┌───────────────────┐             producers (a warp-group) copy A and B as they are, swizzled. Up to STAGES stages are under way.
//   M   │      group 0      │             consumers (2 warp-groups, half of the rows each, or, of 64, half of the columns) let the
//   ↓   ├───────────────────┤             tensor units multiply them. These read both operands from local memory, stored along k or
//       │      group 1      │             across it, so that no layout of A and B has to be transposed.
//       └───────────────────┘
//
// Work: one block a multiprocessor, each takes whole tiles in turn; the first ones may instead be cut along K into equal shares. See
// tile_shares.hpp and shared_parts.hpp. The same call gives the same bits.
//
// Rounding: a product of two 16-bit numbers is exact in the units, their sums are not: each step of 16 terms cuts off what is beyond
// float32's last bit (see docs/nvidia.md for what that amounts to). Of long sums they therefore sum FLUSH stages at a time, and these are
// added up in float32.
#include "wgmma_16bit.hpp"

// constants: begin
constexpr int TILE_ROWS = 128;           // 64 or 128
constexpr int TILE_COLS = 256;           // 128 or 256, with 128 rows also 64 or 192
constexpr int STAGES = 4;                // tiles of A and B in local memory
constexpr int FLUSH = 0;                 // about so many stages at most are summed in the units, 0: all
constexpr int PRODUCER_REGISTERS = 104;  // 104 + 2 · 200, or any two multiples of 8 with this sum
constexpr int CONSUMER_REGISTERS = 200;
// constants: end

// One call left is one too many: wgmma would be serialised around it.
#define INLINE __attribute__((always_inline)) inline

namespace sycl_mat {

constexpr int tile_cols = TILE_COLS, tile_k = 64, line_bytes = 128;
constexpr int consumers = 256, producers = 128;            // a launch of 512 could have 128 registers each, too few for the widest product
constexpr bool a_along_k = !TRANS_A, b_along_k = TRANS_B;  // neighbours in memory are neighbours along k
constexpr int a_bytes = TILE_ROWS * line_bytes, b_bytes = TILE_COLS * line_bytes, page_bytes = a_bytes + b_bytes;

struct alignas(1024) Pages {
  char bytes[STAGES * page_bytes];   // A, B
  unsigned long long full[STAGES];   // a stage can be computed
  unsigned long long empty[STAGES];  // a stage can be overwritten
};
static local_memory_of<Pages> local_pages;
inline unsigned full(unsigned pages, int slot) { return pages + STAGES * page_bytes + 8 * slot; }
inline unsigned empty(unsigned pages, int slot) { return full(pages, slot + STAGES); }

/// True where every matrix of an operand begins at, and every line is apart by, a multiple of 16 bytes.
inline bool aligned_to_16(const void* first, index ld, index inner, index outer) {
  return ((reinterpret_cast<index>(first) | (ld | inner | outer) * 2) & 15) == 0;
}

}  // namespace sycl_mat

#include "wgmma16_consumer.hpp"
#include "wgmma16_producer.hpp"

namespace sycl_mat {

KERNEL(3)
wgmma16(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void* scratch, Args g) {
  Pages& local = contents(local_pages);
  const int id = thread_id();
  const unsigned pages = local_address(local.bytes);
  const bool chunks_a = aligned_to_16(a, g.lda, g.a_inner, g.a_outer), chunks_b = aligned_to_16(b, g.ldb, g.b_inner, g.b_outer);
  if (id == 0) {
    for (int slot = 0; slot < STAGES; ++slot) {
      // A producer arrives when its copies are done, and where it has stores of its own, also after those.
      phase_init(full(pages, slot), chunks_a && chunks_b ? producers : 2 * producers);
      phase_init(empty(pages, slot), consumers / 32);
    }
    phase_init_done();
  }
  block_barrier();
  const Matrices whole{a, b, c, d};
  if (id >= consumers) {
    fewer_registers<PRODUCER_REGISTERS>();
    const Producer producer{g, whole, id - consumers, chunks_a, chunks_b, pages};
    producer.run();
  } else {
    more_registers<CONSUMER_REGISTERS>();
    const Consumer consumer{g, whole, bias, scratch};
    consumer.run(pages);
  }
}

}  // namespace sycl_mat

// Without launch bounds the compiler does not obey the two register counts.
#undef LAUNCH_BOUNDS_NAMES
#undef LAUNCH_BOUNDS_VALUES
#define LAUNCH_BOUNDS_NAMES , "nvvm.maxntid", "nvvm.minctasm"
#define LAUNCH_BOUNDS_VALUES , "384", "1"
