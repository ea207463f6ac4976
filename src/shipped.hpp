// The programs that travel with the library as object bundles, and that every check of generated code looks at.
#pragma once

#include "kernel.hpp"

namespace sycl_mat {

struct ShippedProgram {
  const Kernel* kernel;
  Constants constants;
  std::string architecture;  ///< whose defaults these are: "cpu-avx512", "intel-xe-lp", …
  LaunchRange range;         ///< of one problem that uses it
  std::string problem;       ///< that problem, "1024×1024×1024 float32 nt"
};

/// The programs that a device's usual problems need.
std::vector<ShippedProgram> usual_programs(const DeviceInfo& device, DType dtype);

/// What the planner chooses, with default constants, for usual problems on each architecture that a SPIR-V bundle can serve.
/// Every program once (per architecture). Deterministic.
std::vector<ShippedProgram> shipped_programs();

/// Devices as the library expects them, one an architecture, for planning where no such device is: by architecture name.
DeviceInfo model_device(std::string_view architecture);

/// The architectures for which programs are shipped.
std::vector<std::string> shipped_architectures();

}  // namespace sycl_mat
