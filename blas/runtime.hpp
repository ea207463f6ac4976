// What a program that knows nothing of SYCL needs before the first product.
#pragma once

namespace sycl_mat::blas {

/// Makes the CPU's OpenCL driver known to the loader where it lies beside the SYCL runtime, as the wheels put it. Once a process.
void prepare_runtime();

}  // namespace sycl_mat::blas
