// Which NVIDIA architecture the run-time compiler makes PTX for. One choice for the whole process: the runtime reads it from the
// environment (SYCL_JIT_AMDGCN_PTX_TARGET_CPU and …_FEATURES) when the process builds its first kernel.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// 10 · major + minor, for example 86; 0 for devices that are not driven by CUDA, or whose name the runtime does not know.
int compute_capability(const DeviceInfo& device);

/// The newest target whose PTX runs on devices of all these compute capabilities and that kernels here make use of: "sm_90a" (nothing but
/// Hopper), "sm_80", or "" for the runtime's own choice.
std::string_view ptx_target_for(std::span<const int> capabilities);

/// Whether code for a target ("sm_86", "sm_90a", …) may have the instructions of compute capability 8.0. Not understood: no.
bool has_sm80_instructions(std::string_view target);

/// Why kernels for sm_90a (wgmma) cannot be built in this process; empty: they can.
std::string why_no_sm90a();
/// Why kernels with mma.sync and cp.async as of sm_80 cannot be; empty: they can.
std::string why_no_mma_sync();

/// Sets the environment for the best target that all of the process's CUDA devices can run, unless the user has set it. To be called before
/// the first kernel is built for a CUDA device.
void choose_ptx_target();

}  // namespace sycl_mat
