// The caller's arrays → a Problem, or an InputError before anything is touched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem.hpp"

namespace sycl_mat {

/// The four operands as the caller gave them, with D's batch axes broadcast over A, B and C: every `batch` has the same length and D's
/// extents, with stride 0 where an operand repeats.
struct Operands {
  MatrixView a, b, d;
  std::optional<MatrixView> c;     ///< absent where beta is 0
  std::optional<MatrixView> bias;  ///< as one row, of the accumulator's dtype
};

/// Checks dimensions, sizes, dtypes, batch axes and overflow. Throws InputError.
Operands check(const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d, const GemmOptions& options);

/// Merges batch axes that one stride can walk, and drops those of extent 1, in all operands alike.
void collapse_batch(Operands& o);

/// Whether any byte of the two views is (or, between bounds, may be) the same.
bool may_overlap(const MatrixView& x, const MatrixView& y);

/// Whether element by element the two views are the same memory.
bool same_places(const MatrixView& x, const MatrixView& y);

/// Whether the view is one that kernels read or write as it is: an axis of stride 1 (or of extent 1), at most two batch axes, the data
/// on a multiple of the element's size.
bool has_normal_form(const MatrixView& v);

/// The problem of operands that all have normal form and at most two batch axes. Swaps A and B where D is column-major.
Problem make_problem(const Operands& o, const GemmOptions& options);

/// First and one-past-last byte that a view touches, relative to its data pointer. Empty views: {0, 0}.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
};
ByteRange bytes_of(const MatrixView& v);

/// Whether it has no element.
bool is_empty(const MatrixView& v);

/// "3×4", "10×3×4".
std::string shape_text(const MatrixView& v);

}  // namespace sycl_mat
