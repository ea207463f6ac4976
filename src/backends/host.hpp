// Products on the calling thread: tiny ones, for which a launch would cost more than the product, and the oracle of the tests.
#pragma once

#include "../problem.hpp"

namespace sycl_mat::host {

/// The name by which GemmOptions::kernel forces this path and last_kernel() reports it.
inline constexpr std::string_view name = "host";

/// Whether the planner sends this problem here without being asked (thresholds measured on the device in question).
bool preferred(const Problem& p, const DeviceInfo& device);

/// Computes the product; all pointers are the host's. Any shape, layout, dtype, batch and epilogue.
void gemm(const Problem& p);

}  // namespace sycl_mat::host
