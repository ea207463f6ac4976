// The CPU kernel: a register block of MR rows × NV vectors, fed by panels of B that are packed on the way.
//
//            NV vectors of WIDTH                A group of one work-item owns a block of D. It walks
//          ┌───────────────────────┐            columns (NC), depth (KC), row panels (MR), column panels
//          │ B panel, kc × NV·WIDTH│            (NV·WIDTH); the innermost loop is the register block.
//          └───────────────────────┘
//   ┌────┐ ┌───────────────────────┐            A's row panel (MR × kc) stays in the first cache and is read
//   │ A  │ │ D: MR × NV·WIDTH sums │ MR         in place, one element at a time, each broadcast to NV products.
//   │ kc │ │ in registers          │            B's block (kc × NC) is copied into panels while the first row
//   └────┘ └───────────────────────┘            panels compute with it, and read from there by all others.
//
// Where A cannot be read in place (transposed, or of a narrower type), packed_a_rows rows at a time are copied. Where D cannot hold
// partial sums (16-bit types), they stay in scratch until the last block of K. Groups may share K: each writes its sums to scratch,
// and whoever finishes last adds them in a fixed order; nobody waits for a group that may not have begun.
#include "packed_layout.hpp"
#include "packed_sums.hpp"

// constants: begin
constexpr int MR = 6;        // rows of the register block
constexpr int NV = 4;        // vectors of the register block's row
constexpr int KC = 512;      // depth of a block of B
constexpr int MC = 0;        // rows walked before the next block of B, 0: all
constexpr int NC = 2048;     // columns of a block of B
constexpr int A_DIRECT = 0;  // 1: transposed A is read in place too: worth it where each element is used once
constexpr int PACK = 2;      // 0: B read in place, 1: packed before use, 2: packed on the way
// constants: end

namespace sycl_mat {

constexpr int NR = NV * WIDTH;
constexpr bool a_in_place = same_type && (!TRANS_A || A_DIRECT);
constexpr bool a_by_columns = TRANS_A && a_in_place;
constexpr bool b_in_place = same_type && !TRANS_B;  // panels can be read (or copied) row by row as they are

/// Rows of B copied into a panel while a register block computes: one every `every` steps, so that memory keeps pace with multiply-adds.
struct Copying {
  const acc_t* from = nullptr;
  index ld = 0;
  acc_t* to = nullptr;
  int rows = 0, every = 1;
};
/// How many such rows ahead of its use each is fetched. Rows may lie a power of two apart: more would push each other out of the first
/// cache.
constexpr int ahead = 6;

template <int R, int V>
struct Sums {
  vec of[R][V];
};

/// `steps` products of R rows of A, lda apart, and V vectors of B's rows, b_ld apart. a and b are left behind the last one.
template <int R, int V>
SYCL_MAT_INLINE void add_products(Sums<R, V>& sum, const acc_t*& a, index lda, const acc_t*& b, index b_ld, int steps) {
#pragma clang loop unroll(disable)
  for (; steps > 0; --steps) {
    vec row[V];
#pragma unroll
    for (int v = 0; v < V; ++v) row[v] = load(b + v * WIDTH);
    b += b_ld;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const vec x = splat(a[a_by_columns ? r : r * lda]);
#pragma unroll
      for (int v = 0; v < V; ++v) sum.of[r][v] = multiply_add(x, row[v], sum.of[r][v]);
    }
    a += a_by_columns ? lda : 1;
  }
}

/// R rows × V vectors over kc products. A's rows are lda apart, B's b_ld. COPY: another panel of B is packed meanwhile.
template <int R, int V, bool COPY>
SYCL_MAT_INLINE void register_block(const acc_t* a, index lda, const acc_t* b, index b_ld, int kc, const Target& t, index i, index j,
                                    int cols, Copying copy = {}) {
  Sums<R, V> sum;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int v = 0; v < V; ++v) sum.of[r][v] = splat(0);
  if constexpr (COPY) {
#pragma clang loop unroll(disable)
    for (; copy.rows > 0; --copy.rows) {
#pragma unroll
      for (int v = 0; v < V; ++v) store(copy.to + v * WIDTH, load(copy.from + v * WIDTH));
#pragma unroll
      for (int v = 0; v < V; ++v) fetch(copy.from + ahead * copy.ld + v * WIDTH);
      fetch(copy.from + ahead * copy.ld + V * WIDTH - 1);  // rows need not begin at a cache line
      copy.from += copy.ld;
      copy.to += V * WIDTH;
      const int steps = copy.every < kc ? copy.every : kc;
      add_products(sum, a, lda, b, b_ld, steps);
      kc -= steps;
    }
  }
  add_products(sum, a, lda, b, b_ld, kc);
  if (t.direct && cols == V * WIDTH) {
    acc_t* s = t.at(i, j);
    const vec alpha = splat(t.alpha);
    if (t.add) {
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v)
          store(s + r * t.sums_ld + v * WIDTH, multiply_add(alpha, sum.of[r][v], load(s + r * t.sums_ld + v * WIDTH)));
    } else {
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) store(s + r * t.sums_ld + v * WIDTH, alpha * sum.of[r][v]);
    }
    return;
  }
  acc_t buffer[R * V * WIDTH];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int v = 0; v < V; ++v) store(buffer + (r * V + v) * WIDTH, sum.of[r][v]);
  write_back(buffer, V * WIDTH, t, i, j, R, cols);
}

/// Columns to which a panel of `cols` is filled up: as many vectors as the register blocks for the last panel have.
SYCL_MAT_INLINE int panel_width(int cols) {
  const int vectors = (cols + WIDTH - 1) / WIDTH;
  return vectors < 4 && vectors < NV ? vectors * WIDTH : NR;
}

/// One panel of B, kc × cols from `b` on, row after row.
SYCL_MAT_CALL void pack_panel(const in_t* b, index ldb, acc_t* panel, int kc, int cols) {
  const int width = panel_width(cols), whole = cols / WIDTH * WIDTH, rest = cols - whole;
  if constexpr (TRANS_B) {
    transpose(Widened{b, ldb}, cols, kc, panel, width);  // B's columns lie as rows
    if (cols < width)
#pragma clang loop unroll(disable)
      for (int k = 0; k < kc; ++k)
#pragma clang loop unroll(disable) vectorize(disable)
        for (int x = cols; x < width; ++x) panel[k * width + x] = 0;
  } else {
#pragma clang loop unroll(disable)
    for (int k = 0; k < kc; ++k) {
#pragma clang loop unroll(disable)
      for (int v = 0; v < whole; v += WIDTH) {
        fetch(b + ahead * ldb + v);
        store(panel + v, load_wide(b + v));
      }
      if (cols < width) {
        if (rest) store(panel + whole, load_wide_some(b + whole, rest));
#pragma clang loop unroll(disable)
        for (int v = whole + (rest ? WIDTH : 0); v < width; v += WIDTH) store(panel + v, splat(0));
      }
      panel += width;
      b += ldb;
    }
  }
}

/// R rows of A against a block's columns from j on, a whole number of panels. `ready`: whole panels were packed before.
template <int R>
SYCL_MAT_CALL void row_panel(const acc_t* a, index lda, const in_t* b, index ldb, acc_t* packed, int kc, int j, int nc, bool ready,
                             const Target& t, index i, index j0) {
  // Every shape of register block appears once: each is a twentieth of the time that the driver needs to build the program.
  const bool packed_before = !b_in_place || (PACK != 0 && ready);
  const acc_t* panel = packed + index(j) * kc;
  int width = NR, cols = NR;
  for (; j < nc; j += NR, panel += index(NR) * kc) {
    const acc_t* from = panel;
    index b_ld = NR;
    if (nc - j < NR) {  // this panel is always packed: reading it in place would pass the end of B's rows
      cols = nc - j;
      width = panel_width(cols);
      if (width < NR) break;
    } else if (!packed_before) {
      from = reinterpret_cast<const acc_t*>(b) + j;
      b_ld = ldb;
    } else if (!b_in_place && PACK == 2 && !ready) {
      pack_panel(b + (TRANS_B ? j * ldb : j), ldb, packed + index(j) * kc, kc, NR);
    }
    register_block<R, NV, false>(a, lda, from, b_ld, kc, t, i, j0 + j, cols);
  }
  if (width == NR) return;
  // What is left are at most three vectors: two, one, or both.
  int done = 0;
  if constexpr (NV > 2)
    if (width >= 2 * WIDTH) {
      register_block<R, 2, false>(a, lda, panel, width, kc, t, i, j0 + j, min(cols, 2 * WIDTH));
      done = 2 * WIDTH;
    }
  if constexpr (NV > 1)
    if (done < width) register_block<R, 1, false>(a, lda, panel + done, width, kc, t, i, j0 + j + done, cols - done);
}

template <int R>
SYCL_MAT_INLINE void rows(int r, const acc_t* a, index lda, const in_t* b, index ldb, acc_t* packed, int kc, int j, int nc, bool ready,
                          const Target& t, index i, index j0) {
  if constexpr (R > 0) {
    if (r == R)
      row_panel<R>(a, lda, b, ldb, packed, kc, j, nc, ready, t, i, j0);
    else
      rows<R - 1>(r, a, lda, b, ldb, packed, kc, j, nc, ready, t, i, j0);
  }
}

/// Row panels that pack B together: so many times faster than a register block reads B in place it may come from memory.
constexpr int packing_panels = 8;

/// Rows that are computed together: whole row panels; where A is copied, as many as there is room for.
constexpr int unit_rows = a_in_place ? packing_panels * MR : packed_a_rows;

/// The first row panels of a block, which pack B meanwhile: each panel of columns is met by all of them, and each of them copies its part
/// of the next one. Row panel p of `panels` has the rows from m·p / panels on, one less than MR at least; `count` of them are computed.
SYCL_MAT_CALL void packing_row_panels(const acc_t* a, index lda, const in_t* b, index ldb, acc_t* packed, int kc, int nc, index m,
                                      index panels, int count, const Target& t, index i0, index j0) {
  const acc_t* in_place = reinterpret_cast<const acc_t*>(b);
  const int whole = nc / NR * NR;
  if (whole > 0) pack_panel(b, ldb, packed, kc, NR);
  for (int j = 0; j < whole; j += NR) {
    const acc_t* panel = packed + index(j) * kc;
    for (int p = 0; p < count; ++p) {
      const index i = m * p / panels;
      const bool high = m * (p + 1) / panels - i == MR;
      Copying copy;
      if (j + NR < whole) {
        const int k = kc * p / count;
        copy = {in_place + k * ldb + j + NR, ldb, packed + index(j + NR) * kc + k * NR, kc * (p + 1) / count - k, count};
      }
      if (high)
        register_block<MR, NV, true>(a + (a_by_columns ? i : i * lda), lda, panel, NR, kc, t, i0 + i, j0 + j, NR, copy);
      else if constexpr (MR > 1)
        register_block<MR - 1, NV, true>(a + (a_by_columns ? i : i * lda), lda, panel, NR, kc, t, i0 + i, j0 + j, NR, copy);
    }
  }
}

/// m rows of A from `a` on, D's from i0 on, against a block of B, in row panels as even as possible: 13 rows are 5 + 4 + 4. `ready`: B's
/// whole panels are packed; left true where they are now.
SYCL_MAT_INLINE void row_panels(const acc_t* a, index lda, const in_t* b, index ldb, acc_t* packed, int kc, int nc, bool& ready,
                                const Target& t, index m, index i0, index j0) {
  const index panels = (m + MR - 1) / MR;
  index met = 0;  // row panels that have met B's whole panels
  if constexpr (b_in_place && PACK == 2)
    if (!ready && m / panels >= MR - 1) {
      met = min(panels, packing_panels);
      packing_row_panels(a, lda, b, ldb, packed, kc, nc, m, panels, int(met), t, i0, j0);
      ready = true;
    }
  for (index p = 0; p < panels; ++p) {
    const index i = m * p / panels;
    const int r = int(m * (p + 1) / panels - i);
    rows<MR>(r, a + (a_by_columns ? i : i * lda), lda, b, ldb, packed, kc, p < met ? nc / NR * NR : 0, nc, ready, t, i0 + i, j0);
    ready = PACK != 0 && (ready || !b_in_place);
  }
}

/// `rows` rows of A over kc products, each row contiguous.
SYCL_MAT_CALL void pack_rows(const in_t* a, index lda, int rows, int kc, acc_t* to, index to_ld) {
  if constexpr (TRANS_A) {
    transpose(Widened{a, lda}, kc, rows, to, to_ld);
  } else {
#pragma clang loop unroll(disable)
    for (int r = 0; r < rows; ++r) {
      int k = 0;
#pragma clang loop unroll(disable)
      for (; k + WIDTH <= kc; k += WIDTH) store(to + r * to_ld + k, load_wide(a + r * lda + k));
#pragma clang loop unroll(disable) vectorize(disable)
      for (; k < kc; ++k) to[r * to_ld + k] = widen(a[r * lda + k]);
    }
  }
}

/// One block of B: the products [pc, pc + kc), the columns [jc, jc + nc).
struct BlockOfB {
  index pc, jc;
  int kc, nc;
};

/// How a block of D is walked: blocks of columns, in each of them blocks of K, as even as possible.
struct Walk {
  BlockOfD d;
  index k0, k1;

  index depth_blocks() const { return k1 > k0 ? (k1 - k0 + KC - 1) / KC : 1; }
  index column_blocks() const { return (d.j1 - d.j0 + NC - 1) / NC; }
  BlockOfB block(index column, index depth) const {
    BlockOfB x;
    x.jc = d.j0 + share(d.j1 - d.j0, NR, column, column_blocks());
    x.nc = int(d.j0 + share(d.j1 - d.j0, NR, column + 1, column_blocks()) - x.jc);
    x.pc = k0 + (k1 - k0) * depth / depth_blocks();
    x.kc = int(k0 + (k1 - k0) * (depth + 1) / depth_blocks() - x.pc);
    return x;
  }
  BlockOfB last() const { return block(column_blocks() - 1, depth_blocks() - 1); }
};
SYCL_MAT_INLINE Walk walk_of(const Args& g, const BlockOfD& d) { return {d, g.k * d.k / g.split_k, g.k * (d.k + 1) / g.split_k}; }

/// Groups help each other at the end. In its last block of B a group takes its rows unit after unit, and so does whoever is done with its
/// own, from the panels that the group has packed. Every result is the same sum whoever computes it, and nobody waits. In ints: how many
/// groups are done, then for each, in a cache line of its own, whether the panels of its last block are packed, and how many units of it
/// are taken.
struct Help {
  int* ints;
  index own, groups;
  acc_t* memory;  // of group 0

  int* of(index group) const { return ints + packed_help_counters(group); }
  bool packed(index group) const { return fetch_add(of(group), 0) != 0; }
  void set_packed() const { fetch_add(of(own), 1); }
  index take(index group) const { return fetch_add(of(group) + 1, 1); }
  /// Whoever is the last one leaves zeros behind.
  void leave() const {
    if (fetch_add(ints, 1) == groups - 1)
      for (index x = 0; x < packed_help_counters(groups); ++x) ints[x] = 0;
  }
};

/// Rows [ic, ic1) of D against one block of B. `help`: null, but for a group's last block.
SYCL_MAT_INLINE void meet_block_of_b(const Matrices& x, const Args& g, const Target& t, acc_t* packed, acc_t* a_rows, index a_ld, index ic,
                                     index ic1, BlockOfB block, const Help* help) {
  const in_t* b = x.b + at_b(g, block.pc, block.jc);
  const int whole = block.nc / NR * NR;
  if constexpr (PACK == 1)
    for (int j = 0; j < whole; j += NR) pack_panel(b + (TRANS_B ? j * g.ldb : j), g.ldb, packed + index(j) * block.kc, block.kc, NR);
  if (whole < block.nc)
    pack_panel(b + (TRANS_B ? whole * g.ldb : whole), g.ldb, packed + index(whole) * block.kc, block.kc, block.nc - whole);
  bool ready = PACK == 1;
  index group = help ? help->own : 0, tried = 0;
  index unit = 0, units = (ic1 - ic + unit_rows - 1) / unit_rows;
  for (;;) {
    if (unit >= units) {
      if (!help || ++tried == help->groups) return;
      group = (help->own + tried) % help->groups;
      if (!help->packed(group)) continue;
      const Walk walk = walk_of(g, block_of_d(g, group, MR, NR));
      block = walk.last(), ic = walk.d.i0, ic1 = walk.d.i1;
      b = x.b + at_b(g, block.pc, block.jc);
      packed = help->memory + group * g.scratch_stride;
      ready = PACK != 0;
      units = (ic1 - ic + unit_rows - 1) / unit_rows;
      unit = 1 + help->take(group);
      continue;
    }
    const index ia = ic + unit * unit_rows;
    const int m = int(min(unit_rows, ic1 - ia));
    const acc_t* a = a_rows;
    if constexpr (a_in_place) {
      a = reinterpret_cast<const acc_t*>(x.a) + at_a(g, ia, block.pc);
    } else {
      pack_rows(x.a + at_a(g, ia, block.pc), g.lda, m, block.kc, a_rows, a_ld);
    }
    row_panels(a, a_ld, b, g.ldb, packed, block.kc, block.nc, ready, t, m, ia, block.jc);
    if (help && (ready || PACK == 0)) {
      if (unit == 0) help->set_packed();  // the first unit is always the group's own
      unit = 1 + help->take(group);
    } else {
      ++unit;
    }
  }
}

/// Everything of one block of D over its part of K.
SYCL_MAT_INLINE void compute(const Matrices& x, const Args& g, Target& t, acc_t* own, const PackedLayout& layout, const BlockOfD& d,
                             const Help* help) {
  const Walk walk = walk_of(g, d);
  const bool split = g.split_k > 1, with_c = d.k == 0;
  const index depth = walk.k1 - walk.k0, a_ld = a_in_place ? g.lda : (depth < KC ? depth : KC) + packed_a_pad;
  const index mc = MC > 0 ? MC : d.i1 - d.i0 > 0 ? d.i1 - d.i0 : 1;
  for (index ic = d.i0; ic < d.i1; ic += mc)
    for (index cb = 0; cb < walk.column_blocks(); ++cb)
      for (index q = 0; q < walk.depth_blocks(); ++q) {
        const BlockOfB block = walk.block(cb, q);
        const bool last_depth = q + 1 == walk.depth_blocks();
        t.add = q > 0;
        t.with_c = BETA && with_c && q == 0;
        t.last = !split && last_depth;
        t.direct = !t.with_c && !(t.last && (BIAS != 0 || ACTIVATION != 0 || !sums_in_d));
        if (!split && !sums_in_d) {
          t.sums = own + layout.sums;
          t.sums_ld = layout.sums_ld;
          t.i0 = ic;
          t.j0 = block.jc;
        }
        meet_block_of_b(x, g, t, own, own + layout.a, a_ld, ic, min(ic + mc, d.i1), block,
                        last_depth && cb + 1 == walk.column_blocks() ? help : nullptr);
      }
}

}  // namespace sycl_mat

KERNEL(3)
packed(const sycl_mat::in_t* a, const sycl_mat::in_t* b, const sycl_mat::out_t* c, sycl_mat::out_t* d, const sycl_mat::acc_t* bias,
       void* scratch, sycl_mat::Args g) {
  using namespace sycl_mat;
  const PackedLayout layout = packed_layout((g.m + g.split_m - 1) / g.split_m + MR, (g.n + g.split_n - 1) / g.split_n + NR,
                                            (g.k + g.split_k - 1) / g.split_k, MC, NC, KC, NR, !a_in_place, !sums_in_d);
  const index groups = group_count(0);
  const bool helps = MC == 0 && sums_in_d && packed_helps(g.m, g.n, g.k, g.batch, g.split_m * g.split_n, g.split_k, groups);
  for_blocks_of_d(a, b, c, d, bias, scratch, g, MR, NR, helps ? packed_help_counters(groups) : 0,
                  [&](const Matrices& x, Target& t, acc_t* own, const BlockOfD& block) SYCL_MAT_LAMBDA {
                    const index number = block.m + block.n * g.split_m;
                    const Help help{static_cast<int*>(scratch), number, groups, own - number * g.scratch_stride};
                    compute(x, g, t, own, layout, block, helps ? &help : nullptr);
                    if (helps) help.leave();
                  });
}
