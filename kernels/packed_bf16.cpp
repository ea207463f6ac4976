// bfloat16 products on the processor's own dot products (AVX512_BF16: vdpbf16ps adds two products to a float32 sum, at twice the rate of
// multiply-adds).
//
//   B's panel: pairs of k, KC / 2 steps × 64 columns        A's rows are read in place, a pair of neighbours along k at a time
//   ┌──────────────────────────────┐                        (transposed A: packed_a_rows rows are made ready). B is packed, a block of
//   │ (k, k+1) of columns 0 … 63   │ 4 vectors a step       KC × NC at a time. The register block is 6 × 4 vectors of sums, as in the
//   └──────────────────────────────┘                        kernel `packed`, whose way through D this is.
//
// A product of two bfloat16 numbers is exact in float32, and sums are rounded to nearest as elsewhere. But the instruction takes denormal
// numbers as zeros: panels and rows with such numbers are looked for, and multiplied by multiply-adds. (Sums it makes none of either: what
// is below 2⁻¹²⁶ is zero.)
#include "packed_layout.hpp"
#include "packed_sums.hpp"

// constants: begin
constexpr int KC = 1536;  // depth of a block of B, even
constexpr int NC = 2048;  // columns of a block of B
// constants: end

namespace sycl_mat {

constexpr int MR = 6, NR = 4 * WIDTH;
static_assert(ELEMENT == 3 && WIDTH == 16 && KC % 2 == 0 && NC <= 32 * NR && packed_bf16_sum_rows % MR == 0 && packed_a_rows % MR == 0);

SYCL_MAT_INLINE acc_t pair(unsigned low, unsigned high) { return __builtin_bit_cast(acc_t, low | high << 16); }

/// Pairs as transpose() reads them: neighbours in memory …
struct PairsAlongRows {
  const in_t* from;
  index ld;
  SYCL_MAT_MEMBER vec row(int r, int c) const { return load(reinterpret_cast<const acc_t*>(from + r * ld + 2 * c)); }
  SYCL_MAT_MEMBER acc_t at(int r, int c) const { return pair(from[r * ld + 2 * c], from[r * ld + 2 * c + 1]); }
};
/// … or one from each of two rows.
struct PairsOfRows {
  const in_t* from;
  index ld;
  static SYCL_MAT_MEMBER vec joined(vec low, vec high) {  // both widened, which puts their bits into the upper half
    return __builtin_bit_cast(vec, __builtin_bit_cast(unsigned_vec, low) >> 16 | __builtin_bit_cast(unsigned_vec, high));
  }
  SYCL_MAT_MEMBER vec row(int r, int c) const { return joined(load_wide(from + 2 * r * ld + c), load_wide(from + (2 * r + 1) * ld + c)); }
  SYCL_MAT_MEMBER vec some(int r, int c, int count) const {
    return joined(load_wide_some(from + 2 * r * ld + c, count), load_wide_some(from + (2 * r + 1) * ld + c, count));
  }
  SYCL_MAT_MEMBER acc_t at(int r, int c) const { return pair(from[2 * r * ld + c], from[(2 * r + 1) * ld + c]); }
};

/// What dot_products() works on. The order of the members is known to its text.
struct alignas(64) DotBlock {
  acc_t sums[MR * NR];          // at 0
  acc_t vectors[30 * WIDTH];    // at 1536: the vector registers' contents
  unsigned long long saved[9];  // at 3456: the other registers'
  const in_t* rows[MR];         // at 3528: where A's rows end
  const acc_t* panel;           // at 3576
  index begin;                  // at 3584: −4 bytes a step
};
static_assert(sizeof(DotBlock) >= 3592 && alignof(DotBlock) == 64);

/// sums = Σ pairs of A · pairs of B, at least one. In the processor's own words, for the compiler has none for this instruction. It does
/// not know the registers either, as operands or as lost ones; so the text saves what it uses and leaves all of them, flags included, as
/// they were. zmm0 … zmm23 are the sums, 24 … 27 the panel's vectors, 28 and 29 an element of A in every lane.
SYCL_MAT_CALL void dot_products(DotBlock& x) {
#if !defined(__NVPTX__) && !defined(SYCL_MAT_STANDARD_SYCL)
  __asm__ volatile(
      "movq %%rax, 3456(%0)\n movq %%rcx, 3464(%0)\n movq %%rdx, 3472(%0)\n movq %%rsi, 3480(%0)\n movq %%rdi, 3488(%0)\n"
      "movq %%r8, 3496(%0)\n movq %%r9, 3504(%0)\n movq %%r10, 3512(%0)\n movq %%r11, 3520(%0)\n"
      "movq %0, %%rax\n"
      ".irp v,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29\n"
      "vmovups %%zmm\\v, 1536+64*\\v(%%rax)\n"
      ".endr\n"
      ".irp v,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
      "vpxord %%zmm\\v, %%zmm\\v, %%zmm\\v\n"
      ".endr\n"
      "movq 3528(%%rax), %%rsi\n movq 3536(%%rax), %%rdi\n movq 3544(%%rax), %%r8\n movq 3552(%%rax), %%r9\n"
      "movq 3560(%%rax), %%r10\n movq 3568(%%rax), %%r11\n movq 3576(%%rax), %%rdx\n movq 3584(%%rax), %%rcx\n"
      "1:\n"
      "vmovups (%%rdx), %%zmm24\n vmovups 64(%%rdx), %%zmm25\n vmovups 128(%%rdx), %%zmm26\n vmovups 192(%%rdx), %%zmm27\n"
      "vpbroadcastd (%%rsi,%%rcx), %%zmm28\n vpbroadcastd (%%rdi,%%rcx), %%zmm29\n"
      "vdpbf16ps %%zmm24, %%zmm28, %%zmm0\n vdpbf16ps %%zmm25, %%zmm28, %%zmm1\n"
      "vdpbf16ps %%zmm26, %%zmm28, %%zmm2\n vdpbf16ps %%zmm27, %%zmm28, %%zmm3\n"
      "vdpbf16ps %%zmm24, %%zmm29, %%zmm4\n vdpbf16ps %%zmm25, %%zmm29, %%zmm5\n"
      "vdpbf16ps %%zmm26, %%zmm29, %%zmm6\n vdpbf16ps %%zmm27, %%zmm29, %%zmm7\n"
      "vpbroadcastd (%%r8,%%rcx), %%zmm28\n vpbroadcastd (%%r9,%%rcx), %%zmm29\n"
      "vdpbf16ps %%zmm24, %%zmm28, %%zmm8\n vdpbf16ps %%zmm25, %%zmm28, %%zmm9\n"
      "vdpbf16ps %%zmm26, %%zmm28, %%zmm10\n vdpbf16ps %%zmm27, %%zmm28, %%zmm11\n"
      "vdpbf16ps %%zmm24, %%zmm29, %%zmm12\n vdpbf16ps %%zmm25, %%zmm29, %%zmm13\n"
      "vdpbf16ps %%zmm26, %%zmm29, %%zmm14\n vdpbf16ps %%zmm27, %%zmm29, %%zmm15\n"
      "vpbroadcastd (%%r10,%%rcx), %%zmm28\n vpbroadcastd (%%r11,%%rcx), %%zmm29\n"
      "vdpbf16ps %%zmm24, %%zmm28, %%zmm16\n vdpbf16ps %%zmm25, %%zmm28, %%zmm17\n"
      "vdpbf16ps %%zmm26, %%zmm28, %%zmm18\n vdpbf16ps %%zmm27, %%zmm28, %%zmm19\n"
      "vdpbf16ps %%zmm24, %%zmm29, %%zmm20\n vdpbf16ps %%zmm25, %%zmm29, %%zmm21\n"
      "vdpbf16ps %%zmm26, %%zmm29, %%zmm22\n vdpbf16ps %%zmm27, %%zmm29, %%zmm23\n"
      "leaq 256(%%rdx), %%rdx\n leaq 4(%%rcx), %%rcx\n"
      "jrcxz 2f\n"
      "jmp 1b\n"
      "2:\n"
      ".irp v,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
      "vmovups %%zmm\\v, 64*\\v(%%rax)\n"
      ".endr\n"
      ".irp v,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29\n"
      "vmovups 1536+64*\\v(%%rax), %%zmm\\v\n"
      ".endr\n"
      "movq 3464(%%rax), %%rcx\n movq 3472(%%rax), %%rdx\n movq 3480(%%rax), %%rsi\n movq 3488(%%rax), %%rdi\n"
      "movq 3496(%%rax), %%r8\n movq 3504(%%rax), %%r9\n movq 3512(%%rax), %%r10\n movq 3520(%%rax), %%r11\n"
      "movq 3456(%%rax), %%rax\n"
      :
      : "r"(&x)
      : "memory");
#else
  (void)x;
#endif
}

SYCL_MAT_INLINE vec low(unsigned_vec pairs) { return __builtin_bit_cast(vec, pairs << 16); }
SYCL_MAT_INLINE vec high(unsigned_vec pairs) { return __builtin_bit_cast(vec, pairs & 0xffff0000); }

/// The same sums by multiply-adds, from the step `first` on, and with the last product alone where kc is odd (what stands beside it in A
/// need not be a number).
SYCL_MAT_CALL void multiply_adds(DotBlock& x, int first, int kc) {
  const int steps = kc / 2;
#pragma clang loop unroll(disable)
  for (int r = 0; r < MR; ++r)
#pragma clang loop unroll(disable)
    for (int q = 0; q < NR; q += WIDTH) {
      vec sum = first > 0 ? load(x.sums + r * NR + q) : splat(0);
#pragma clang loop unroll(disable)
      for (int s = first; s < (kc + 1) / 2; ++s) {
        const auto b = __builtin_bit_cast(unsigned_vec, load(x.panel + index(s) * NR + q));
        const in_t* a = x.rows[r] - 2 * (steps - s);
        sum = multiply_add(splat(widen(a[0])), low(b), sum);
        if (s < steps) sum = multiply_add(splat(widen(a[1])), high(b), sum);
      }
      store(x.sums + r * NR + q, sum);
    }
}

/// Whether there are denormal numbers among the pairs: neither zero nor at least 2⁻¹²⁶.
SYCL_MAT_INLINE unsigned_vec denormal(unsigned_vec pairs) {
  const unsigned_vec small = (pairs & 0x7fff) - 1, big = (pairs >> 16 & 0x7fff) - 1;
  return __builtin_bit_cast(unsigned_vec, (small < 0x7f) | (big < 0x7f));
}
SYCL_MAT_INLINE bool any(unsigned_vec x) {
  unsigned lanes[WIDTH], all = 0;
  __builtin_memcpy(lanes, &x, sizeof(lanes));
  for (int l = 0; l < WIDTH; ++l) all |= lanes[l];
  return all != 0;
}
SYCL_MAT_CALL bool denormal_in_rows(const in_t* a, index lda, int rows, int kc) {
  unsigned_vec found = 0;
#pragma clang loop unroll(disable)
  for (int r = 0; r < rows; ++r) {
    const in_t* row = a + r * lda;
    int k = 0;
#pragma clang loop unroll(disable)
    for (; k + 2 * WIDTH <= kc; k += 2 * WIDTH)
      found |= denormal(__builtin_bit_cast(unsigned_vec, load(reinterpret_cast<const acc_t*>(row + k))));
#pragma clang loop unroll(disable) vectorize(disable)
    for (; k < kc; ++k) found[0] |= unsigned(row[k] & 0x7fff) - 1 < 0x7f;
  }
  return any(found);
}
SYCL_MAT_CALL bool denormal_in_panel(const acc_t* panel, int steps) {
  unsigned_vec found = 0;
#pragma clang loop unroll(disable)
  for (index e = 0; e < index(steps) * NR; e += WIDTH) found |= denormal(__builtin_bit_cast(unsigned_vec, load(panel + e)));
  return any(found);
}

/// `rows` ≤ MR rows of A against one panel of B over kc products. `plain`: by multiply-adds.
SYCL_MAT_CALL void register_block(const in_t* a, index lda, const acc_t* panel, int kc, bool plain, int rows, const Target& t, index i,
                                  index j, int cols) {
  DotBlock x;
  const int steps = kc / 2, by_dots = plain ? 0 : steps;
  for (int r = 0; r < MR; ++r) x.rows[r] = a + (r < rows ? r : rows - 1) * lda + 2 * steps;
  x.panel = panel;
  x.begin = -4 * index(steps);
  if (by_dots > 0) dot_products(x);
  if (by_dots == 0 || kc % 2) multiply_adds(x, by_dots, kc);
  write_back(x.sums, NR, t, i, j, rows, cols);
}

/// One panel of B, kc × cols, as pairs along k, filled up with zeros.
SYCL_MAT_CALL void pack_panel(const in_t* b, index ldb, acc_t* panel, int kc, int cols) {
  const int steps = kc / 2, whole = cols / WIDTH * WIDTH, rest = cols - whole, filled = whole + (rest ? WIDTH : 0);
  if constexpr (TRANS_B) transpose(PairsAlongRows{b, ldb}, cols, steps, panel, NR);
#pragma clang loop unroll(disable)
  for (int s = 0; s < steps; ++s) {
    acc_t* to = panel + index(s) * NR;
    if constexpr (!TRANS_B) {
      const PairsOfRows from{b, ldb};
#pragma clang loop unroll(disable)
      for (int q = 0; q < whole; q += WIDTH) store(to + q, from.row(s, q));
      if (rest) store(to + whole, from.some(s, whole, rest));
    }
    for (int q = TRANS_B ? cols : filled; q < NR; ++q) to[q] = 0;
  }
  if (kc % 2) {
    acc_t* to = panel + index(steps) * NR;
    for (int q = 0; q < NR; ++q) to[q] = q < cols ? pair(b[TRANS_B ? q * ldb + kc - 1 : (kc - 1) * ldb + q], 0) : acc_t(0);
  }
}

/// Rows of transposed A, each contiguous along k.
SYCL_MAT_CALL void pack_rows(const in_t* a, index lda, int rows, int kc, in_t* to, index to_ld) {
  transpose(PairsOfRows{a, lda}, kc / 2, rows, reinterpret_cast<acc_t*>(to), to_ld / 2);
  if (kc % 2)
    for (int r = 0; r < rows; ++r) to[r * to_ld + kc - 1] = a[(kc - 1) * lda + r];
}

/// Everything of one block of D over the pairs [p0, p1) of products.
SYCL_MAT_INLINE void compute(const Matrices& x, const Args& g, Target& t, acc_t* own, const PackedLayout& layout, const BlockOfD& block,
                             index p0, index p1) {
  constexpr int most_steps = KC / 2;
  in_t* a_rows = reinterpret_cast<in_t*>(own + layout.a);
  const index a_ld = 2 * ((p1 - p0 < most_steps ? p1 - p0 : most_steps) + packed_a_pad);
  const int depth_blocks = p1 > p0 ? int((p1 - p0 + most_steps - 1) / most_steps) : 1;
  const index column_blocks = (block.j1 - block.j0 + NC - 1) / NC;
  for (index ic = block.i0; ic < block.i1; ic += packed_bf16_sum_rows) {
    const index ic1 = min(ic + packed_bf16_sum_rows, block.i1);
    for (index cb = 0; cb < column_blocks; ++cb) {
      const index jc = block.j0 + share(block.j1 - block.j0, NR, cb, column_blocks);
      const int nc = int(block.j0 + share(block.j1 - block.j0, NR, cb + 1, column_blocks) - jc);
      for (int q = 0; q < depth_blocks; ++q) {
        const index pc = 2 * (p0 + (p1 - p0) * q / depth_blocks);
        const int kc = int(min(2 * (p0 + (p1 - p0) * (q + 1) / depth_blocks), g.k) - pc);
        t.add = q > 0;
        t.with_c = BETA && block.k == 0 && q == 0;
        t.last = g.split_k == 1 && q + 1 == depth_blocks;
        if (g.split_k == 1) t.sums = own + layout.sums, t.sums_ld = layout.sums_ld, t.i0 = ic, t.j0 = jc;
        const int steps = (kc + 1) / 2;
        unsigned plain = 0;  // a bit a panel
        for (int j = 0; j < nc; j += NR) {
          acc_t* panel = own + index(j) * steps;
          pack_panel(x.b + at_b(g, pc, jc + j), g.ldb, panel, kc, int(min(NR, nc - j)));
          if (denormal_in_panel(panel, steps)) plain |= 1u << j / NR;
        }
        for (index ia = ic; ia < ic1; ia += packed_a_rows) {
          const int m = int(min(packed_a_rows, ic1 - ia));
          const in_t* a = x.a + at_a(g, ia, pc);
          if constexpr (TRANS_A) pack_rows(a, g.lda, m, kc, a_rows, a_ld);
          const in_t* rows = TRANS_A ? a_rows : a;
          const index ld = TRANS_A ? a_ld : g.lda;
          const bool plain_rows = denormal_in_rows(rows, ld, m, kc);
          for (int r = 0; r < m; r += MR)
            for (int j = 0; j < nc; j += NR)
              register_block(rows + r * ld, ld, own + index(j) * steps, kc, plain_rows || (plain >> j / NR & 1), m - r < MR ? m - r : MR, t,
                             ia + r, jc + j, int(min(NR, nc - j)));
        }
      }
    }
  }
}

}  // namespace sycl_mat

KERNEL(3)
packed_bf16(const sycl_mat::in_t* a, const sycl_mat::in_t* b, const sycl_mat::out_t* c, sycl_mat::out_t* d, const sycl_mat::acc_t* bias,
            void* scratch, sycl_mat::Args g) {
  using namespace sycl_mat;
  const index pairs = (g.k + 1) / 2;
  const PackedLayout layout = packed_layout((g.m + g.split_m - 1) / g.split_m + MR, (g.n + g.split_n - 1) / g.split_n + NR,
                                            (pairs + g.split_k - 1) / g.split_k, packed_bf16_sum_rows, NC, KC / 2, NR, TRANS_A, true);
  for_blocks_of_d(a, b, c, d, bias, scratch, g, MR, NR, 0,
                  [&](const Matrices& x, Target& t, acc_t* own, const BlockOfD& block) SYCL_MAT_LAMBDA {
                    compute(x, g, t, own, layout, block, pairs * block.k / g.split_k, pairs * (block.k + 1) / g.split_k);
                  });
}
