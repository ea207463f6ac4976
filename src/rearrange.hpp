// Copies that a kernel works on instead of the caller's matrices: with lines that begin at multiples of 128 bytes, or along the other axis,
// where the kernel is so much faster with them that the copies are paid for.
#pragma once

#include <optional>

#include "kernel.hpp"

namespace sycl_mat {

/// How a copy of A and B is stored (Operand::transposed), nothing: read as it is; and whether D is written to a copy first.
struct Rearrangement {
  std::optional<bool> a, b;
  bool d = false;
  bool operator==(const Rearrangement&) const = default;
};

/// What `kernel` says that it is worth (Kernel::microseconds). It depends on sizes, strides and layouts, never on addresses: those shall
/// not change a result's bits.
Rearrangement worth_copying(const Kernel& kernel, const Problem& p, const DeviceInfo& device);

/// The problem with the copies in the matrices' places. They have no address yet.
Problem rearranged(const Problem& p, const Rearrangement& how);

/// The kernel's plan for the rearranged problem, with the copies, for which scratch memory behind the kernel's own is added.
/// Throws ParamsError.
Plan plan_rearranged(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params, const Rearrangement& how);

/// A copy as a launch of its own: its kernel, and as a problem where it comes from (a) and where it goes (d).
struct CopyLaunch {
  Plan plan;
  Problem problem;
};
CopyLaunch launch_of(const MatrixCopy& copy, const Problem& p, void* scratch);

}  // namespace sycl_mat
