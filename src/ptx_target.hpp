// Which NVIDIA architecture the run-time compiler makes PTX for. One choice for the whole process: the runtime reads it from the
// environment (SYCL_JIT_AMDGCN_PTX_TARGET_CPU and …_FEATURES) when the process builds its first kernel.
#pragma once

#include <string>

namespace sycl_mat {

/// Why kernels for sm_90a (wgmma) cannot be built in this process; empty: they can.
std::string why_no_sm90a();

/// Sets the environment for sm_90a where all of the process's CUDA devices can run that, unless the user has set it. To be called before
/// the first kernel is built for a CUDA device.
void choose_ptx_target();

}  // namespace sycl_mat
