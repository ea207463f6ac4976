// Products with at most eight rows, or at most eight columns, on GPUs: matrix-vector products among them. The long operand is read once,
// at the speed of memory, straight into registers; the FEW vectors of the small one come from the caches.
//
//   SIDE 0: D (FEW × n) = A·B, long operand B        SIDE 1: D (m × FEW) = A·B, long operand A
//
//   The long operand lies along K:  dot products.           … lies along the results:  rows of it are scaled and added.
//   ┌──────── K ────────┐                                   ┌──── results ────┐
//   │0123 0123 0123 0123│ ALONG_K work-items side by        │ 0  1  2  3      │ CHUNK results a work-item, ACROSS work-items side by
//   │4567 4567 …        │ side read chunks of a row, the    │ 4  5  6  7      │ side; those that stand below one another take
//   └───────────────────┘ same ones of ROWS rows            │ 0  1  2  3      │ STEPS rows each in turn
//                                                           └─────────────────┘
//
// The sums of the ALONG_K work-items that share a result come together in local memory, those of groups that share K (SPLIT) in scratch
// memory; both in a fixed order, so that the same call gives the same bits. Nobody waits for anybody.
#include "device.hpp"

// constants: begin
constexpr int SIDE = 0;
constexpr int FEW = 1;
constexpr int ITEMS = 256;   // work-items of a group
constexpr int ALONG_K = 64;  // of them share a result
constexpr int CHUNK = 4;     // elements of the long operand that a load moves
constexpr int ROWS = 4;      // results of a work-item where the long operand lies along K (else it has CHUNK of them)
constexpr int STEPS = 4;     // loads of each row under way at a time; where the long operand lies along the results: rows of it
constexpr int SPLIT = 0;     // 1: groups share K
constexpr int PASSING = 0;   // 1: the long operand is larger than the caches (NVIDIA)
constexpr int SUB_GROUP = 0;
// constants: end

namespace sycl_mat {

constexpr bool LARGE_ALONG_K = SIDE == 0 ? TRANS_B != 0 : TRANS_A == 0;
constexpr bool SMALL_ALONG_K = SIDE == 0 ? TRANS_A == 0 : TRANS_B != 0;

constexpr int ACROSS = ITEMS / ALONG_K;  // work-items side by side along the results
constexpr int EACH = LARGE_ALONG_K ? ROWS : CHUNK;
constexpr int BLOCK = ACROSS * EACH;  // results of a group

// Vector loads at any element's address are single ones in PTX, and slow on Intel GPUs for elements below 4 bytes.
#ifdef __NVPTX__
constexpr bool PREFERS_ALIGNED = true;
#else
constexpr bool PREFERS_ALIGNED = sizeof(in_t) < 4;
#endif

// ---- operands ------------------------------------------------------------------------------------------------------------------
template <int n>
SYCL_MAT_INLINE Vector<in_t, n> neighbours(const in_t* from) {
  if constexpr (n == 1) {
    return {*from};
  } else if constexpr (PREFERS_ALIGNED) {
    return load_constant_aligned<n>(from);
  } else {
    return load_unaligned<n>(from);
  }
}

/// The same of the long operand, of which nothing is read twice. Where it does not fit into the caches it shall not displace the small one.
template <int n>
SYCL_MAT_INLINE Vector<in_t, n> passing(const in_t* from) {
#ifdef __NVPTX__
  if constexpr (PASSING && n * sizeof(in_t) == 16) {
    struct Words {
      unsigned w[4];
    } x;
    asm("ld.global.cs.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3]) : "l"(from));
    return __builtin_bit_cast(Vector<in_t, n>, x);
  }
#endif
  return neighbours<n>(from);
}

/// Neighbours along k that are read from the small operand, or, where its vectors are interleaved, neighbours among the vectors.
constexpr int SMALL_CHUNK = !SMALL_ALONG_K ? gcd(FEW, CHUNK) : LARGE_ALONG_K ? CHUNK : STEPS;

/// What a group multiplies: the long operand from its first result on, and the small one.
struct Sources {
  const in_t* large;
  const in_t* small;
  index large_ld, small_ld;
  int there;  // results that there are

  SYCL_MAT_MEMBER Sources(const Matrices& from, const Args& g, index first, index results)
      : large((SIDE == 0 ? from.b : from.a) + first * (LARGE_ALONG_K ? (SIDE == 0 ? g.ldb : g.lda) : 1)),
        small(SIDE == 0 ? from.a : from.b),
        large_ld(SIDE == 0 ? g.ldb : g.lda),
        small_ld(SIDE == 0 ? g.lda : g.ldb),
        there(int(min(results - first, BLOCK))) {}
  /// Whether chunks can be loaded as vectors. Parts of K begin at multiples of all chunks.
  SYCL_MAT_MEMBER bool in_chunks() const {
    if (!LARGE_ALONG_K && there % CHUNK != 0) return false;
    if constexpr (!PREFERS_ALIGNED) return true;
    constexpr index large_bytes = CHUNK * sizeof(in_t), small_bytes = SMALL_CHUNK * sizeof(in_t) < 16 ? SMALL_CHUNK * sizeof(in_t) : 16;
    const index lines = small_ld * index(sizeof(in_t)) * (FEW > 1 || !SMALL_ALONG_K);
    return ((reinterpret_cast<index>(large) | (large_ld * index(sizeof(in_t)))) % large_bytes |
            (reinterpret_cast<index>(small) | lines) % small_bytes) == 0;
  }
  /// Elements of all vectors at one k.
  template <bool chunks>
  SYCL_MAT_MEMBER void at(index k, acc_t (&x)[FEW]) const {
    if constexpr (SMALL_ALONG_K) {
#pragma unroll
      for (int t = 0; t < FEW; ++t) x[t] = widen(small[t * small_ld + k]);
    } else {
      constexpr int n = chunks ? SMALL_CHUNK : 1;
#pragma unroll
      for (int t = 0; t < FEW; t += n) {
        const auto v = neighbours<n>(small + k * small_ld + t);
#pragma unroll
        for (int e = 0; e < n; ++e) x[t + e] = widen(v[e]);
      }
    }
  }
};

/// A work-item's place in its group.
struct Place {
  int across, along;
};

struct Sums {
  acc_t at[EACH][FEW] = {};
};

// ---- the long operand lies along K ---------------------------------------------------------------------------------------------------
/// `count` chunks of n elements, ALONG_K chunks apart from each other, of every row.
template <int n, int count, bool chunks>
SYCL_MAT_INLINE void add_chunks(Sums& sums, const Sources& from, const in_t* const (&rows)[ROWS], index k) {
  Vector<in_t, n> x[count][ROWS];
#pragma unroll
  for (int s = 0; s < count; ++s)
#pragma unroll
    for (int r = 0; r < ROWS; ++r) x[s][r] = passing<n>(rows[r] + k + s * ALONG_K * n);
#pragma unroll
  for (int s = 0; s < count; ++s) {
    if constexpr (SMALL_ALONG_K) {
#pragma unroll
      for (int t = 0; t < FEW; ++t) {
        const auto y = neighbours<n>(from.small + t * from.small_ld + k + s * ALONG_K * n);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
          for (int e = 0; e < n; ++e) sums.at[r][t] = multiply_add(widen(x[s][r][e]), widen(y[e]), sums.at[r][t]);
      }
    } else {
      static_assert(n == 1);
      acc_t y[FEW];
      from.at<chunks>(k + s * ALONG_K, y);
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int t = 0; t < FEW; ++t) sums.at[r][t] = multiply_add(widen(x[s][r][0]), y[t], sums.at[r][t]);
    }
  }
}

template <bool chunks>
SYCL_MAT_INLINE void add_dot_products(Sums& sums, const Sources& from, const Place& place, index begin, index end) {
  // Interleaved vectors are read by work-items whose elements are neighbours, so that these meet in the same lines.
  constexpr int n = chunks && SMALL_ALONG_K ? CHUNK : 1, count = n == 1 && STEPS < 4 ? 4 : STEPS;
  const in_t* rows[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) rows[r] = from.large + min(place.across + r * ACROSS, from.there - 1) * from.large_ld;
  index k = begin + place.along * n;
  for (; k + (count - 1) * ALONG_K * n + n <= end; k += count * ALONG_K * n) add_chunks<n, count, chunks>(sums, from, rows, k);
  for (; k + n <= end; k += ALONG_K * n) add_chunks<n, 1, chunks>(sums, from, rows, k);
  if constexpr (n > 1)
    for (k = end - (end - begin) % n + place.along; k < end; k += ALONG_K) add_chunks<1, 1, chunks>(sums, from, rows, k);
}

// ---- the long operand lies along the results -----------------------------------------------------------------------------------------
/// Which of the group's results is number e of a work-item: neighbours in chunks, or such as neighbouring work-items read together.
SYCL_MAT_INLINE int result_of(const Place& place, int e, bool chunks) {
  return LARGE_ALONG_K || !chunks ? place.across + e * ACROSS : place.across * CHUNK + e;
}

/// `count` rows from k on.
template <int count, bool chunks>
SYCL_MAT_INLINE void add_rows(Sums& sums, const Sources& from, const int (&columns)[CHUNK], index k) {
  in_t x[count][CHUNK];
#pragma unroll
  for (int s = 0; s < count; ++s) {
    const in_t* const row = from.large + (k + s) * from.large_ld;
    if constexpr (chunks) {
      const auto v = passing<CHUNK>(row + columns[0]);
#pragma unroll
      for (int e = 0; e < CHUNK; ++e) x[s][e] = v[e];
    } else {
#pragma unroll
      for (int e = 0; e < CHUNK; ++e) x[s][e] = row[columns[e]];
    }
  }
  acc_t y[count][FEW];
  if constexpr (SMALL_ALONG_K && chunks && count == SMALL_CHUNK) {
#pragma unroll
    for (int t = 0; t < FEW; ++t) {
      const auto v = neighbours<count>(from.small + t * from.small_ld + k);
#pragma unroll
      for (int s = 0; s < count; ++s) y[s][t] = widen(v[s]);
    }
  } else {
#pragma unroll
    for (int s = 0; s < count; ++s) from.at<chunks>(k + s, y[s]);
  }
#pragma unroll
  for (int s = 0; s < count; ++s)
#pragma unroll
    for (int e = 0; e < CHUNK; ++e)
#pragma unroll
      for (int t = 0; t < FEW; ++t) sums.at[e][t] = multiply_add(widen(x[s][e]), y[s][t], sums.at[e][t]);
}

template <bool chunks>
SYCL_MAT_INLINE void add_scaled_rows(Sums& sums, const Sources& from, const Place& place, index begin, index end) {
  int columns[CHUNK];  // beyond the edge the last ones are read again, and nobody stores what comes of it
#pragma unroll
  for (int e = 0; e < CHUNK; ++e) columns[e] = int(min(result_of(place, e, chunks), from.there - (chunks ? CHUNK - e : 1)));
  index k = begin + place.along * STEPS;
  for (; k + STEPS <= end; k += ALONG_K * STEPS) add_rows<STEPS, chunks>(sums, from, columns, k);
  if constexpr (STEPS > 1)
    for (k = end - (end - begin) % STEPS + place.along; k < end; k += ALONG_K) add_rows<1, chunks>(sums, from, columns, k);
}

// ---- sums come together --------------------------------------------------------------------------------------------------------
// Vectors whose sums are in local memory at a time: all of them, if they are few.
constexpr int most_bytes = 16384, bytes_of_one = ITEMS * EACH * int(sizeof(acc_t));
constexpr int TOGETHER = FEW * bytes_of_one <= most_bytes                       ? FEW
                         : FEW % 2 == 0 && FEW / 2 * bytes_of_one <= most_bytes ? FEW / 2
                         : FEW % 4 == 0 && FEW / 4 * bytes_of_one <= most_bytes ? FEW / 4
                                                                                : 1;
// Of more than RADIX numbers first every so manieth are added, then their sums.
constexpr int RADIX = 16;
constexpr int LEFT = ALONG_K > RADIX ? ALONG_K / RADIX : ALONG_K;
constexpr int SHARERS_OF_PARTS = ITEMS / (FEW * BLOCK) > 16 ? 16 : ITEMS / (FEW * BLOCK) > 1 ? ITEMS / (FEW * BLOCK) : 1;

struct alignas(64) Memory {
  acc_t all[TOGETHER * ITEMS * EACH];
  acc_t some[ALONG_K > RADIX ? TOGETHER * LEFT * BLOCK : 1];
  int last;  // this group is the last of those that share K
};
static local_memory_of<Memory> local;

/// Where number i of `count` for a result of vector t is kept: such that neighbouring work-items meet neighbouring numbers.
template <int count>
SYCL_MAT_INLINE int place_of(int t, int result, int i) {
  return LARGE_ALONG_K ? (t * BLOCK + result) * count + i : (t * count + i) * BLOCK + result;
}

/// Calls finish(t, result, sum) once for each result of the group.
SYCL_MAT_INLINE void add_up(const Sums& sums, const Place& place, int item, bool chunks, auto finish) {
  if constexpr (ALONG_K == 1) {
#pragma unroll
    for (int t = 0; t < FEW; ++t)
#pragma unroll
      for (int e = 0; e < EACH; ++e) finish(t, result_of(place, e, chunks), sums.at[e][t]);
    return;
  }
  Memory& memory = contents(local);
#pragma unroll
  for (int first = 0; first < FEW; first += TOGETHER) {
#pragma unroll
    for (int t = 0; t < TOGETHER; ++t)
#pragma unroll
      for (int e = 0; e < EACH; ++e) memory.all[place_of<ALONG_K>(t, result_of(place, e, chunks), place.along)] = sums.at[e][first + t];
    barrier();
    const acc_t* from = memory.all;
    if constexpr (ALONG_K > RADIX) {
      constexpr int tasks = TOGETHER * BLOCK * LEFT;
      for (int task = item; task < tasks; task += ITEMS) {
        const int i = LARGE_ALONG_K ? task % LEFT : task / BLOCK % LEFT, result = LARGE_ALONG_K ? task / LEFT % BLOCK : task % BLOCK;
        const int t = task / (LEFT * BLOCK);
        acc_t sum = 0;
#pragma unroll
        for (int j = 0; j < RADIX; ++j) sum += memory.all[place_of<ALONG_K>(t, result, i + j * LEFT)];
        memory.some[place_of<LEFT>(t, result, i)] = sum;
      }
      barrier();
      from = memory.some;
    }
    for (int task = item; task < TOGETHER * BLOCK; task += ITEMS) {
      const int t = task / BLOCK, result = task % BLOCK;
      acc_t sum = 0;
#pragma unroll
      for (int i = 0; i < LEFT; ++i) sum += from[place_of<LEFT>(t, result, i)];
      finish(first + t, result, sum);
    }
    if constexpr (TOGETHER < FEW && ALONG_K <= RADIX) barrier();
  }
}

/// What each work-item does besides the one that counts. PTX needs nothing: barriers order all memory among the group's work-items, and the
/// one that counts orders that for the device, where fences of all would empty the first cache once a warp.
SYCL_MAT_INLINE void fence_of_all() {
#ifndef __NVPTX__
  device_fence();
#endif
}

KERNEL_WITH_SUB_GROUP(3, SUB_GROUP)
gemv(const in_t* __restrict__ a, const in_t* __restrict__ b, const out_t* c, out_t* d, const acc_t* __restrict__ bias, void* scratch,
     Args g) {
  const index results = SIDE == 0 ? g.n : g.m;
  const int item = local_id(0), blocks = int((results + BLOCK - 1) / BLOCK), splits = SPLIT ? int(g.split_k) : 1;
  const int block = group_id(0) % blocks, part = group_id(0) / blocks % splits, batch = group_id(0) / blocks / splits;
  const Place place = LARGE_ALONG_K ? Place{item / ALONG_K, item % ALONG_K} : Place{item % ACROSS, item / ACROSS};
  // A division of 64 bits takes so long that a product without a stack had better not wait for it.
  const Matrices matrix = batch == 0 ? Matrices{a, b, c, d} : matrices(a, b, c, d, g, batch);
  const index first = index(block) * BLOCK;

  Sums sums;
  bool chunks;
  {
    constexpr index unit = 64;  // parts of K are multiples of it
    const index depth = SPLIT ? index((unsigned((g.k + unit - 1) / unit) + unsigned(splits) - 1) / unsigned(splits)) * unit : g.k;
    const index begin = SPLIT ? min(part * depth, g.k) : 0, end = SPLIT ? min(begin + depth, g.k) : g.k;
    const Sources from(matrix, g, first, results);
    chunks = from.in_chunks();
    if constexpr (LARGE_ALONG_K) {
      if (chunks)
        add_dot_products<true>(sums, from, place, begin, end);
      else
        add_dot_products<false>(sums, from, place, begin, end);
    } else {
      if (chunks)
        add_scaled_rows<true>(sums, from, place, begin, end);
      else
        add_scaled_rows<false>(sums, from, place, begin, end);
    }
  }

  const auto write = [&](int t, int result, acc_t sum) SYCL_MAT_LAMBDA {
    if (first + result >= results) return;
    const index i = SIDE == 0 ? t : first + result, j = SIDE == 0 ? first + result : t;
    matrix.d[i * g.ldd + j] = epilogue(sum, i, j, matrix.c, bias, g);
  };
  if constexpr (!SPLIT) {
    add_up(sums, place, item, chunks, write);
  } else {
    // Counters, zero before and after, then the parts' sums. Whoever comes last adds up all of them in their order.
    constexpr int all = FEW * BLOCK;
    const int shared = batch * blocks + block, counters = int(g.batch) * blocks;
    int* const arrived = static_cast<int*>(scratch) + shared;
    acc_t* const parts = reinterpret_cast<acc_t*>(static_cast<char*>(scratch) + (index(counters) * 4 + 255) / 256 * 256) +
                         index(shared) * splits * g.scratch_stride;
    add_up(sums, place, item, chunks,
           [&](int t, int result, acc_t sum) SYCL_MAT_LAMBDA { parts[part * g.scratch_stride + t * BLOCK + result] = sum; });
    fence_of_all();
    barrier();
    Memory& memory = contents(local);
    if (item == 0) {
      memory.last = fetch_add(arrived, 1) == splits - 1;
      if (memory.last) *arrived = 0;
    }
    barrier();
    if (!memory.last) return;
    fence_of_all();
    for (int at = item; at < all * SHARERS_OF_PARTS; at += ITEMS) {
      const acc_t* const from = parts + at % all;
      acc_t sum = 0;
#pragma unroll 4
      for (int p = at / all; p < splits; p += SHARERS_OF_PARTS) sum += from[p * g.scratch_stride];
      if constexpr (SHARERS_OF_PARTS == 1)
        write(at / BLOCK, at % BLOCK, sum);
      else
        memory.all[at] = sum;
    }
    if constexpr (SHARERS_OF_PARTS > 1) {
      barrier();
      if (item < all) {
        acc_t sum = 0;
        for (int p = 0; p < SHARERS_OF_PARTS; ++p) sum += memory.all[p * all + item];
        write(item / BLOCK, item % BLOCK, sum);
      }
    }
  }
}

}  // namespace sycl_mat

// Registers for a group of this size.
#undef LAUNCH_BOUNDS_NAMES
#undef LAUNCH_BOUNDS_VALUES
#define LAUNCH_BOUNDS_NAMES , "nvvm.maxntid"
#define LAUNCH_BOUNDS_VALUES , ITEMS
