// What a device can do at best, measured on it, and what that means for a problem: which limit it meets first.
#pragma once

#include <string>

#include "context.hpp"
#include "shape_class.hpp"

namespace sycl_mat {

/// Ceilings of one device for one type. Measured by kernels/peak.cpp and kernels/stream.cpp, best of several runs.
struct Roofline {
  double peak_gflops = 0;     ///< multiply-adds from registers, 2 operations each
  double read_gbs = 0;        ///< 10⁹ bytes a second, reading arrays that no cache holds
  double triad_gbs = 0;       ///< the same, two streams in and one out (bytes counted once each)
  double launch_seconds = 0;  ///< submit and wait for a kernel that does nothing
};

/// Measured on the first call for this device and type (about a quarter of a second), then remembered for the process. float32 and
/// float64 have a peak of their own; other types get float32's, in which they accumulate. Throws DeviceError, CompileError.
Roofline measure_roofline(Context::State& context, DType dtype);

/// Only the multiply-add rate, in GFLOP/s, and always anew: the best of some launches of 15 ms each. With `flops` it is the rate of one
/// launch of about so many operations: what a product of as many can reach on a machine whose other users leave no long slice undisturbed.
double measure_fma_peak(Context::State& context, DType dtype, double flops = 0);

enum class Limit { compute, memory, launch };

/// The least time that a problem can take under the ceilings.
struct Bound {
  double flops = 0;
  double bytes = 0;  ///< each operand once: nothing can move less
  double compute_seconds = 0;
  double memory_seconds = 0;  ///< 0 where all operands together fit the last cache and may be there already
  double launch_seconds = 0;
  double seconds = 0;  ///< the largest of the three
  Limit limit = Limit::compute;
  double intensity = 0;  ///< operations a byte
};
Bound bound(const Roofline& roofline, const DeviceInfo& device, const Shape& shape, DType dtype, bool reads_c = false);

/// "multiply-add rate", "memory bandwidth", "launch latency".
std::string to_string(Limit limit);

}  // namespace sycl_mat
