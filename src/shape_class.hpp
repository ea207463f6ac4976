// Which problems share constants: a grid over log2 of the sizes. docs/tuning.md has the measurements that decided its width.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "problem.hpp"

namespace sycl_mat {

/// A cell of the grid: every size as its exponent of two in halves, rounded (1024: 20, 768: 19); beyond `saturation` nothing changes
/// any more. A size of 1 (a vector, or no batch) is a cell of its own, since other kernels serve it.
struct ShapeClass {
  int m = 0, n = 0, k = 0, batch = 0;
  auto operator<=>(const ShapeClass&) const = default;
};

/// Level from which on all sizes are one class: 2^13, by when every cache was left and every core has work.
inline constexpr int saturation = 26;

int size_level(index_t size);
ShapeClass shape_class(index_t m, index_t n, index_t k, index_t batch = 1);
inline ShapeClass shape_class(const Problem& p) { return shape_class(p.m, p.n, p.k, p.batch()); }

/// "m20 n20 k20 b0", and back; nothing for any other text.
std::string to_string(const ShapeClass& c);
std::optional<ShapeClass> parse_shape_class(std::string_view text);

/// How far apart two problems are for a choice of constants: Euclidean, in doublings, with the sizes themselves rather than their
/// classes. Infinity where a vector meets a matrix, or a stack a single product: those never share constants.
struct Shape {
  index_t m = 0, n = 0, k = 0, batch = 1;
  auto operator<=>(const Shape&) const = default;
};
inline Shape shape_of(const Problem& p) { return {p.m, p.n, p.k, p.batch()}; }
inline ShapeClass shape_class(const Shape& s) { return shape_class(s.m, s.n, s.k, s.batch); }
double shape_distance(const Shape& a, const Shape& b);

/// Constants are carried from a measured problem to another at most this far, and only as far as the tuner has proven them (see
/// TunedRecord::reach); beyond, the defaults are the better guess.
inline constexpr double sharing_radius = 0.75;

/// "nn", "nt", "tn", "tt": which of A and B are transposed in the sense of Operand; a vector never is. Layouts share nothing: a set that
/// was best for one was up to 5 % slower than the defaults for another of the same size.
std::string_view layout_of(const Problem& p);

}  // namespace sycl_mat
