// A plan and a problem with device pointers → arguments, launch, event.
#pragma once

#include "context.hpp"
#include "kernel.hpp"

namespace sycl_mat {

/// Submits to the context's queue; returns at once. Ordering comes from the in-order queue.
void launch(Context::State& context, const Plan& plan, const Program& program, const Problem& problem);

}  // namespace sycl_mat
