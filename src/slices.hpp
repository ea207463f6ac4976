// Stacks with more batch axes than a launch walks are cut along the outer ones.
#pragma once

#include "view.hpp"

namespace sycl_mat {

constexpr std::size_t batch_axes_a_launch = 2;

/// The i-th matrix (or stack) along the outermost batch axis.
Operands slice_at(const Operands& o, std::int64_t i);

/// The first of the slices that for_each_slice visits; all have the same sizes and strides.
Operands first_slice(const Operands& o);

/// Calls `use` with operands of at most two batch axes each, which together are `o`: `o` itself in nearly every case.
template <class Use>
void for_each_slice(const Operands& o, const Use& use) {
  if (o.d.batch.size() <= batch_axes_a_launch) return use(o);
  for (std::int64_t i = 0; i < o.d.batch.front().extent; ++i) for_each_slice(slice_at(o, i), use);
}

}  // namespace sycl_mat
