// SYCL_MAT_TRACE=file: which problems a program has, for `sycl-mat tune --from-trace`.
#pragma once

#include "problem.hpp"

namespace sycl_mat {

/// Counts a product where the environment variable was set when the process asked first; otherwise costs one load.
/// The file is appended to: one JSON line when a problem is met for the first time, and one with the final count when the process ends,
/// so that a program that is killed still leaves its problems. Several processes may share a file.
void trace(const Problem& p);

}  // namespace sycl_mat
