#include "blocked.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "copy_team.hpp"
#include "execute.hpp"
#include "families/families.hpp"
#include "rearrange.hpp"
#include "staging.hpp"
#include "strided_copy.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

constexpr std::int64_t worth_cutting = std::int64_t(64) << 20;  // bytes of all operands: below, one copy each is as fast
constexpr index_t usual_block = 4096;                           // fills a large GPU, and its panels copy in a few milliseconds
constexpr index_t least_block = 1024;                           // still fills it
constexpr index_t wanted_blocks = 8;                            // along an axis: little is left over at the beginning and the end
constexpr std::int64_t piece_bytes = std::int64_t(4) << 20;     // of pinned memory, that one thread fills or empties
constexpr index_t least_results = 3;                            // blocks of C: computed, on its way back, emptied by the host

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

index_t pieces(index_t size, index_t piece) { return std::max<index_t>(1, ceil_div(size, piece)); }

/// A dense matrix and its counterpart on the other side, in pieces that fit into pinned memory and lie in one piece in the dense one.
template <class Function>
void for_each_piece(const MatrixView& dense, const MatrixView& other, const Function& f) {
  if (by_columns(dense)) return for_each_piece(dense.transposed(), other.transposed(), f);
  const std::int64_t line = std::max<std::int64_t>(dense.cols * size_of(dense.dtype), 1);
  const index_t lines = std::max<index_t>(1, piece_bytes / line);
  const index_t columns = std::min<index_t>(dense.cols, piece_bytes / size_of(dense.dtype));  // a longer line goes in several pieces
  for (index_t row = 0; row < dense.rows; row += lines)
    for (index_t col = 0; col < dense.cols; col += columns) f(part(dense, row, lines, col, columns), part(other, row, lines, col, columns));
}

/// Pieces of pinned memory. Whoever takes one waits for what it was last used for.
struct Bounce {
  void* memory = nullptr;
  sycl::event in_flight;
};
class Bounces {
 public:
  void give(Bounce bounce) {
    {
      const std::lock_guard guard(mutex_);
      free_.push_back(std::move(bounce));
    }
    changed_.notify_one();
  }
  Bounce take() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return !free_.empty(); });
    const Bounce bounce = free_.front();
    free_.pop_front();
    return bounce;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bounce> free_;
};

/// A panel of A or B, or a block of C and D, on the device.
struct DeviceSlot {
  void* memory = nullptr;
  sycl::event last_use;  ///< must end before it may be overwritten
  index_t age = 0;
  // Its way there, or back.
  index_t pieces_left = 0;
  sycl::event last_piece;
  bool awaited = false;  ///< by the compute queue
};

std::int64_t limit_of(const Context::State& context, const GemmOptions& options) {
  const std::int64_t device = context.info.global_memory / 10 * 8;  // other programs, and our scratch
  return options.max_device_memory > 0 ? std::min(options.max_device_memory, device) : device;
}

/// A device with memory of its own, to which ordinary arrays must be copied.
bool copies_everything(const Context::State& context) { return !context.info.unified_memory && !context.info.usm_system; }

std::int64_t bytes_of_all(const Operands& o) { return dense_bytes(o.a) + dense_bytes(o.b) + dense_bytes(o.d); }

/// What is on the device at a time.
struct Room {
  index_t a_panels = 2, b_panels = 2, results = least_results;
};
std::int64_t bytes_needed(const Operands& o, const BlockSizes& s, const Room& room) {
  const auto in = size_of(o.a.dtype), out = size_of(o.d.dtype);
  return in * s.depth * (room.a_panels * s.rows + room.b_panels * s.columns) + out * room.results * s.rows * s.columns;
}
Room all_panels(const Operands& o, const BlockSizes& s) {
  const index_t depths = pieces(o.a.cols, s.depth);
  return {pieces(o.d.rows, s.rows) * depths, pieces(o.d.cols, s.columns) * depths};
}
/// All panels if they fit, and then as many results as do: the host need not hurry to fetch them.
Room room_for(const Operands& o, const BlockSizes& s, std::int64_t limit) {
  Room room = all_panels(o, s);
  if (bytes_needed(o, s, room) > limit) return {};
  const std::int64_t left = limit - bytes_needed(o, s, room), block = size_of(o.d.dtype) * s.rows * s.columns;
  room.results = std::min(room.results + left / block, std::max(least_results, pieces(o.d.rows, s.rows) * pieces(o.d.cols, s.columns)));
  return room;
}

/// Four kinds of threads: the caller's, which submits products as soon as their panels are on their way; the team's, which copy between
/// the caller's arrays and pinned memory, and submit what they filled; one that fetches finished blocks; and the device's queues, one for
/// each direction beside the context's own, which computes.
class BlockedProduct {
 public:
  BlockedProduct(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes);
  void run();

 private:
  using Panels = std::map<std::pair<index_t, index_t>, DeviceSlot>;
  struct Finished {  // a block of C that is computed, or will be
    MatrixView target, block;
    DeviceSlot* slot;
    sycl::event computed;
  };

  DeviceSlot& panel(Panels& panels, index_t most, const MatrixView& whole, std::pair<index_t, index_t> key, index_t rows, index_t cols);
  DeviceSlot& a_panel(index_t i, index_t x) { return panel(a_panels_, room_.a_panels, o_.a, {i, x}, sizes_.rows, sizes_.depth); }
  DeviceSlot& b_panel(index_t x, index_t j) { return panel(b_panels_, room_.b_panels, o_.b, {x, j}, sizes_.depth, sizes_.columns); }
  DeviceSlot& result_slot();
  void send(CopyTeam::Kind kind, const MatrixView& device, const MatrixView& host, DeviceSlot& slot);
  void wait_for(DeviceSlot& slot);
  void compute(index_t i, index_t j);
  void compute_all();
  void fetch_all();
  void fetch(const Finished& block);
  /// What goes wrong anywhere ends up with the caller; the other tasks then only give back what they hold.
  template <class Function>
  void attempt(const Function& f) noexcept;
  template <class Condition>
  void wait_until(const Condition& condition);

  Context::State& context_;
  const Operands& o_;
  const GemmOptions& options_;
  const BlockSizes sizes_;
  const Room room_;
  const std::int64_t left_;  ///< bytes of device memory for the kernels' own copies
  Borrowed memory_;
  sycl::queue in_, out_;
  std::mutex in_mutex_;  ///< of submissions: a slot's last piece is the one that was submitted last
  Panels a_panels_, b_panels_;
  Bounces in_bounces_, out_bounces_;
  std::optional<MatrixView> bias_;
  CopyTeam* team_ = nullptr;  ///< while run() runs
  index_t clock_ = 0;

  std::mutex mutex_;  ///< of what follows, and of slots' pieces_left
  std::condition_variable changed_;
  std::deque<DeviceSlot> results_;  ///< stay where they are
  std::vector<DeviceSlot*> free_results_;
  std::deque<Finished> finished_;
  bool all_submitted_ = false;
  index_t blocks_done_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

BlockedProduct::BlockedProduct(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes)
    : context_(context),
      o_(o),
      options_(options),
      sizes_(sizes),
      room_(room_for(o, sizes, limit_of(context, options))),
      left_(std::max<std::int64_t>(limit_of(context, options) - bytes_needed(o, sizes, room_), 0)),
      memory_(context.pool),
      in_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}),
      out_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}) {
  const auto pin = [&](Bounces& bounces, std::int64_t count, std::int64_t bytes) {
    for (std::int64_t i = 0; i < std::min(count, pieces(bytes, piece_bytes)); ++i)
      bounces.give({memory_.take(piece_bytes, sycl::usm::alloc::host), {}});
  };
  pin(in_bounces_, 2 * CopyTeam::threads(), dense_bytes(o.a) + dense_bytes(o.b));  // one filled by a thread, one on its way
  pin(out_bounces_, CopyTeam::threads() + 2, dense_bytes(o.d));
  if (o.bias) {
    bias_ = dense_like(*o.bias, memory_.take(static_cast<std::size_t>(dense_bytes(*o.bias)), sycl::usm::alloc::device));
    in_.memcpy(bias_->data, o.bias->data, static_cast<std::size_t>(dense_bytes(*o.bias))).wait();
  }
}

template <class Function>
void BlockedProduct::attempt(const Function& f) noexcept {
  if (failed_) return;
  try {
    f();
  } catch (...) {
    const std::lock_guard guard(mutex_);
    if (!failed_.exchange(true)) failure_ = std::current_exception();
    changed_.notify_all();
  }
}

template <class Condition>
void BlockedProduct::wait_until(const Condition& condition) {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [&] { return failed_ || condition(); });
  if (failed_) std::rethrow_exception(failure_);
}

/// Host → device by way of pinned memory: the processor copies some pieces while the bus copies others.
void BlockedProduct::send(CopyTeam::Kind kind, const MatrixView& device, const MatrixView& host, DeviceSlot& slot) {
  std::vector<std::pair<MatrixView, MatrixView>> all;
  for_each_piece(device, host, [&](const MatrixView& to, const MatrixView& from) { all.emplace_back(to, from); });
  {
    const std::lock_guard guard(mutex_);
    slot.pieces_left = static_cast<index_t>(all.size());
    slot.awaited = false;
  }
  for (const auto& [to, from] : all)
    team_->add(kind, [this, to, from, &slot] {
      Bounce bounce = in_bounces_.take();
      attempt([&] {
        bounce.in_flight.wait();
        copy_past_caches(dense_like(from, bounce.memory), from);
        const std::lock_guard guard(in_mutex_);
        bounce.in_flight = in_.memcpy(to.data, bounce.memory, static_cast<std::size_t>(dense_bytes(from)), slot.last_use);
        slot.last_piece = bounce.in_flight;
      });
      in_bounces_.give(std::move(bounce));
      const std::lock_guard guard(mutex_);
      if (--slot.pieces_left == 0) changed_.notify_all();
    });
}

DeviceSlot& BlockedProduct::panel(Panels& panels, index_t most, const MatrixView& whole, std::pair<index_t, index_t> key, index_t rows,
                                  index_t cols) {
  if (const auto found = panels.find(key); found != panels.end()) {
    found->second.age = ++clock_;
    return found->second;
  }
  DeviceSlot slot;
  if (static_cast<index_t>(panels.size()) < most) {
    slot.memory = memory_.take(static_cast<std::size_t>(rows * cols * size_of(whole.dtype)), sycl::usm::alloc::device);
  } else {
    const auto oldest =
        std::min_element(panels.begin(), panels.end(), [](const auto& x, const auto& y) { return x.second.age < y.second.age; });
    slot = oldest->second;
    panels.erase(oldest);
  }
  slot.age = ++clock_;
  DeviceSlot& there = panels.insert_or_assign(key, slot).first->second;
  const MatrixView host = part(whole, key.first * rows, rows, key.second * cols, cols);
  send(CopyTeam::in, dense_in_order_of(host, there.memory), host, there);
  return there;
}

/// Once all pieces are submitted; the compute queue goes on once they are there.
void BlockedProduct::wait_for(DeviceSlot& slot) {
  wait_until([&] { return slot.pieces_left == 0; });
  if (slot.awaited) return;
  context_.queue.ext_oneapi_submit_barrier({slot.last_piece});
  slot.awaited = true;
}

DeviceSlot& BlockedProduct::result_slot() {
  if (static_cast<index_t>(results_.size()) < room_.results) {
    const auto bytes = static_cast<std::size_t>(sizes_.rows * sizes_.columns * size_of(o_.d.dtype));
    results_.emplace_back().memory = memory_.take(bytes, sycl::usm::alloc::device);
    return results_.back();
  }
  wait_until([&] { return !free_results_.empty(); });
  const std::lock_guard guard(mutex_);
  DeviceSlot* const slot = free_results_.back();
  free_results_.pop_back();
  return *slot;
}

void BlockedProduct::compute(index_t i, index_t j) {
  DeviceSlot& slot = result_slot();
  const MatrixView target = part(o_.d, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns);
  const MatrixView block = dense_in_order_of(target, slot.memory);

  Operands step{{}, {}, block, std::nullopt, std::nullopt};
  GemmOptions options = options_;
  if (o_.c) {
    send(CopyTeam::now, block, part(*o_.c, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns), slot);
    wait_for(slot);
    step.c = block;
  }
  const index_t depths = pieces(o_.a.cols, sizes_.depth);
  for (index_t x = 0; x < depths; ++x) {
    DeviceSlot &a = a_panel(i, x), &b = b_panel(x, j);
    wait_for(a);
    wait_for(b);
    step.a = dense_in_order_of(part(o_.a, i * sizes_.rows, sizes_.rows, x * sizes_.depth, sizes_.depth), a.memory);
    step.b = dense_in_order_of(part(o_.b, x * sizes_.depth, sizes_.depth, j * sizes_.columns, sizes_.columns), b.memory);
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
    if (options.max_device_memory > 0) options.max_device_memory = bytes_of_operands(problem) + left_;
    execute(context_, problem, options);
    a.last_use = b.last_use = slot.last_use = context_.queue.ext_oneapi_submit_barrier();
  }
  const std::lock_guard guard(mutex_);
  finished_.push_back({target, block, &slot, slot.last_use});
  changed_.notify_all();
}

/// Device → host, of a block that is computed: the slot is free once the caller's array has all of it.
void BlockedProduct::fetch(const Finished& block) {
  sycl::event(block.computed).wait();
  std::vector<std::pair<MatrixView, MatrixView>> all;
  for_each_piece(block.block, block.target, [&](const MatrixView& from, const MatrixView& to) { all.emplace_back(from, to); });
  {
    const std::lock_guard guard(mutex_);
    block.slot->pieces_left = static_cast<index_t>(all.size());
  }
  for (const auto& [from, to] : all) {
    Bounce bounce = out_bounces_.take();
    attempt([&] { bounce.in_flight = out_.memcpy(bounce.memory, from.data, static_cast<std::size_t>(dense_bytes(from))); });
    team_->add(CopyTeam::out, [this, bounce, to, slot = block.slot] {
      attempt([&] {
        sycl::event(bounce.in_flight).wait();
        copy_past_caches(to, dense_like(to, bounce.memory));
      });
      out_bounces_.give(bounce);
      const std::lock_guard guard(mutex_);
      if (--slot->pieces_left > 0) return;
      free_results_.push_back(slot);
      ++blocks_done_;
      changed_.notify_all();
    });
  }
}

void BlockedProduct::fetch_all() {
  while (true) {
    Finished block;
    {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [&] { return failed_ || all_submitted_ || !finished_.empty(); });
      if (failed_ || finished_.empty()) return;
      block = finished_.front();
      finished_.pop_front();
    }
    fetch(block);
  }
}

void BlockedProduct::compute_all() {
  const index_t rows = pieces(o_.d.rows, sizes_.rows), columns = pieces(o_.d.cols, sizes_.columns),
                depths = pieces(o_.a.cols, sizes_.depth);
  const Room all = all_panels(o_, sizes_);
  const bool all_fit = room_.a_panels >= all.a_panels && room_.b_panels >= all.b_panels;
  const auto order = block_order(rows, columns, all_fit);
  if (all_fit)  // all of them are sent for at once, in the order in which they will be wanted
    for (const auto& [i, j] : order)
      for (index_t x = 0; x < depths; ++x) a_panel(i, x), b_panel(x, j);
  for (const auto& [i, j] : order) compute(i, j);
  {
    const std::lock_guard guard(mutex_);
    all_submitted_ = true;
    changed_.notify_all();
  }
  wait_until([&] { return blocks_done_ == rows * columns; });
}

void BlockedProduct::run() {
  {
    CopyTeam team;
    team_ = &team;
    std::jthread fetcher([&] { attempt([&] { fetch_all(); }); });
    attempt([&] { compute_all(); });
    fetcher.join();
  }
  if (!failed_) return context_.wait();
  for (sycl::queue* queue : {&in_, &out_, &context_.queue}) try {
      queue->wait();  // nothing may be given back while a queue still uses it
    } catch (...) {   // the first failure is the one to tell of
    }
  std::rethrow_exception(failure_);
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

  const auto small = [](index_t size) {
    constexpr index_t step = 256;  // whole tiles
    return std::min(size, std::clamp(ceil_div(ceil_div(size, wanted_blocks), step) * step, least_block, usual_block));
  };
  const BlockSizes fine{small(o.d.rows), small(o.d.cols), std::max<index_t>(o.a.cols, 1)};
  if (bytes_needed(o, fine, all_panels(o, fine)) <= limit) return fine;
  // Otherwise panels are sent several times, the less often the larger blocks are.
  BlockSizes s{std::min(usual_block, o.d.rows), std::min(usual_block, o.d.cols), fine.depth};
  // Two panels of each kind must fit. Halve what is largest; the depth last, because sums cut along K are rounded once more.
  constexpr index_t smallest = 64;
  while (bytes_needed(o, s, {}) > limit) {
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
