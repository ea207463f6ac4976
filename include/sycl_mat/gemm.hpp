// The product itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"
#include "sycl_mat/params.hpp"
#include "sycl_mat/types.hpp"

namespace sycl_mat {

/// automatic: products exact in the accumulator's type and summed in it, within the bound of docs/accuracy.md; tensor units and dot-product
/// instructions where they keep that. ieee: only fused multiply-adds in that type, neither of those. tf32: operands rounded to 10 bits of
/// mantissa where the device has such units, an error elsewhere.
enum class Precision : std::uint8_t { automatic, ieee, tf32 };

struct GemmOptions {
  Epilogue epilogue;
  std::string kernel;            ///< forced kernel, empty: the planner's choice; see kernels()
  std::optional<Params> params;  ///< forced constants
  std::string backend = "sycl";  ///< "sycl", "onemkl", "auto"
  Precision precision = Precision::automatic;
  std::int64_t max_device_memory = 0;  ///< bytes that operands and copies of them may take on a device with memory of its own, 0: what it has
  bool wait = true;                    ///< false: return at once; operands must live until the event is done
};

/// The end of a product. Copies refer to the same one; an empty event is done.
class Event {
 public:
  struct State;
  Event() = default;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// Blocks until the result is in place. Throws DeviceError.
  void wait();
  bool done() const;

 private:
  std::shared_ptr<State> state_;
};

/// D ← activation(alpha·A·B + beta·C + bias): A is m×k, B k×n, D m×n, each a matrix or a stack whose batch axes broadcast as in
/// NumPy (D's batch is the broadcast one). `c` may be null (then beta must be 0), may be `d`, may broadcast.
/// Throws InputError before anything is written.
Event gemm(Context& context, const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d,
           const GemmOptions& options = {});

/// D ← A·B.
inline Event matmul(Context& context, const MatrixView& a, const MatrixView& b, const MatrixView& d, const GemmOptions& options = {}) {
  return gemm(context, a, b, nullptr, d, options);
}

/// What would run, and why: filled by explain() and by whoever asks for a plan.
struct Explanation {
  std::string device;
  std::string kernel;
  std::string constants;          ///< as rendered into the kernel
  std::string reason;             ///< why this kernel and these constants
  std::string memory;             ///< zero copy, or what is copied and why
  std::string program;            ///< where the program came from: compiled now, shipped, or cached
  std::string launch_range;       ///< "global 2048×2048, local 16×16"
  std::int64_t local_memory = 0;  ///< bytes a work-group holds
  std::int64_t scratch = 0;       ///< bytes of device scratch
  std::int64_t registers = -1;    ///< as the driver reports them, -1: it does not
  std::int64_t spills = -1;       ///< bytes a work-item spills, -1: the driver does not say
};
Explanation explain(Context& context, const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d,
                    const GemmOptions& options = {});

struct KernelInfo {
  std::string name;
  std::string summary;
  std::string params;  ///< "none", "tile", "pack"
};
/// Every kernel by name, in the order of the lessons, each forceable by GemmOptions::kernel.
std::vector<KernelInfo> kernels();

/// Name of the kernel that the calling thread's last product ran, empty before the first. For tests and for `explain`.
std::string last_kernel();

}  // namespace sycl_mat
