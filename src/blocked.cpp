#include "blocked.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "block_sizes.hpp"
#include "copy_team.hpp"
#include "execute.hpp"
#include "rearrange.hpp"
#include "staging.hpp"
#include "strided_copy.hpp"

namespace sycl_mat {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t(2) << 20;  // of pinned memory, that one thread fills or empties
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

  // Panel x along K: of A for blocks in row i, of B for those in column j; in the caller's arrays.
  index_t depth_before(index_t x) const { return sycl_mat::depth_before(o_, sizes_, x); }
  index_t depth_of(index_t x) const { return sizes_.rounds > 1 ? depth_before(x + 1) - depth_before(x) : sizes_.depth; }
  MatrixView part_of_a(index_t i, index_t x) const { return part(o_.a, i * sizes_.rows, sizes_.rows, depth_before(x), depth_of(x)); }
  MatrixView part_of_b(index_t x, index_t j) const { return part(o_.b, depth_before(x), depth_of(x), j * sizes_.columns, sizes_.columns); }

  DeviceSlot& panel(Panels& panels, std::pair<index_t, index_t> key, const MatrixView& host, index_t elements);
  DeviceSlot& a_panel(index_t i, index_t x) { return panel(a_panels_, {i, x}, part_of_a(i, x), sizes_.rows * depth_of(x)); }
  DeviceSlot& b_panel(index_t x, index_t j) { return panel(b_panels_, {x, j}, part_of_b(x, j), sizes_.columns * depth_of(x)); }
  DeviceSlot& result_slot();
  void send(CopyTeam::Kind kind, const MatrixView& device, const MatrixView& host, DeviceSlot& slot);
  void wait_for(DeviceSlot& slot);
  void compute(index_t i, index_t j, index_t from, index_t to);
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
  const index_t depths_;
  const std::int64_t left_;  ///< bytes of device memory for the kernels' own copies
  Borrowed memory_;
  sycl::queue in_, out_;
  std::mutex in_mutex_;  ///< of submissions: a slot's last piece is the one that was submitted last
  Panels a_panels_, b_panels_;
  std::map<std::pair<index_t, index_t>, DeviceSlot*> blocks_;  ///< that are computed in part
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
      depths_(depths(o, sizes)),
      left_(std::max<std::int64_t>(limit_of(context, options) - bytes_needed(o, sizes, room_), 0)),
      memory_(context.pool),
      in_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}),
      out_(context.queue.get_context(), context.queue.get_device(), sycl::property::queue::in_order{}) {
  if (sizes.rounds > 1 && !room_.all_panels) throw std::logic_error("rounds along K need room for all panels");
  const auto pin = [&](Bounces& bounces, std::int64_t count, std::int64_t bytes) {
    for (std::int64_t i = 0; i < std::min(count, pieces(bytes, piece_bytes)); ++i)
      bounces.give({memory_.take(piece_bytes, sycl::usm::alloc::host), {}});
  };
  pin(in_bounces_, 2 * CopyTeam::threads(), dense_bytes(o.a) + dense_bytes(o.b));        // one filled by a thread, one on its way
  free_results_.reserve(static_cast<std::size_t>(std::max<index_t>(room_.results, 1)));  // threads that may not throw add to it
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

DeviceSlot& BlockedProduct::panel(Panels& panels, std::pair<index_t, index_t> key, const MatrixView& host, index_t elements) {
  if (const auto found = panels.find(key); found != panels.end()) {
    found->second.age = ++clock_;
    return found->second;
  }
  DeviceSlot slot;
  if (room_.all_panels || panels.size() < 2) {
    slot.memory = memory_.take(static_cast<std::size_t>(elements * size_of(host.dtype)), sycl::usm::alloc::device);
    slot.last_use = context_.queue.ext_oneapi_submit_barrier();  // whoever had this memory before, in another thread
  } else {
    const auto oldest =
        std::min_element(panels.begin(), panels.end(), [](const auto& x, const auto& y) { return x.second.age < y.second.age; });
    slot = oldest->second;
    panels.erase(oldest);
  }
  slot.age = ++clock_;
  DeviceSlot& there = panels.insert_or_assign(key, slot).first->second;
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
    if (o_.c) results_.back().last_use = context_.queue.ext_oneapi_submit_barrier();
    return results_.back();
  }
  wait_until([&] { return !free_results_.empty(); });
  const std::lock_guard guard(mutex_);
  DeviceSlot* const slot = free_results_.back();
  free_results_.pop_back();
  return *slot;
}

/// Panels from … to - 1 of the sum.
void BlockedProduct::compute(index_t i, index_t j, index_t from, index_t to) {
  DeviceSlot*& known = blocks_[{i, j}];
  if (from == 0) known = &result_slot();
  DeviceSlot& slot = *known;
  const MatrixView target = part(o_.d, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns);
  const MatrixView block = dense_in_order_of(target, slot.memory);

  Operands step{{}, {}, block, std::nullopt, std::nullopt};
  GemmOptions options = options_;
  if (o_.c && from == 0) {
    send(CopyTeam::now, block, part(*o_.c, i * sizes_.rows, sizes_.rows, j * sizes_.columns, sizes_.columns), slot);
    wait_for(slot);
    step.c = block;
  }
  for (index_t x = from; x < to; ++x) {
    DeviceSlot &a = a_panel(i, x), &b = b_panel(x, j);
    wait_for(a);
    wait_for(b);
    step.a = dense_in_order_of(part_of_a(i, x), a.memory);
    step.b = dense_in_order_of(part_of_b(x, j), b.memory);
    // Bias and activation belong to the finished sum.
    const bool last = x + 1 == depths_;
    options.epilogue.activation = last ? options_.epilogue.activation : Activation::none;
    options.epilogue.bias_axis = last ? options_.epilogue.bias_axis : BiasAxis::none;
    step.bias.reset();
    if (last && bias_) {
      const index_t begin = options_.epilogue.bias_axis == BiasAxis::column ? j * sizes_.columns : i * sizes_.rows;
      step.bias = part(*bias_, 0, 1, begin, options_.epilogue.bias_axis == BiasAxis::column ? block.cols : block.rows);
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
  if (to < depths_) return;
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
  const index_t rows = pieces(o_.d.rows, sizes_.rows), columns = pieces(o_.d.cols, sizes_.columns);
  const auto order = block_order(rows, columns, room_.all_panels);
  const bool in_rounds = sizes_.rounds > 1 && room_.results >= rows * columns;  // all blocks to the first part of K, to the next, …
  const auto for_each_step = [&](const auto& f) {
    for (index_t x = 0; in_rounds && x < depths_; ++x)
      for (const auto& [i, j] : order) f(i, j, x, x + 1);
    if (!in_rounds)
      for (const auto& [i, j] : order) f(i, j, index_t(0), depths_);
  };
  if (room_.all_panels)  // all of them are sent for at once, in the order in which they will be wanted
    for_each_step([&](index_t i, index_t j, index_t from, index_t to) {
      for (index_t x = from; x < to; ++x) a_panel(i, x), b_panel(x, j);
    });
  for_each_step([&](index_t i, index_t j, index_t from, index_t to) { compute(i, j, from, to); });
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
  // Nothing may be given back while a queue still uses it. The first failure is the one to tell of.
  for (sycl::queue* queue : {&in_, &out_}) try {
      queue->wait();
    } catch (...) {
    }
  try {
    context_.wait();
  } catch (...) {
  }
  std::rethrow_exception(failure_);
}

}  // namespace

void multiply_in_blocks(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes) {
  context.wait();  // the copies' queues know nothing of work that is under way in memory which was given back, or that makes the bias
  BlockedProduct(context, o, options, sizes).run();
}

}  // namespace sycl_mat
