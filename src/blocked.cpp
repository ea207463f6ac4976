#include "blocked.hpp"

#include <algorithm>
#include <map>
#include <thread>

#include "execute.hpp"
#include "rearrange.hpp"
#include "staging.hpp"
#include "strided_copy.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

constexpr std::int64_t worth_cutting = std::int64_t(64) << 20;  // bytes of all operands: below, one copy each is as fast
constexpr index_t usual_block = 4096;                           // fills a large GPU, and its panels copy in a few milliseconds
constexpr std::int64_t bounce_bytes = std::int64_t(32) << 20;   // of pinned memory: a piece of a panel
constexpr int bounces = 3;                                      // one filled by the host, one on its way, one spare
constexpr int result_slots = 3;                                 // blocks of C: computed, on its way back, emptied by the host
constexpr unsigned most_copy_threads = 8;                       // more do not copy faster than the memory delivers

index_t pieces(index_t size, index_t piece) { return std::max<index_t>(1, (size + piece - 1) / piece); }

/// Row-major or column-major, whichever the view nearly is, so that host copies run along contiguous lines.
bool by_columns(const MatrixView& v) { return v.row_stride == 1 && v.col_stride != 1; }

MatrixView dense_in_order_of(const MatrixView& like, void* data) {
  return by_columns(like) ? dense_like(like.transposed(), data).transposed() : dense_like(like, data);
}

MatrixView part(const MatrixView& v, index_t row, index_t rows, index_t col, index_t cols) {
  MatrixView p = v;
  p.data = static_cast<char*>(v.data) + (row * v.row_stride + col * v.col_stride) * size_of(v.dtype);
  p.rows = std::min(rows, v.rows - row);
  p.cols = std::min(cols, v.cols - col);
  return p;
}

/// copy_strided by several threads, along the lines of the destination.
void copy_in_parallel(const MatrixView& dst, const MatrixView& src) {
  if (by_columns(dst)) return copy_in_parallel(dst.transposed(), src.transposed());
  const unsigned hardware = std::max(1u, std::thread::hardware_concurrency());
  const index_t threads = std::min<index_t>({std::min(hardware, most_copy_threads), dst.rows, 1 + dense_bytes(dst) / (1 << 20)});
  std::vector<std::jthread> workers;
  for (index_t t = 1; t < threads; ++t) {
    const index_t from = dst.rows * t / threads, count = dst.rows * (t + 1) / threads - from;
    workers.emplace_back([=] { copy_strided(part(dst, from, count, 0, dst.cols), part(src, from, count, 0, src.cols)); });
  }
  const index_t mine = dst.rows / threads;
  copy_strided(part(dst, 0, mine, 0, dst.cols), part(src, 0, mine, 0, src.cols));
}

/// A panel or block on the device, and the work that must end before it may be overwritten.
struct DeviceSlot {
  void* memory = nullptr;
  sycl::event last_use;
  index_t age = 0;
};

class BlockedProduct {
 public:
  BlockedProduct(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes);
  void run();

 private:
  struct Bounce {
    void* memory = nullptr;
    sycl::event in_flight;
  };
  struct Finished {  // a block of C whose copy back is queued
    MatrixView target;
    int slot;
    sycl::event copied;
  };
  using Panels = std::map<std::pair<index_t, index_t>, DeviceSlot>;

  MatrixView panel(Panels& panels, std::size_t most, const MatrixView& whole, std::pair<index_t, index_t> key, index_t rows, index_t cols);
  sycl::event send(const MatrixView& device, const MatrixView& host, const sycl::event& after);
  void compute(index_t i, index_t j);
  void drain_one();

  Context::State& context_;
  const Operands& o_;
  const GemmOptions& options_;
  const BlockSizes sizes_;
  Borrowed memory_;
  sycl::queue in_, out_;  ///< copies, beside the context's queue, which computes
  Panels a_panels_, b_panels_;
  std::size_t most_a_ = 0, most_b_ = 0;
  std::int64_t left_;  ///< bytes of device memory for the kernels' own copies
  std::vector<Bounce> bounces_;
  std::size_t next_bounce_ = 0;
  DeviceSlot results_[result_slots];
  void* result_bounces_[result_slots] = {};
  std::vector<Finished> finished_;
  std::optional<MatrixView> bias_;
  int next_result_ = 0;
  index_t clock_ = 0;
};

std::int64_t limit_of(const Context::State& context, const GemmOptions& options) {
  const std::int64_t device = context.info.global_memory / 10 * 8;  // other programs, and our scratch
  return options.max_device_memory > 0 ? std::min(options.max_device_memory, device) : device;
}

/// A device with memory of its own, to which ordinary arrays must be copied.
bool copies_everything(const Context::State& context) { return !context.info.unified_memory && !context.info.usm_system; }

std::int64_t bytes_of_all(const Operands& o) { return dense_bytes(o.a) + dense_bytes(o.b) + dense_bytes(o.d); }

std::int64_t bytes_needed(const Operands& o, const BlockSizes& s, index_t a_panels, index_t b_panels) {
  const auto in = size_of(o.a.dtype), out = size_of(o.d.dtype);
  return in * s.depth * (a_panels * s.rows + b_panels * s.columns) + out * result_slots * s.rows * s.columns;
}

BlockedProduct::BlockedProduct(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes)
    : context_(context),
      o_(o),
      options_(options),
      sizes_(sizes),
      memory_(context.pool),
      in_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}),
      out_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}) {
  const index_t rows = pieces(o.d.rows, sizes.rows), columns = pieces(o.d.cols, sizes.columns), depths = pieces(o.a.cols, sizes.depth);
  most_a_ = static_cast<std::size_t>(rows * depths);
  most_b_ = static_cast<std::size_t>(columns * depths);
  if (bytes_needed(o, sizes, rows * depths, columns * depths) > limit_of(context, options)) most_a_ = most_b_ = 2;
  left_ = limit_of(context, options) - bytes_needed(o, sizes, static_cast<index_t>(most_a_), static_cast<index_t>(most_b_));
  bounces_.resize(bounces);
  for (Bounce& bounce : bounces_) bounce.memory = memory_.take(bounce_bytes, sycl::usm::alloc::host);
  const auto block_bytes = static_cast<std::size_t>(sizes.rows * sizes.columns * size_of(o.d.dtype));
  for (int i = 0; i < result_slots; ++i) {
    results_[i].memory = memory_.take(block_bytes, sycl::usm::alloc::device);
    result_bounces_[i] = memory_.take(block_bytes, sycl::usm::alloc::host);
  }
  if (o.bias) {
    bias_ = dense_like(*o.bias, memory_.take(static_cast<std::size_t>(dense_bytes(*o.bias)), sycl::usm::alloc::device));
    in_.memcpy(bias_->data, o.bias->data, static_cast<std::size_t>(dense_bytes(*o.bias))).wait();
  }
}

/// Host → device in pieces through pinned memory, so that the processor's copy of one piece runs beside the bus's copy of another.
sycl::event BlockedProduct::send(const MatrixView& device, const MatrixView& host, const sycl::event& after) {
  if (by_columns(device)) return send(device.transposed(), host.transposed(), after);
  const auto line = device.cols * size_of(device.dtype);
  const index_t lines = std::max<index_t>(1, bounce_bytes / std::max<std::int64_t>(line, 1));
  sycl::event last = after;
  for (index_t row = 0; row < device.rows; row += lines) {
    // A line longer than a bounce buffer goes in several pieces.
    const index_t columns = std::min<index_t>(device.cols, bounce_bytes / size_of(device.dtype));
    for (index_t col = 0; col < device.cols; col += columns) {
      Bounce& bounce = bounces_[next_bounce_++ % bounces_.size()];
      bounce.in_flight.wait();
      const MatrixView source = part(host, row, lines, col, columns);
      copy_in_parallel(dense_like(source, bounce.memory), source);
      const MatrixView target = part(device, row, lines, col, columns);
      bounce.in_flight = in_.memcpy(target.data, bounce.memory, static_cast<std::size_t>(dense_bytes(source)), last);
      last = bounce.in_flight;
    }
  }
  return last;
}

MatrixView BlockedProduct::panel(Panels& panels, std::size_t most, const MatrixView& whole, std::pair<index_t, index_t> key, index_t rows,
                                 index_t cols) {
  const MatrixView host = part(whole, key.first * rows, rows, key.second * cols, cols);
  if (const auto found = panels.find(key); found != panels.end()) {
    found->second.age = ++clock_;
    return dense_in_order_of(host, found->second.memory);
  }
  DeviceSlot slot;
  if (panels.size() < most) {
    slot.memory = memory_.take(static_cast<std::size_t>(rows * cols * size_of(whole.dtype)), sycl::usm::alloc::device);
  } else {
    const auto oldest =
        std::min_element(panels.begin(), panels.end(), [](const auto& x, const auto& y) { return x.second.age < y.second.age; });
    slot = oldest->second;
    panels.erase(oldest);
  }
  slot.age = ++clock_;
  const MatrixView device = dense_in_order_of(host, slot.memory);
  slot.last_use = send(device, host, slot.last_use);
  context_.queue.ext_oneapi_submit_barrier({slot.last_use});  // the compute queue goes on once the panel is there
  panels.insert_or_assign(key, slot);
  return device;
}

void BlockedProduct::drain_one() {
  const Finished block = finished_.front();
  finished_.erase(finished_.begin());
  sycl::event(block.copied).wait();
  copy_in_parallel(block.target, dense_in_order_of(block.target, result_bounces_[block.slot]));
}

void BlockedProduct::compute(index_t i, index_t j) {
  if (finished_.size() == result_slots) drain_one();
  const int slot = next_result_;
  next_result_ = (next_result_ + 1) % result_slots;
  const MatrixView target = part(o_.d, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns);
  const MatrixView block = dense_in_order_of(target, results_[slot].memory);

  Operands step{{}, {}, block, std::nullopt, std::nullopt};
  GemmOptions options = options_;
  if (o_.c) {
    const sycl::event there =
        send(block, part(*o_.c, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns), results_[slot].last_use);
    context_.queue.ext_oneapi_submit_barrier({there});
    step.c = block;
  }
  const index_t depths = pieces(o_.a.cols, sizes_.depth);
  for (index_t x = 0; x < depths; ++x) {
    step.a = panel(a_panels_, most_a_, o_.a, {i, x}, sizes_.rows, sizes_.depth);
    step.b = panel(b_panels_, most_b_, o_.b, {x, j}, sizes_.depth, sizes_.columns);
    // Bias and activation belong to the finished sum.
    const bool last = x + 1 == depths;
    options.epilogue.activation = last ? options_.epilogue.activation : Activation::none;
    options.epilogue.bias_axis = last ? options_.epilogue.bias_axis : BiasAxis::none;
    step.bias.reset();
    if (last && bias_) {
      const index_t from = options_.epilogue.bias_axis == BiasAxis::column ? j * sizes_.columns : i * sizes_.rows;
      step.bias = part(*bias_, 0, 1, from, options_.epilogue.bias_axis == BiasAxis::column ? block.cols : block.rows);
    }
    if (x > 0) {
      step.c = block;
      options.epilogue.beta = 1;
    }
    const Problem problem = make_problem(step, options);
    if (options.max_device_memory > 0) options.max_device_memory = bytes_of_operands(problem) + std::max<std::int64_t>(left_, 0);
    execute(context_, problem, options);
    const sycl::event used = context_.queue.ext_oneapi_submit_barrier();
    a_panels_.at({i, x}).last_use = used;
    b_panels_.at({x, j}).last_use = used;
    results_[slot].last_use = used;
  }
  const sycl::event copied =
      out_.memcpy(result_bounces_[slot], block.data, static_cast<std::size_t>(dense_bytes(block)), results_[slot].last_use);
  results_[slot].last_use = copied;
  context_.queue.ext_oneapi_submit_barrier();
  finished_.push_back({target, slot, copied});
}

void BlockedProduct::run() {
  const index_t rows = pieces(o_.d.rows, sizes_.rows), columns = pieces(o_.d.cols, sizes_.columns);
  try {
    for (const auto& [i, j] : block_order(rows, columns, most_a_ > 2 || rows * columns == 1)) compute(i, j);
    while (!finished_.empty()) drain_one();
    context_.wait();
  } catch (...) {  // nothing may be given back while a queue still uses it
    in_.wait();
    out_.wait();
    context_.queue.wait();
    throw;
  }
}

}  // namespace

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
  if (may_overlap(o.d, o.a) || may_overlap(o.d, o.b) || (o.c && o.c->data != o.d.data && may_overlap(o.d, *o.c))) return std::nullopt;

  BlockSizes s{std::min(usual_block, o.d.rows), std::min(usual_block, o.d.cols), std::max<index_t>(o.a.cols, 1)};
  // Two panels of each kind must fit. Halve what is largest; the depth last, because sums cut along K are rounded once more.
  constexpr index_t smallest = 64;
  while (bytes_needed(o, s, 2, 2) > limit) {
    if (std::max(s.rows, s.columns) > smallest) {
      (s.rows > s.columns ? s.rows : s.columns) = (std::max(s.rows, s.columns) + 1) / 2;
    } else if (s.depth > smallest && o.d.dtype != DType::float16 && o.d.dtype != DType::bfloat16) {
      s.depth = (s.depth + 1) / 2;
    } else {
      throw OutOfMemoryError("out of memory: not even blocks of " + std::to_string(s.rows) + "×" + std::to_string(s.columns) +
                             " fit into " + std::to_string(limit) + " bytes of device memory. Raise max_device_memory.");
    }
  }
  return s;
}

void multiply_in_blocks(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes) {
  BlockedProduct(context, o, options, sizes).run();
}

}  // namespace sycl_mat
