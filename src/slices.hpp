// Stacks with more batch axes than a launch walks are cut along the outer ones.
#pragma once

#include <vector>

#include "view.hpp"

namespace sycl_mat {

/// Operands with at most two batch axes each, which together are `o`. One, `o` itself, in nearly every case.
std::vector<Operands> slices(const Operands& o);

}  // namespace sycl_mat
