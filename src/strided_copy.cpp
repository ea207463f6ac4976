#include "strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "stream_copy.hpp"

namespace sycl_mat {
namespace {

constexpr std::int64_t block = 32;  // a block of both sides stays in the L1 while a transpose walks it

template <std::size_t Size>
void copy_elements(char* dst, std::int64_t dst_row, std::int64_t dst_col, const char* src, std::int64_t src_row, std::int64_t src_col,
                   std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i0 = 0; i0 < rows; i0 += block)
    for (std::int64_t j0 = 0; j0 < cols; j0 += block)
      for (std::int64_t i = i0; i < std::min(rows, i0 + block); ++i)
        for (std::int64_t j = j0; j < std::min(cols, j0 + block); ++j)
          std::memcpy(dst + i * dst_row + j * dst_col, src + i * src_row + j * src_col,
                      Size);  // memcpy: the caller's data may be unaligned
}

void copy_matrix(const MatrixView& dst, char* to, const MatrixView& src, const char* from) {
  const auto size = size_of(dst.dtype);
  if (dst.col_stride == 1 && src.col_stride == 1) {
    for (std::int64_t i = 0; i < dst.rows; ++i)
      std::memcpy(to + i * dst.row_stride * size, from + i * src.row_stride * size, static_cast<std::size_t>(dst.cols * size));
    return;
  }
  const auto run = [&](auto copy) {
    copy(to, dst.row_stride * size, dst.col_stride * size, from, src.row_stride * size, src.col_stride * size, dst.rows, dst.cols);
  };
  switch (size) {
    case 1:
      return run(copy_elements<1>);
    case 2:
      return run(copy_elements<2>);
    case 4:
      return run(copy_elements<4>);
    default:
      return run(copy_elements<8>);
  }
}

void copy_axis(const MatrixView& dst, char* to, const MatrixView& src, const char* from, std::size_t axis) {
  if (axis == dst.batch.size()) return copy_matrix(dst, to, src, from);
  const auto size = size_of(dst.dtype);
  for (std::int64_t i = 0; i < dst.batch[axis].extent; ++i)
    copy_axis(dst, to + i * dst.batch[axis].stride * size, src, from + i * src.batch[axis].stride * size, axis + 1);
}

}  // namespace

void copy_strided(const MatrixView& dst, const MatrixView& src) {
  if (dense_bytes(dst) == 0) return;
  copy_axis(dst, static_cast<char*>(dst.data), src, static_cast<const char*>(src.data), 0);
}

void copy_past_caches(const MatrixView& dst, const MatrixView& src) {
  if (!dst.batch.empty() || dst.col_stride != 1 || src.col_stride != 1) return copy_strided(dst, src);
  const auto size = size_of(dst.dtype);
  if (is_dense(dst) && is_dense(src)) return stream_copy(dst.data, 0, src.data, 0, static_cast<std::size_t>(dense_bytes(dst)));
  stream_copy(dst.data, dst.row_stride * size, src.data, src.row_stride * size, static_cast<std::size_t>(dst.cols * size),
              static_cast<std::size_t>(dst.rows));
}

MatrixView dense_like(const MatrixView& like, void* data) {
  MatrixView v = like;
  v.data = data;
  v.col_stride = 1;
  v.row_stride = like.cols;
  std::int64_t stride = like.rows * like.cols;
  for (std::size_t i = like.batch.size(); i-- > 0;) {
    v.batch[i].stride = stride;
    stride *= like.batch[i].extent;
  }
  return v;
}

std::int64_t dense_bytes(const MatrixView& like) {
  std::int64_t count = like.rows * like.cols;
  for (const Axis& axis : like.batch) count *= axis.extent;
  return count * size_of(like.dtype);
}

bool is_dense(const MatrixView& v) {
  const MatrixView d = dense_like(v, v.data);
  const auto same = [](std::int64_t extent, std::int64_t x, std::int64_t y) { return extent <= 1 || x == y; };
  if (!same(v.cols, v.col_stride, d.col_stride) || !same(v.rows, v.row_stride, d.row_stride)) return false;
  for (std::size_t i = 0; i < v.batch.size(); ++i)
    if (!same(v.batch[i].extent, v.batch[i].stride, d.batch[i].stride)) return false;
  return true;
}

}  // namespace sycl_mat
