// What the main library and the oneMKL plugin agree on: one entry point, looked up by name in a library that is loaded on demand.
#pragma once

#include <cstddef>

#include "../problem.hpp"
#include "../sycl.hpp"

namespace sycl_mat::onemkl {

/// One call of oneMKL: all matrices of the problem's inner batch axis (batch_outer is 1), D ← alpha·A·B + beta·D. C is not looked at.
struct Call {
  Problem problem;
  std::size_t size = sizeof(Call);  ///< differs where plugin and library come from different builds
};

/// Submits to an in-order queue. Throws std::exception.
using Submit = void(sycl::queue&, const Call&);
inline constexpr const char* submit_name = "sycl_mat_onemkl_submit";

}  // namespace sycl_mat::onemkl
