#include "launch.hpp"

#include <cstring>

#include "../kernels/gemm_args.hpp"

namespace sycl_mat {
namespace {

namespace syclex = sycl::ext::oneapi::experimental;

template <class Accumulator>
GemmArgs<Accumulator> arguments(const Plan& plan, const Problem& p) {
  GemmArgs<Accumulator> g{};
  g.m = p.m;
  g.n = p.n;
  g.k = p.k;
  g.lda = p.a.ld;
  g.ldb = p.b.ld;
  g.ldc = p.c.ld;
  g.ldd = p.d.ld;
  g.batch = p.batch();
  g.batch_inner = p.batch_inner;
  g.a_inner = p.a.inner;
  g.a_outer = p.a.outer;
  g.b_inner = p.b.inner;
  g.b_outer = p.b.outer;
  g.c_inner = p.c.inner;
  g.c_outer = p.c.outer;
  g.d_inner = p.d.inner;
  g.d_outer = p.d.outer;
  g.split_m = plan.split_m;
  g.split_n = plan.split_n;
  g.split_k = plan.split_k;
  g.scratch_stride = plan.scratch_stride;
  g.alpha = static_cast<Accumulator>(p.epilogue.alpha);
  g.beta = static_cast<Accumulator>(p.epilogue.beta);
  return g;
}

/// Entry points for PTX take the struct in pieces: see ENTRY in kernels/device.hpp.
template <class Args>
void set_args_in_words(sycl::handler& h, const Problem& p, void* scratch, const Args& args) {
  struct Word {
    std::uint64_t low, high;
  };
  Word words[13]{};
  static_assert(sizeof(Args) <= sizeof(words));
  std::memcpy(words, &args, sizeof(args));
  h.set_args(p.a.data, p.b.data, p.c.data, p.d.data, const_cast<void*>(p.epilogue.bias), scratch);
  for (int i = 0; i < 13; ++i) h.set_arg(6 + i, words[i]);
}

template <class Accumulator>
void submit(Context::State& context, const Plan& plan, const Program& program, const Problem& p) {
  const auto args = arguments<Accumulator>(plan, p);
  const sycl::nd_range<3> range{{plan.range.global[0], plan.range.global[1], plan.range.global[2]},
                                {plan.range.local[0], plan.range.local[1], plan.range.local[2]}};
  // Scratch is reused by every kernel of the queue: asking for it and submitting its user must not be interleaved by another thread.
  std::unique_lock guard(context.launching, std::defer_lock);
  void* scratch = nullptr;
  if (plan.scratch_bytes > 0) {
    guard.lock();
    scratch = context.scratch.require(plan.scratch_bytes, plan.counter_bytes);
  }
  syclex::submit(context.queue, [&](sycl::handler& h) {
    if (context.info.backend == "cuda") {
      set_args_in_words(h, p, scratch, args);
    } else {
      h.set_args(p.a.data, p.b.data, p.c.data, p.d.data, const_cast<void*>(p.epilogue.bias), scratch, args);
    }
    h.parallel_for(range, program.kernel);
  });
  context.pending.submitted();
}

}  // namespace

void launch(Context::State& context, const Plan& plan, const Program& program, const Problem& problem) {
  switch (problem.accumulator) {
    case DType::float64:
      return submit<double>(context, plan, program, problem);
    case DType::int32:
      return submit<int>(context, plan, program, problem);
    default:
      return submit<float>(context, plan, program, problem);
  }
}

}  // namespace sycl_mat
