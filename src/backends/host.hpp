// Products on the calling thread: tiny ones, for which a launch would cost more than the product, and the oracle of tests and tuner.
#pragma once

#include <string_view>

#include "../problem.hpp"

namespace sycl_mat {
struct DeviceInfo;
}

namespace sycl_mat::host {

/// What last_kernel() and explain() call it, and what GemmOptions::kernel forces it by.
inline constexpr std::string_view name = "host";

/// Whether the calling thread is done before a launch would have begun to pay off. Operands must be readable by the host.
bool preferred(const Problem& p, const DeviceInfo& device);

/// Any size, layout, dtype, epilogue, stack. Operands must be readable by the host. Throws std::bad_alloc.
void run(const Problem& p);

/// The same by plain loops, sums in float64 (int64 for integers): slow, and right by inspection.
void reference(const Problem& p);

/// The instruction set that run() uses on this machine: "avx512", "avx2" or "baseline".
std::string_view instruction_set();

}  // namespace sycl_mat::host
