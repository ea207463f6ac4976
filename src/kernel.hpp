// What the host knows of a kernel. Each family describes its own in src/families/; kernels() lists them, plan.cpp chooses, launch.cpp runs.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "problem.hpp"

namespace sycl_mat {

/// Names and values of the `constexpr int` lines that are rendered into a kernel. Only integers, never text from a caller.
using Constants = std::vector<std::pair<std::string_view, int>>;

/// How one product is cut into work-groups. Ranges count work-items, dimension 2 varies fastest: {batch, rows, columns}.
struct LaunchRange {
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{1, 1, 1};
};

struct Kernel;

/// A matrix that the kernel has in scratch memory instead of where the caller has it (rearrange.hpp): A and B are copied there before the
/// product, D from there after it.
enum class Matrix { a, b, d };
struct MatrixCopy {
  Matrix of;
  Operand in_scratch;      ///< its layout there; the address is only known when it is launched
  std::size_t offset = 0;  ///< bytes from the scratch memory's begin
};

/// Everything launch.cpp needs: decided once, by plan.cpp and the family it asked.
struct Plan {
  const Kernel* kernel = nullptr;  ///< null: the host path, or another backend
  std::string backend = "sycl";    ///< "sycl", "host", "onemkl"
  Params params;
  Constants constants;  ///< rendered into the source, types and layouts included
  LaunchRange range;
  index_t split_m = 1, split_n = 1, split_k = 1;
  index_t scratch_stride = 0;     ///< elements of the accumulator's type
  std::size_t scratch_bytes = 0;  ///< in all; the first `counter_bytes` of it are zero when a kernel starts, and left zero
  std::size_t counter_bytes = 0;
  std::int64_t local_memory = 0;  ///< bytes a work-group
  std::vector<MatrixCopy> copies;
  std::string reason;
};

struct Kernel {
  std::string_view name;  ///< also the entry point
  std::string_view file;  ///< its source in kernels/, for example "1_naive.cpp"
  std::string_view summary;
  std::string_view params;  ///< "none", "tile", "pack"
  /// Hand-vectorised: the CPU driver's own vectoriser must leave it alone (see program.cpp).
  bool hand_vectorised = false;
  /// Why this kernel cannot do this problem on this device; empty: it can.
  std::string (*why_not)(const Problem&, const DeviceInfo&) = nullptr;
  /// The family's defaults for this device and problem, from device properties alone.
  Params (*defaults)(const Problem&, const DeviceInfo&) = nullptr;
  /// Fills constants, range, scratch. Throws ParamsError where `params` break a constraint.
  Plan (*plan)(const Kernel&, const Problem&, const DeviceInfo&, const Params& params) = nullptr;
  /// Without a measurement the planner takes the able kernel with the highest preference; 0 (and null): only when it is asked for.
  /// 10 is the device's general kernel ("tiled" on a GPU, "packed" on a CPU), more a specialist for this shape.
  int (*preference)(const Problem&, const DeviceInfo&) = nullptr;
  /// An estimate of what the product takes, of kernels that are slower where lines begin anywhere, or with one of the layouts: the planner
  /// then weighs copies. It must not look at addresses. Null: the matrices are taken as they are.
  double (*microseconds)(const Problem&, const DeviceInfo&) = nullptr;
};

/// All kernels, lessons first. src/kernel.cpp is the one list.
std::span<const Kernel> all_kernels();
/// Throws UnsupportedError that lists the names.
const Kernel& find_kernel(std::string_view name);

/// The constants that every kernel has: element types, layouts, epilogue, batch. Families append their own.
Constants common_constants(const Problem& p);

}  // namespace sycl_mat
