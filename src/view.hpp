// The caller's arrays → a Problem, or an InputError before anything is touched.
#pragma once

#include "problem.hpp"

namespace sycl_mat {

/// Checks dimensions, sizes, dtypes, batch broadcasting and overflow; brings operands into normal form. An operand of which no axis
/// has stride 1 is described by `needs_copy`: memory.cpp makes a dense copy and completes the problem.
struct CheckedProblem {
  Problem problem;
  bool copy_a = false, copy_b = false, copy_c = false, copy_d = false;  ///< strides that no kernel reads
  bool swapped = false;  ///< D is column-major: A and B changed places
};
CheckedProblem check(const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d, const GemmOptions& options);

}  // namespace sycl_mat
