// The way of one call, stage by stage. What a stage decides, no other stage decides again.
#include <mutex>

#include "backends/host.hpp"
#include "blocked.hpp"
#include "caller_placement.hpp"
#include "context.hpp"
#include "execute.hpp"
#include "plan.hpp"
#include "slices.hpp"
#include "staging.hpp"
#include "sycl_mat/gemm.hpp"
#include "trace.hpp"
#include "view.hpp"

namespace sycl_mat {

/// A product under way. What it holds must live until the queue has run it.
struct Event::State {
  State(Context::State& c, const Operands& o) : context(c), staging(c, o, Staging::Where::device) {}
  Context::State& context;
  Staging staging;
  std::optional<sycl::event> launched;  ///< of a product that nobody waits for at once
  std::once_flag finished;

  void finish() {
    std::call_once(finished, [&] {
      context.wait();
      staging.finish();
    });
  }
  ~State() {
    if (!staging.has_copies()) return;
    try {
      finish();      // the copies that the queue still reads must not be given back before
    } catch (...) {  // whoever wanted to know has called wait()
    }
  }
};

void Event::wait() {
  if (state_) state_->finish();
}

bool Event::done() const {
  return !state_ || !state_->launched ||
         state_->launched->get_info<sycl::info::event::command_execution_status>() == sycl::info::event_command_status::complete;
}

namespace {

bool host_reachable(const Context::State& context, const Operands& o) {
  for (const MatrixView* v : {&o.a, &o.b, &o.d, o.c ? &*o.c : &o.d})
    if (!host_reachable(context, v->data)) return false;
  return true;
}

void multiply_on_host(Context::State& context, const Operands& o, const GemmOptions& options) {
  if (context.pending) context.wait();  // an operand may be the result of a product still under way
  Staging staging(context, o, Staging::Where::host);
  for_each_slice(staging.operands(), [&](const Operands& slice) { host::run(make_problem(slice, options)); });
  staging.finish();
  remember_kernel(host::name);
}

/// Everything up to the point from which on only the queue works.
void submit_all(Context::State& context, Staging& staging, const GemmOptions& options) try {
  for_each_slice(staging.operands(), [&](const Operands& slice) { execute(context, make_problem(slice, options), options); });
  staging.queue_copy_back();
} catch (...) {
  try {
    context.wait();  // slices before the one that failed may still be computing, in memory that the caller will give up
  } catch (...) {    // the first failure is the one to tell of
  }
  throw;
}

Event multiply_on_device(Context::State& context, const Operands& o, const GemmOptions& options) {
  if (options.wait) {
    const CallerPlacement placement(context.info.is_cpu());
    Event::State product(context, o);
    submit_all(context, product.staging, options);
    product.finish();
    return {};
  }
  auto product = std::make_shared<Event::State>(context, o);
  submit_all(context, product->staging, options);
  product->launched = context.queue.ext_oneapi_submit_barrier();
  return Event(std::move(product));
}

/// `first`: the problem of the first slice; the others have the same sizes.
Event multiply(Context::State& context, const Operands& o, const Problem& first, const GemmOptions& options) {
  if (on_host(first, context.info, options) && host_reachable(context, o)) {
    multiply_on_host(context, o, options);
    return {};
  }
  if (stack_exceeds_memory(context, o, options)) {
    for (std::int64_t i = 0; i < o.d.batch.front().extent; ++i) {
      const Operands slice = slice_at(o, i);
      multiply(context, slice, make_problem(first_slice(slice), options), options).wait();
    }
    return {};
  }
  if (const auto sizes = block_sizes(context, o, options)) {
    multiply_in_blocks(context, o, options, *sizes);
    return {};
  }
  return multiply_on_device(context, o, options);
}

}  // namespace

Event gemm(Context& where, const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d, const GemmOptions& options) {
  Context::State& context = where.state();
  Operands operands = check(a, b, c, d, options);
  if (is_empty(operands.d)) return {};
  collapse_batch(operands);
  try {
    const Problem problem = make_problem(first_slice(operands), options);
    trace(problem);
    return multiply(context, operands, problem, options);
  } catch (const sycl::exception& e) {
    rethrow(e, context.info);
  }
}

}  // namespace sycl_mat
