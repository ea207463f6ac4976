// Random matrices with canaries around them, a float64 reference, and the bound that a result must keep.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "sycl_mat/sycl_mat.hpp"

namespace sycl_mat::test {

/// One matrix (or stack) inside a larger buffer whose other elements must stay as they are. T: float or double.
template <class T>
class Guarded {
 public:
  enum class Order { rows, columns };

  /// `gap`: elements between the end of a row (or column) and the next one's begin. `flip`: a negative leading dimension.
  Guarded(std::int64_t rows, std::int64_t cols, Order order = Order::rows, std::int64_t gap = 0, bool flip = false, std::int64_t batch = 1)
      : batch_(batch) {
    const std::int64_t lines = order == Order::rows ? rows : cols, length = order == Order::rows ? cols : rows;
    const std::int64_t ld = length + gap, one = lines * ld + gap;
    buffer_.assign(std::size_t(2 * margin + one * batch), canary());
    view_.data = buffer_.data() + margin + (flip && lines > 0 ? (lines - 1) * ld : 0);
    view_.dtype = sizeof(T) == 4 ? DType::float32 : DType::float64;
    view_.rows = rows;
    view_.cols = cols;
    view_.row_stride = order == Order::rows ? (flip ? -ld : ld) : 1;
    view_.col_stride = order == Order::rows ? 1 : (flip ? -ld : ld);
    if (batch != 1) view_.batch = {{batch, one}};
  }

  const MatrixView& view() const { return view_; }
  T& at(std::int64_t i, std::int64_t j, std::int64_t g = 0) {
    const std::int64_t offset = view_.batch.empty() ? 0 : g * view_.batch[0].stride;
    return static_cast<T*>(view_.data)[offset + i * view_.row_stride + j * view_.col_stride];
  }
  template <class Make>
  void fill(Make make) {
    for (std::int64_t g = 0; g < batch_; ++g)
      for (std::int64_t i = 0; i < view_.rows; ++i)
        for (std::int64_t j = 0; j < view_.cols; ++j) at(i, j, g) = make();
    untouched_ = buffer_;
  }
  /// Everything outside the matrix is as fill() left it.
  void expect_only_matrix_written(const std::string& what) {
    std::vector<T> now = buffer_;
    const std::vector<T> after = buffer_;
    for (std::int64_t g = 0; g < batch_; ++g)
      for (std::int64_t i = 0; i < view_.rows; ++i)
        for (std::int64_t j = 0; j < view_.cols; ++j) {
          const std::size_t index = std::size_t(&at(i, j, g) - buffer_.data());
          now[index] = untouched_[index];
        }
    EXPECT_EQ(std::memcmp(now.data(), untouched_.data(), now.size() * sizeof(T)), 0)
        << what << ": something outside the result was written";
  }
  void expect_untouched(const std::string& what) {
    EXPECT_EQ(std::memcmp(buffer_.data(), untouched_.data(), buffer_.size() * sizeof(T)), 0) << what << ": an input was written";
  }

 private:
  static constexpr std::int64_t margin = 256;
  static T canary() { return std::numeric_limits<T>::quiet_NaN(); }  // read by mistake, it poisons the result
  std::int64_t batch_;
  MatrixView view_;
  std::vector<T> buffer_, untouched_;
};

/// γ(k)-like bound on |computed − exact| for a sum of k products in T, with room for the epilogue: (k + 8) · u · Σ|a·b|.
template <class T>
double bound(std::int64_t k, double magnitude) {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  return (double(k) + 8) * u * magnitude + std::numeric_limits<T>::denorm_min() * (double(k) + 8);
}

struct Case {
  std::int64_t m, n, k;
};
inline std::string text_of(const Case& c) { return std::to_string(c.m) + "×" + std::to_string(c.n) + "×" + std::to_string(c.k); }

/// Checks alpha·A·B + beta·C element by element against float64 sums.
template <class T>
void expect_product(Guarded<T>& a, Guarded<T>& b, Guarded<T>* c, Guarded<T>& d, double alpha, double beta, const std::string& what,
                    std::int64_t batch = 1) {
  const auto [m, n, k] = Case{d.view().rows, d.view().cols, a.view().cols};
  int wrong = 0;
  for (std::int64_t g = 0; g < batch; ++g)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        long double sum = 0, magnitude = 0;
        for (std::int64_t x = 0; x < k; ++x) {
          const long double p = static_cast<long double>(a.at(i, x, g)) * b.at(x, j, g);
          sum += p;
          magnitude += std::fabs(p);
        }
        sum *= alpha;
        magnitude *= std::fabs(alpha);
        if (c) {
          sum += static_cast<long double>(beta) * c->at(i, j, g);
          magnitude += std::fabs(static_cast<long double>(beta) * c->at(i, j, g));
        }
        const double error = std::fabs(static_cast<double>(d.at(i, j, g) - sum));
        if (!(error <= bound<T>(k, static_cast<double>(magnitude))) && ++wrong <= 3)  // a NaN must fail
          ADD_FAILURE() << what << " at (" << g << ", " << i << ", " << j << "): " << d.at(i, j, g) << ", exact "
                        << static_cast<double>(sum);
      }
  EXPECT_EQ(wrong, 0) << what;
}

}  // namespace sycl_mat::test
