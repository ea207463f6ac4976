#include "shape_class.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sycl_mat {
namespace {

TEST(ShapeClass, RoundsToHalvesOfAnExponent) {
  EXPECT_EQ(shape_class(1024, 1000, 1023, 1), (ShapeClass{20, 20, 20, 0}));
  EXPECT_EQ(shape_class(768, 724, 640, 1), (ShapeClass{19, 19, 19, 0}));
  EXPECT_EQ(shape_class(862, 863, 1217, 1), (ShapeClass{20, 20, 20, 0}));  // the borders lie a quarter of an exponent away
  EXPECT_EQ(size_level(860), 19);
}

TEST(ShapeClass, OneIsAClassOfItsOwn) {
  EXPECT_EQ(size_level(0), 0);
  EXPECT_EQ(size_level(1), 0);
  EXPECT_EQ(size_level(2), 2);
  EXPECT_EQ(size_level(3), 3);
}

TEST(ShapeClass, SaturatesWhereNothingChangesAnyMore) {
  EXPECT_EQ(size_level(8192), saturation);
  EXPECT_EQ(size_level(index_t{1} << 40), saturation);
  EXPECT_EQ(shape_distance({8192, 64, 64, 1}, {1 << 20, 64, 64, 1}), 0);
}

TEST(ShapeClass, LevelsNeverDecrease) {
  for (index_t size = 1; size < 20000; ++size) ASSERT_LE(size_level(size), size_level(size + 1)) << size;
}

TEST(ShapeClass, TextGoesThereAndBack) {
  for (const ShapeClass c : {ShapeClass{}, ShapeClass{13, 0, 7, 12}, ShapeClass{10, 10, 10, 0}}) {
    const auto back = parse_shape_class(to_string(c));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, c);
  }
  for (const char* bad : {"", "m1", "m1 n1 k1", "m1 n1 k1 b", "m1 n1 k1 b99", "m-1 n1 k1 b0", "m1 n1 k1 b0 ", "n1 m1 k1 b0", "m1n1k1b0"})
    EXPECT_FALSE(parse_shape_class(bad).has_value()) << bad;
}

TEST(ShapeDistance, CountsDoublings) {
  EXPECT_DOUBLE_EQ(shape_distance({512, 512, 512, 1}, {1024, 512, 512, 1}), 1);
  EXPECT_DOUBLE_EQ(shape_distance({64, 64, 64, 1}, {512, 1024, 64, 1}), 5);  // 3, 4, 0
  EXPECT_EQ(shape_distance({7, 9, 11, 3}, {7, 9, 11, 3}), 0);
}

TEST(ShapeDistance, VectorsAndMatricesShareNothing) {
  EXPECT_TRUE(std::isinf(shape_distance({1, 512, 512, 1}, {2, 512, 512, 1})));
  EXPECT_TRUE(std::isinf(shape_distance({512, 512, 512, 1}, {512, 512, 512, 2})));
  EXPECT_TRUE(std::isfinite(shape_distance({1, 512, 512, 1}, {1, 600, 512, 1})));
}

TEST(ShapeDistance, AClassIsLittleLargerThanTheRadius) {
  // From its middle every member of a class is near enough; a whole doubling of one size never is.
  EXPECT_LE(shape_distance({1024, 1024, 1024, 1}, {861, 861, 861, 1}), sharing_radius);
  EXPECT_GT(shape_distance({1024, 1024, 1024, 1}, {2048, 1024, 1024, 1}), sharing_radius);
}

}  // namespace
}  // namespace sycl_mat
