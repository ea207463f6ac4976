// Copies of A or B that a product reads instead: lines that begin at multiples of 128 bytes, or lie along the other axis, where a kernel
// is so much faster with them that the copies are paid for.
#pragma once

#include <optional>

#include "kernel.hpp"

namespace sycl_mat {

/// How a copy of each operand is stored: Operand::transposed; nothing: the operand is read as it is.
struct Rearrangement {
  std::optional<bool> a, b;
  bool operator==(const Rearrangement&) const = default;
};

/// What `kernel` says that it is worth (Kernel::microseconds). It depends on sizes, strides and layouts, never on addresses: those shall
/// not change a result's bits.
Rearrangement worth_copying(const Kernel& kernel, const Problem& p, const DeviceInfo& device);

/// The problem with the copies in the operands' places. They have no address yet.
Problem rearranged(const Problem& p, const Rearrangement& how);

/// The kernel's plan for the rearranged problem, with the copies, for which scratch memory behind the kernel's own is added.
/// Throws ParamsError.
Plan plan_rearranged(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params, const Rearrangement& how);

/// A copy as a launch of its own: its kernel, and as a problem its source (a) and destination (d, in `scratch`).
struct CopyLaunch {
  Plan plan;
  Problem problem;
};
CopyLaunch launch_of(const OperandCopy& copy, const Problem& p, void* scratch);

}  // namespace sycl_mat
