// A plan and a problem with device pointers → arguments, launch, event.
#pragma once

#include "context.hpp"
#include "kernel.hpp"

namespace sycl_mat {

/// Submits to the context's queue; returns at once. Ordering comes from the in-order queue.
void launch(Context::State& context, const Plan& plan, const Program& program, const Problem& problem);
/// `copies`: the programs of the plan's copies (programs_of_copies), where the caller has kept them. Throws OutOfMemoryError before
/// anything is submitted.
void launch(Context::State& context, const Plan& plan, const Program& program, std::span<const Program* const> copies,
            const Problem& problem);

}  // namespace sycl_mat
