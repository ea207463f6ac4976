// Products by oneMKL (oneapi::mkl::blas), where the caller asks for it and its wheels are installed. It runs on the context's queue and
// on the same staged operands as our own kernels. The libraries are loaded on first use.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "../context.hpp"
#include "../problem.hpp"

namespace sycl_mat::onemkl {

/// What GemmOptions::backend and last_kernel() call it.
inline constexpr std::string_view name = "onemkl";

/// Where the libraries of the wheels onemkl-sycl-blas, mkl and tbb are, asked before the usual places: the folder of the SYCL runtime,
/// $MKLROOT/lib, the dynamic linker's own. $SYCL_MAT_ONEMKL_DIR, where it is set, takes the place of all of them.
void add_folder(const std::filesystem::path& folder);

/// Loads oneMKL. Throws UnsupportedError that says what to install; a failure is not remembered.
void require();

/// Whether it can be loaded. Loads it.
bool usable();

/// Why oneMKL cannot compute this problem; empty: it can. Asks nothing of the library.
std::string why_not(const Problem& p);

/// Submits the product; returns at once. Only for problems that why_not() accepts. Throws UnsupportedError, DeviceError.
void gemm(Context::State& context, const Problem& p);

}  // namespace sycl_mat::onemkl
