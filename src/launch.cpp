#include "launch.hpp"

#include <cstring>

#include "../kernels/gemm_args.hpp"
#include "rearrange.hpp"

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
void submit_as(Context::State& context, const Plan& plan, const Program& program, const Problem& p, void* scratch) {
  const auto args = arguments<Accumulator>(plan, p);
  const sycl::nd_range<3> range{{plan.range.global[0], plan.range.global[1], plan.range.global[2]},
                                {plan.range.local[0], plan.range.local[1], plan.range.local[2]}};
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

void submit(Context::State& context, const Plan& plan, const Program& program, const Problem& problem, void* scratch) {
  switch (problem.accumulator) {
    case DType::float64:
      return submit_as<double>(context, plan, program, problem, scratch);
    case DType::int32:
      return submit_as<int>(context, plan, program, problem, scratch);
    default:
      return submit_as<float>(context, plan, program, problem, scratch);
  }
}

void submit_copy(Context::State& context, const MatrixCopy& copy, const Program& program, const Problem& problem, void* scratch) {
  const CopyLaunch launch = launch_of(copy, problem, scratch);
  submit(context, launch.plan, program, launch.problem, nullptr);
}

/// The product, with copies of A and B before it, and of D after it.
void submit_rearranged(Context::State& context, const Plan& plan, const Program& program, std::span<const Program* const> copies,
                       const Problem& problem, void* scratch) {
  Problem inner = problem;
  for (std::size_t i = 0; i < plan.copies.size(); ++i) {
    const MatrixCopy& copy = plan.copies[i];
    if (copy.of != Matrix::d) submit_copy(context, copy, *copies[i], problem, scratch);
    Operand& operand = copy.of == Matrix::a ? inner.a : copy.of == Matrix::b ? inner.b : inner.d;
    operand = copy.in_scratch;
    operand.data = static_cast<char*>(scratch) + copy.offset;
  }
  submit(context, plan, program, inner, scratch);
  for (std::size_t i = 0; i < plan.copies.size(); ++i)
    if (plan.copies[i].of == Matrix::d) submit_copy(context, plan.copies[i], *copies[i], problem, scratch);
}

}  // namespace

void launch(Context::State& context, const Plan& plan, const Program& program, const Problem& problem) {
  launch(context, plan, program, programs_of_copies(context.programs, plan, problem), problem);
}

void launch(Context::State& context, const Plan& plan, const Program& program, std::span<const Program* const> copies,
            const Problem& problem) {
  if (plan.scratch_bytes == 0) return submit(context, plan, program, problem, nullptr);
  // Scratch is reused by every kernel of the queue: asking for it and submitting its user must not be interleaved by another thread.
  // Nothing is compiled meanwhile.
  const std::lock_guard guard(context.launching);
  submit_rearranged(context, plan, program, copies, problem, context.scratch.require(plan.scratch_bytes, plan.counter_bytes));
}

}  // namespace sycl_mat
