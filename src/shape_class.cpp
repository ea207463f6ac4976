#include "shape_class.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace sycl_mat {

int size_level(index_t size) {
  if (size <= 1) return 0;
  // A size above 1 is never class 0, though log2(1.4) would round there.
  return std::clamp(static_cast<int>(std::lround(2 * std::log2(static_cast<double>(size)))), 1, saturation);
}

ShapeClass shape_class(index_t m, index_t n, index_t k, index_t batch) {
  return {size_level(m), size_level(n), size_level(k), size_level(batch)};
}

std::string to_string(const ShapeClass& c) {
  return "m" + std::to_string(c.m) + " n" + std::to_string(c.n) + " k" + std::to_string(c.k) + " b" + std::to_string(c.batch);
}

std::optional<ShapeClass> parse_shape_class(std::string_view text) {
  ShapeClass c;
  const char names[] = {'m', 'n', 'k', 'b'};
  int* const values[] = {&c.m, &c.n, &c.k, &c.batch};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != ' ')) return std::nullopt;
    if (at == end || *at++ != names[i]) return std::nullopt;
    const auto [stop, error] = std::from_chars(at, end, *values[i]);
    if (error != std::errc{} || *values[i] < 0 || *values[i] > saturation) return std::nullopt;
    at = stop;
  }
  if (at != end) return std::nullopt;
  return c;
}

double shape_distance(const Shape& a, const Shape& b) {
  const auto apart = [](index_t x, index_t y) { return (x <= 1) != (y <= 1); };
  if (apart(a.m, b.m) || apart(a.n, b.n) || apart(a.k, b.k) || apart(a.batch, b.batch)) return std::numeric_limits<double>::infinity();
  const double largest = std::ldexp(1.0, saturation / 2);
  const auto doublings = [largest](index_t x, index_t y) {
    const auto place = [largest](index_t size) { return std::log2(std::clamp(static_cast<double>(size), 1.0, largest)); };
    return place(x) - place(y);
  };
  return std::hypot(std::hypot(doublings(a.m, b.m), doublings(a.n, b.n)), std::hypot(doublings(a.k, b.k), doublings(a.batch, b.batch)));
}

std::string_view layout_of(const Problem& p) {
  const bool a = p.a.transposed && p.m > 1, b = p.b.transposed && p.n > 1;
  if (a) return b ? "tt" : "tn";
  return b ? "nt" : "nn";
}

}  // namespace sycl_mat
