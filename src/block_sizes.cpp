#include "block_sizes.hpp"

#include "staging.hpp"
#include "strided_copy.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

constexpr std::int64_t worth_cutting = std::int64_t(64) << 20;  // bytes of all operands: below, one copy each is as fast
constexpr index_t usual_block = 4096;                           // fills a large GPU, and its panels copy in a few milliseconds
constexpr index_t least_block = 1024;                           // still fills it
constexpr int most_rounds = 3;                                  // see docs/nvidia.md
constexpr index_t least_depth = 512;                            // of the first: kernels need some stages to get going
// The more there is to compute for what is copied, the larger may blocks be, whose kernels are faster; otherwise little should be left over
// at the beginning and the end. A row of a block for so many results, as measured on an H200: 8192² in 1024², 16384² in 4096².
constexpr index_t results_a_row = 65536;

/// A device with memory of its own, to which ordinary arrays must be copied.
bool copies_everything(const Context::State& context) { return !context.info.unified_memory && !context.info.usm_system; }

std::int64_t bytes_of_all(const Operands& o) { return dense_bytes(o.a) + dense_bytes(o.b) + dense_bytes(o.d); }

}  // namespace

std::int64_t limit_of(const Context::State& context, const GemmOptions& options) {
  const std::int64_t device = context.info.global_memory / 10 * 8;  // other programs, and our scratch
  return options.max_device_memory > 0 ? std::min(options.max_device_memory, device) : device;
}

index_t depths(const Operands& o, const BlockSizes& s) { return s.rounds > 1 ? s.rounds : pieces(o.a.cols, s.depth); }

index_t depth_before(const Operands& o, const BlockSizes& s, index_t x) {
  if (s.rounds == 1) return x * s.depth;
  constexpr index_t step = 128;  // whole tiles of any kernel
  return x == 0 ? 0 : x == s.rounds ? o.a.cols : (o.a.cols >> 2 * (s.rounds - x)) / step * step;
}

index_t block_count(const Operands& o, const BlockSizes& s) { return pieces(o.d.rows, s.rows) * pieces(o.d.cols, s.columns); }
std::int64_t bytes_needed(const Operands& o, const BlockSizes& s, const Room& room) {
  const auto in = size_of(o.a.dtype), out = size_of(o.d.dtype);
  const index_t lines =
      room.all_panels ? pieces(o.d.rows, s.rows) * s.rows + pieces(o.d.cols, s.columns) * s.columns : 2 * (s.rows + s.columns);
  const index_t depth = !room.all_panels || s.rounds > 1 ? s.depth : pieces(o.a.cols, s.depth) * s.depth;
  return in * depth * lines + out * room.results * s.rows * s.columns;
}
Room room_for(const Operands& o, const BlockSizes& s, std::int64_t limit) {
  Room room{true};
  if (bytes_needed(o, s, room) > limit) return {};
  const std::int64_t left = limit - bytes_needed(o, s, room), block = size_of(o.d.dtype) * s.rows * s.columns;
  room.results = std::min(room.results + left / block, std::max(least_results, block_count(o, s)));
  return room;
}

std::vector<std::pair<index_t, index_t>> block_order(index_t rows, index_t columns, bool all_panels_fit) {
  std::vector<std::pair<index_t, index_t>> order;
  if (!all_panels_fit) {  // one panel of B against all of A, back and forth, so that the turn needs no copy
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = 0; i < rows; ++i) order.emplace_back(j % 2 ? rows - 1 - i : i, j);
    return order;
  }
  for (index_t s = 0; s < std::max(rows, columns); ++s) {
    if (s < rows)
      for (index_t j = 0; j <= std::min(s, columns - 1); ++j) order.emplace_back(s, j);
    if (s < columns)
      for (index_t i = 0; i < std::min(s, rows); ++i) order.emplace_back(i, s);
  }
  return order;
}

bool stack_exceeds_memory(const Context::State& context, const Operands& o, const GemmOptions& options) {
  return copies_everything(context) && !o.d.batch.empty() && bytes_of_all(o) > limit_of(context, options);
}

std::optional<BlockSizes> block_sizes(const Context::State& context, const Operands& o, const GemmOptions& options) {
  if (!copies_everything(context) || !o.d.batch.empty()) return std::nullopt;
  const std::int64_t bytes = bytes_of_all(o);
  const std::int64_t limit = limit_of(context, options);
  if (bytes < std::min(worth_cutting, limit)) return std::nullopt;
  for (const MatrixView* v : {&o.a, &o.b, &o.d, o.c ? &*o.c : &o.d})
    if (sycl::get_pointer_type(v->data, context.queue.get_context()) != sycl::usm::alloc::unknown) return std::nullopt;
  if (may_overlap(o.d, o.a) || may_overlap(o.d, o.b) || (o.c && !same_places(*o.c, o.d) && may_overlap(o.d, *o.c))) return std::nullopt;

  const index_t depth = std::max<index_t>(o.a.cols, 1);
  const bool continued = o.d.dtype != DType::float16 && o.d.dtype != DType::bfloat16;  // sums cut along K are rounded once more
  // Powers of two, or many kernels' tiles would not fill the device evenly.
  index_t block = least_block;
  while (block < usual_block && block * (continued ? 1 : 2) < o.d.rows * o.d.cols / results_a_row) block *= 2;
  BlockSizes fine{std::min(block, o.d.rows), std::min(block, o.d.cols), depth};
  if (const Room room = room_for(o, fine, limit); room.all_panels) {
    if (continued && room.results >= block_count(o, fine) && block_count(o, fine) > 1)
      while (fine.rounds < most_rounds && depth >> 2 * fine.rounds >= least_depth) ++fine.rounds;
    return fine;
  }
  // Otherwise panels are sent several times, the less often the larger blocks are.
  BlockSizes s{std::min(usual_block, o.d.rows), std::min(usual_block, o.d.cols), depth};
  // Two panels of each kind must fit. Halve what is largest; the depth last.
  constexpr index_t smallest = 64;
  while (bytes_needed(o, s, {}) > limit) {
    if (std::max(s.rows, s.columns) > smallest) {
      (s.rows > s.columns ? s.rows : s.columns) = (std::max(s.rows, s.columns) + 1) / 2;
    } else if (s.depth > smallest && continued) {
      s.depth = (s.depth + 1) / 2;
    } else {
      throw OutOfMemoryError("out of memory: not even blocks of " + std::to_string(s.rows) + "×" + std::to_string(s.columns) +
                             " fit into " + std::to_string(limit) + " bytes of device memory. Raise max_device_memory.");
    }
  }
  return s;
}

}  // namespace sycl_mat
