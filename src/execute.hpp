// Plan, program and launch of one problem whose pointers the device can follow.
#pragma once

#include <string_view>

#include "context.hpp"

namespace sycl_mat {

/// Submits to the context's queue and returns. Throws what planning and compiling throw.
void execute(Context::State& context, const Problem& problem, const GemmOptions& options);

/// What last_kernel() says on this thread from now on. `name` must live for ever.
void remember_kernel(std::string_view name);

}  // namespace sycl_mat
