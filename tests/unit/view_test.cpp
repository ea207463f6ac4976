// What callers may pass, what they may not, and the normal form that comes out.
#include "view.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "slices.hpp"
#include "strided_copy.hpp"

namespace sycl_mat {
namespace {

float storage[4096];

MatrixView matrix(std::int64_t rows, std::int64_t cols) { return row_major(storage, rows, cols); }
MatrixView column_major(std::int64_t rows, std::int64_t cols) { return matrix(cols, rows).transposed(); }

Problem problem_of(const MatrixView& a, const MatrixView& b, const MatrixView& d, const GemmOptions& options = {},
                   const MatrixView* c = nullptr) {
  Operands o = check(a, b, c, d, options);
  collapse_batch(o);
  return make_problem(o, options);
}

template <class Error>
std::string message_of(const MatrixView& a, const MatrixView& b, const MatrixView& d, const GemmOptions& options = {},
                       const MatrixView* c = nullptr) {
  try {
    check(a, b, c, d, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Check, InnerSizesMustAgree) {
  const std::string text = message_of<SizeError>(matrix(3, 4), matrix(5, 6), matrix(3, 6));
  EXPECT_TRUE(text.starts_with("Size Error: ")) << text;
  EXPECT_NE(text.find("3×4 and 5×6"), std::string::npos) << text;
}

TEST(Check, ResultMustFit) {
  EXPECT_NE(message_of<SizeError>(matrix(3, 4), matrix(4, 6), matrix(2, 6)), "no error");
  EXPECT_NE(message_of<SizeError>(matrix(3, 4), matrix(4, 6), matrix(3, 7)), "no error");
  EXPECT_EQ(message_of<SizeError>(matrix(3, 4), matrix(4, 6), matrix(3, 6)), "no error");
}

TEST(Check, NegativeAndEnormousSizes) {
  EXPECT_NE(message_of<SizeError>(matrix(-1, 4), matrix(4, 6), matrix(-1, 6)), "no error");
  MatrixView a = matrix(std::int64_t(1) << 40, std::int64_t(1) << 40), b = matrix(std::int64_t(1) << 40, 1),
             d = matrix(std::int64_t(1) << 40, 1);
  EXPECT_NE(message_of<SizeError>(a, b, d), "no error");
  a = matrix(4, 4);
  a.row_stride = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_NE(message_of<SizeError>(a, matrix(4, 4), matrix(4, 4)), "no error");
}

TEST(Check, SharedPlacesInTheResult) {
  MatrixView d = matrix(3, 6);
  d.row_stride = 0;
  EXPECT_NE(message_of<InputError>(matrix(3, 4), matrix(4, 6), d).find("stride of zero"), std::string::npos);
}

TEST(Check, Types) {
  MatrixView b = matrix(4, 6);
  b.dtype = DType::float64;
  EXPECT_NE(message_of<UnsupportedError>(matrix(3, 4), b, matrix(3, 6)).find("float64"), std::string::npos);
  MatrixView a8 = matrix(3, 4), b8 = matrix(4, 6), d = matrix(3, 6);
  a8.dtype = b8.dtype = DType::int8;
  EXPECT_NE(message_of<UnsupportedError>(a8, b8, d).find("int32"), std::string::npos);
  d.dtype = DType::int32;
  EXPECT_EQ(message_of<UnsupportedError>(a8, b8, d), "no error");
}

TEST(Check, BetaNeedsC) {
  GemmOptions options;
  options.epilogue.beta = 1;
  EXPECT_NE(message_of<InputError>(matrix(3, 4), matrix(4, 6), matrix(3, 6), options), "no error");
}

TEST(NormalForm, LeadingDimensions) {
  const Problem p = problem_of(matrix(3, 4), column_major(4, 6), matrix(3, 6));
  EXPECT_EQ(p.m, 3);
  EXPECT_EQ(p.n, 6);
  EXPECT_EQ(p.k, 4);
  EXPECT_FALSE(p.a.transposed);
  EXPECT_EQ(p.a.ld, 4);
  EXPECT_TRUE(p.b.transposed);
  EXPECT_EQ(p.b.ld, 4);
}

TEST(NormalForm, ColumnMajorResultSwapsOperands) {
  GemmOptions options;
  float bias = 0;
  options.epilogue.bias = &bias;
  options.epilogue.bias_axis = BiasAxis::column;
  const Problem p = problem_of(matrix(3, 4), matrix(4, 6), column_major(3, 6), options);
  EXPECT_EQ(p.m, 6);
  EXPECT_EQ(p.n, 3);
  EXPECT_TRUE(p.a.transposed);
  EXPECT_TRUE(p.b.transposed);
  EXPECT_FALSE(p.d.transposed);
  EXPECT_EQ(p.d.ld, 3);
  EXPECT_EQ(p.epilogue.bias_axis, BiasAxis::row);
}

TEST(NormalForm, StridesOfOneRowOrColumnDoNotMatter) {
  MatrixView row = matrix(1, 6);
  row.row_stride = -777;
  EXPECT_TRUE(has_normal_form(row));
  EXPECT_EQ(problem_of(matrix(1, 4), matrix(4, 6), row).d.ld, 6);
  MatrixView column = matrix(6, 1);
  column.row_stride = 5;
  column.col_stride = -777;
  EXPECT_TRUE(has_normal_form(column));
  EXPECT_EQ(problem_of(matrix(6, 4), matrix(4, 1), column).d.ld, 5);
  MatrixView spread = matrix(1, 6);
  spread.col_stride = 3;
  const Problem p = problem_of(matrix(1, 4), matrix(4, 6), spread);  // a row with gaps is a column with a leading dimension
  EXPECT_EQ(p.d.ld, 3);
  EXPECT_EQ(p.m, 6);
  EXPECT_EQ(p.n, 1);
}

TEST(NormalForm, NegativeAndZeroStrides) {
  MatrixView a = matrix(3, 4);
  a.row_stride = -4;
  EXPECT_TRUE(has_normal_form(a));
  a.row_stride = 0;
  EXPECT_TRUE(has_normal_form(a));
  a.col_stride = 2;
  EXPECT_FALSE(has_normal_form(a));
  a.col_stride = 0;
  EXPECT_FALSE(has_normal_form(a));
  MatrixView odd = matrix(3, 4);
  odd.data = reinterpret_cast<char*>(storage) + 2;
  EXPECT_FALSE(has_normal_form(odd));
}

MatrixView stack(std::vector<Axis> batch, std::int64_t rows, std::int64_t cols) {
  MatrixView v = matrix(rows, cols);
  v.batch = std::move(batch);
  return v;
}

TEST(Batch, DenseAxesBecomeOne) {
  Operands o = check(stack({{5, 48}, {4, 12}}, 3, 4), stack({{5, 48}, {4, 12}}, 4, 3), nullptr, stack({{5, 36}, {4, 9}}, 3, 3), {});
  collapse_batch(o);
  ASSERT_EQ(o.d.batch.size(), 1u);
  EXPECT_EQ(o.d.batch[0].extent, 20);
  EXPECT_EQ(o.a.batch[0].stride, 12);
}

TEST(Batch, BroadcastingKeepsTwo) {
  Operands o = check(stack({{5, 12}, {1, 99}}, 3, 4), stack({{4, 12}}, 4, 3), nullptr, stack({{5, 36}, {4, 9}}, 3, 3), {});
  collapse_batch(o);
  ASSERT_EQ(o.d.batch.size(), 2u);
  const Problem p = make_problem(o, {});
  EXPECT_EQ(p.batch_outer, 5);
  EXPECT_EQ(p.batch_inner, 4);
  EXPECT_EQ(p.a.outer, 12);
  EXPECT_EQ(p.a.inner, 0);
  EXPECT_EQ(p.b.outer, 0);
  EXPECT_EQ(p.b.inner, 12);
}

TEST(Batch, AxesThatDoNotBroadcast) {
  EXPECT_NE(message_of<SizeError>(stack({{3, 12}}, 3, 4), matrix(4, 3), stack({{5, 9}}, 3, 3)), "no error");
  EXPECT_NE(message_of<DimensionError>(stack({{1, 0}, {5, 12}}, 3, 4), matrix(4, 3), stack({{5, 9}}, 3, 3)), "no error");
}

TEST(Batch, MoreThanTwoAreCut) {
  Operands o = check(stack({{2, 40}, {3, 0}, {4, 12}}, 3, 4), stack({{2, 0}, {3, 12}, {4, 0}}, 4, 3), nullptr,
                     stack({{2, 108}, {3, 36}, {4, 9}}, 3, 3), {});
  collapse_batch(o);
  ASSERT_EQ(o.d.batch.size(), 3u);
  std::vector<Operands> cut;
  for_each_slice(o, [&](const Operands& slice) { cut.push_back(slice); });
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(static_cast<float*>(cut[1].a.data) - storage, 40);
  EXPECT_EQ(static_cast<float*>(cut[1].b.data) - storage, 0);
  EXPECT_EQ(static_cast<float*>(cut[1].d.data) - storage, 108);
}

TEST(Overlap, BytesOfViewsWithNegativeStrides) {
  MatrixView v = matrix(3, 4);
  v.data = storage + 8;
  v.row_stride = -4;
  EXPECT_EQ(bytes_of(v).begin, -32);
  EXPECT_EQ(bytes_of(v).end, 16);
  EXPECT_TRUE(may_overlap(v, row_major(storage, 1, 1)));
  EXPECT_FALSE(may_overlap(v, row_major(storage + 12, 1, 1)));
  EXPECT_FALSE(may_overlap(v, row_major(storage + 4, 0, 4)));
}

TEST(StridedCopy, EveryOrder) {
  std::vector<float> from(3 * 50 * 41), to(from.size(), -1);
  std::iota(from.begin(), from.end(), 0.f);
  MatrixView src = row_major(from.data() + 49, 41, 50);  // columns reversed, read as a transposed stack
  src.col_stride = -1;
  src.batch = {{3, 41 * 50}};
  const MatrixView dst = dense_like(src.transposed(), to.data());
  copy_strided(dst, src.transposed());
  for (int g = 0; g < 3; ++g)
    for (int i = 0; i < 50; ++i)
      for (int j = 0; j < 41; ++j) ASSERT_EQ(to[std::size_t(g * 2050 + i * 41 + j)], from[std::size_t(g * 2050 + j * 50 + 49 - i)]);
  EXPECT_TRUE(is_dense(dst));
  EXPECT_FALSE(is_dense(src));
}

}  // namespace
}  // namespace sycl_mat
