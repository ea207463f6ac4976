// Copies that a kernel works on instead of the caller's matrices: with lines that begin at multiples of 128 bytes, or along the other axis,
// where the kernel is so much faster with them that the copies are paid for.
#pragma once

#include <optional>
#include <string>

#include "kernel.hpp"
#include "program.hpp"

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

/// Why that plan, and what is copied.
std::string reason_of(const Plan& plan, const Problem& p);

/// The same plan without its copies, on the caller's matrices: with the tiles, constants and parts along K that were chosen for the copies,
/// so that the result has the same bits. Slower. `why` goes to the reason.
Plan in_place(Plan plan, const Problem& p, const std::string& why);

/// Bytes of the copies, and of the matrices themselves, each that a stack repeats counted once.
std::int64_t bytes_of_copies(const Plan& plan, const Problem& p);
std::int64_t bytes_of_operands(const Problem& p);

/// A copy as a launch of its own: its kernel, and as a problem where it comes from (a) and where it goes (d).
struct CopyLaunch {
  Plan plan;
  Problem problem;
};
CopyLaunch launch_of(const MatrixCopy& copy, const Problem& p, void* scratch);

/// The programs of the plan's copies, in their order. Throws CompileError.
std::vector<const Program*> programs_of_copies(Programs& programs, const Plan& plan, const Problem& p);

}  // namespace sycl_mat
