// The BLAS names as a program calls them: what the reference's tester leaves open (64-bit integers, NaN, large products, row-major).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

extern "C" {
void sgemm_(const char*, const char*, const std::int32_t*, const std::int32_t*, const std::int32_t*, const float*, const float*,
            const std::int32_t*, const float*, const std::int32_t*, const float*, float*, const std::int32_t*);
void sgemm_64_(const char*, const char*, const std::int64_t*, const std::int64_t*, const std::int64_t*, const float*, const float*,
               const std::int64_t*, const float*, const std::int64_t*, const float*, float*, const std::int64_t*);
void dgemm_(const char*, const char*, const std::int32_t*, const std::int32_t*, const std::int32_t*, const double*, const double*,
            const std::int32_t*, const double*, const std::int32_t*, const double*, double*, const std::int32_t*);
void dgemm_64_(const char*, const char*, const std::int64_t*, const std::int64_t*, const std::int64_t*, const double*, const double*,
               const std::int64_t*, const double*, const std::int64_t*, const double*, double*, const std::int64_t*);
void cblas_sgemm(int, int, int, std::int32_t, std::int32_t, std::int32_t, float, const float*, std::int32_t, const float*, std::int32_t,
                 float, float*, std::int32_t);
void cblas_sgemm_64(int, int, int, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t, const float*, std::int64_t,
                    float, float*, std::int64_t);
void cblas_dgemm(int, int, int, std::int32_t, std::int32_t, std::int32_t, double, const double*, std::int32_t, const double*, std::int32_t,
                 double, double*, std::int32_t);
void cblas_dgemm_64(int, int, int, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t, const double*,
                    std::int64_t, double, double*, std::int64_t);

// The program's own handlers, which the library must find.
static std::string blamed_routine;
static int blamed_argument = 0;
void xerbla_(const char* routine, const int* argument, std::size_t length) {
  blamed_routine.assign(routine, length);
  blamed_argument = *argument;
}
int RowMajorStrg = -1;
void cblas_xerbla(int argument, const char* routine, const char*, ...) {
  blamed_routine = routine;
  blamed_argument = argument;
}
}

namespace {

constexpr int by_rows = 101, by_columns = 102, plain = 111, transposed = 112;

std::vector<double> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(count);
  for (double& v : x) v = normal(random);
  return x;
}

/// |x − Σ a·b| in units of the bound γ(k)·Σ|a·b|; `a` and `b` give element (i, l) and (l, j).
template <class A, class B>
double badness(double x, int k, double unit, A a, B b) {
  long double sum = 0, magnitude = 0;
  for (int l = 0; l < k; ++l) {
    sum += static_cast<long double>(a(l)) * b(l);
    magnitude += std::fabs(static_cast<long double>(a(l)) * b(l));
  }
  return std::isnan(x) ? INFINITY : double(std::fabs(x - sum) / (magnitude * (k + 8) * unit));
}

TEST(Fortran, LargeProductsWithBothIntegerSizes) {
  const std::int32_t m = 201, n = 150, k = 170, lda = 205, ldb = 151, ldc = 201;
  const auto a = random_numbers(std::size_t(lda) * k, 1), b = random_numbers(std::size_t(ldb) * k, 2);  // A is m×k; B is n×k, transposed
  std::vector<double> c(std::size_t(ldc) * n, NAN), c64 = c;
  const double one = 1, zero = 0;
  dgemm_("N", "t", &m, &n, &k, &one, a.data(), &lda, b.data(), &ldb, &zero, c.data(), &ldc);
  const std::int64_t m64 = m, n64 = n, k64 = k, lda64 = lda, ldb64 = ldb, ldc64 = ldc;
  dgemm_64_("n", "C", &m64, &n64, &k64, &one, a.data(), &lda64, b.data(), &ldb64, &zero, c64.data(), &ldc64);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      ASSERT_LE(badness(
                    c[i + j * ldc], k, 0x1p-53, [&](int l) { return a[i + l * lda]; }, [&](int l) { return b[j + l * ldb]; }),
                1)
          << i << ", " << j;
  EXPECT_EQ(c, c64);
}

TEST(Cblas, RowMajorAndColumnMajorAgree) {
  const int m = 130, n = 140, k = 90;
  const auto da = random_numbers(std::size_t(m * k), 3), db = random_numbers(std::size_t(k * n), 4);
  const std::vector<float> a(da.begin(), da.end()), b(db.begin(), db.end());
  std::vector<float> c(std::size_t(m * n), NAN), t(c), c64(c);
  cblas_sgemm(by_rows, plain, plain, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
  cblas_sgemm_64(by_rows, plain, plain, m, n, k, 1, a.data(), k, b.data(), n, 0, c64.data(), n);
  cblas_sgemm(by_columns, transposed, transposed, m, n, k, 1, a.data(), k, b.data(), n, 0, t.data(), m);  // the same, stored by columns
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const auto row = [&](int l) { return double(a[std::size_t(i * k + l)]); };
      const auto column = [&](int l) { return double(b[std::size_t(l * n + j)]); };
      ASSERT_LE(badness(c[std::size_t(i * n + j)], k, 0x1p-24, row, column), 1) << i << ", " << j;
      ASSERT_LE(badness(t[std::size_t(j * m + i)], k, 0x1p-24, row, column), 1) << i << ", " << j;
    }
  EXPECT_EQ(c, c64);
}

TEST(Reference, AlphaZeroReadsNeitherAnorB) {
  const std::int32_t n = 3;
  std::vector<float> nan(9, NAN), c{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const float zero = 0, two = 2;
  sgemm_("N", "N", &n, &n, &n, &zero, nan.data(), &n, nan.data(), &n, &two, c.data(), &n);
  EXPECT_EQ(c, (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16, 18}));
  sgemm_("N", "N", &n, &n, &n, &zero, nullptr, &n, nullptr, &n, &zero, c.data(), &n);
  EXPECT_EQ(c, std::vector<float>(9, 0));
}

TEST(Reference, NoProductScalesCOrLeavesIt) {
  const std::int32_t n = 2, none = 0, one = 1;
  const double alpha = INFINITY, beta = 3, keep = 1;
  std::vector<double> c{1, 2, 3, 4};
  dgemm_("N", "N", &n, &n, &none, &alpha, nullptr, &n, nullptr, &one, &beta, c.data(), &n);
  EXPECT_EQ(c, (std::vector<double>{3, 6, 9, 12}));
  dgemm_("N", "N", &n, &n, &none, &alpha, nullptr, &n, nullptr, &one, &keep, c.data(), &n);
  EXPECT_EQ(c, (std::vector<double>{3, 6, 9, 12}));
  dgemm_("N", "N", &none, &n, &n, &alpha, nullptr, &one, nullptr, &n, &beta, nullptr, &one);  // M = 0: nothing is looked at
}

TEST(Reference, NanInAGoesThroughAndNanInCDoesNotWithBetaZero) {
  std::vector<double> a{NAN, 1, 1, 1}, b{1, 0, 0, 1}, c{NAN, NAN, NAN, NAN};
  cblas_dgemm(by_rows, plain, plain, 2, 2, 2, 1, a.data(), 2, b.data(), 2, 0, c.data(), 2);
  EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1]));
  EXPECT_EQ(c[2], 1);
  EXPECT_EQ(c[3], 1);
  cblas_dgemm_64(by_rows, plain, plain, 2, 2, 2, 1, b.data(), 2, b.data(), 2, 0, c.data(), 2);
  EXPECT_EQ(c, b);
}

struct Mistake {
  char trans_a, trans_b;
  std::int32_t m, n, k, lda, ldb, ldc;
  int argument;
};

TEST(Errors, FortranArgumentsByTheReferencesNumbers) {
  const Mistake mistakes[] = {{'X', 'N', 2, 2, 2, 2, 2, 2, 1},  {'N', 'X', 2, 2, 2, 2, 2, 2, 2},  {'N', 'N', -1, 2, 2, 2, 2, 2, 3},
                              {'N', 'N', 2, -1, 2, 2, 2, 2, 4}, {'N', 'N', 2, 2, -1, 2, 2, 2, 5}, {'N', 'N', 3, 2, 2, 2, 2, 3, 8},
                              {'T', 'N', 2, 2, 3, 2, 3, 2, 8},  {'N', 'N', 2, 2, 3, 2, 2, 2, 10}, {'N', 'T', 2, 3, 2, 2, 2, 2, 10},
                              {'N', 'N', 3, 2, 2, 3, 2, 2, 13}, {'N', 'N', 0, 0, 0, 0, 1, 1, 8}};
  for (const Mistake& x : mistakes) {
    float a[16] = {}, b[16] = {}, c[16];
    std::fill(c, c + 16, 7.f);
    const float one = 1, zero = 0;
    blamed_argument = 0;
    sgemm_(&x.trans_a, &x.trans_b, &x.m, &x.n, &x.k, &one, a, &x.lda, b, &x.ldb, &zero, c, &x.ldc);
    EXPECT_EQ(blamed_argument, x.argument);
    EXPECT_EQ(blamed_routine, "SGEMM ");
    for (const float v : c) EXPECT_EQ(v, 7.f);
  }
}

TEST(Errors, CblasArgumentsAsItsHandlerExpectsThem) {
  double x[16] = {};
  const auto blamed = [&](int layout, int trans_a, int trans_b, int m, int n, int k, int lda, int ldb, int ldc) {
    blamed_argument = 0;
    cblas_dgemm(layout, trans_a, trans_b, m, n, k, 1, x, lda, x, ldb, 0, x, ldc);
    EXPECT_EQ(blamed_routine, "cblas_dgemm");
    return blamed_argument;
  };
  EXPECT_EQ(blamed(7, plain, plain, 2, 2, 2, 2, 2, 2), 1);
  EXPECT_EQ(blamed(by_columns, 7, plain, 2, 2, 2, 2, 2, 2), 2);
  EXPECT_EQ(blamed(by_columns, plain, 7, 2, 2, 2, 2, 2, 2), 3);
  EXPECT_EQ(blamed(by_columns, plain, plain, -1, 2, 2, 2, 2, 2), 4);
  EXPECT_EQ(blamed(by_columns, plain, plain, 3, 2, 2, 2, 2, 3), 9);
  EXPECT_EQ(blamed(by_columns, plain, plain, 2, 2, 3, 2, 2, 2), 11);
  EXPECT_EQ(blamed(by_columns, plain, plain, 3, 2, 2, 3, 2, 2), 14);
  EXPECT_EQ(RowMajorStrg, 0);
  // The handler of the reference exchanges the numbers of a row-major call back: it is given those of the exchanged product.
  EXPECT_EQ(blamed(by_rows, plain, plain, -1, 2, 2, 2, 2, 2), 5);
  EXPECT_EQ(blamed(by_rows, plain, plain, 2, 2, 3, 2, 2, 2), 11);
  EXPECT_EQ(RowMajorStrg, 1);
}

}  // namespace
