// The kernel families: each file of this folder describes its kernels; src/kernel.cpp lists them all.
#pragma once

#include <span>

#include "../kernel.hpp"

namespace sycl_mat {

inline index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

std::span<const Kernel> ladder_kernels();       ///< naive … tiled_double_buffered: the lessons, in their order
std::span<const Kernel> tiled_kernels();        ///< the GPU kernel
std::span<const Kernel> packed_kernels();       ///< the CPU kernel
std::span<const Kernel> packed_bf16_kernels();  ///< bfloat16 on the CPU's dot products
std::span<const Kernel> skinny_kernels();       ///< the CPU's products with few rows or columns
std::span<const Kernel> gemv_kernels();         ///< products with few rows or columns on GPUs
std::span<const Kernel> mma_sync_kernels();     ///< float32 and 16-bit numbers on NVIDIA's tensor units, 8.0 and newer
std::span<const Kernel> tf32x3_kernels();       ///< float32 on Hopper's tensor units
std::span<const Kernel> wgmma16_kernels();      ///< float16 and bfloat16 on Hopper's tensor units

/// Why no kernel here takes the problem's element type on this device; empty: they do.
std::string unsupported_type(const Problem& p, const DeviceInfo& device);

}  // namespace sycl_mat
