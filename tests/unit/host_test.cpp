// The host path: every instruction set of this machine, every dtype, layout and write-back, against plain loops; and the narrow types'
// bits.
#include "backends/host.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backends/host_isa.hpp"
#include "backends/host_team.hpp"
#include "backends/narrow_types.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {
namespace {

std::vector<const host::Isa*> instruction_sets() {
  std::vector<const host::Isa*> sets{&host::baseline_isa};
#ifdef SYCL_MAT_HOST_X86
  for (const host::Isa* isa : {&host::avx2_isa, &host::avx512_isa})
    if (isa->available()) sets.push_back(isa);
#endif
  return sets;
}

template <class T>
void check_product(void (*product)(const host::Product<T>&), index_t m, index_t n, index_t k, bool a_transposed) {
  std::mt19937 random(static_cast<unsigned>(m * 10007 + n * 101 + k));
  std::uniform_int_distribution<int> integer(-4, 4);
  std::vector<T> a(std::size_t(m * k)), b(std::size_t(k * n)), d(std::size_t(m * n + 2), T(77));
  for (T& x : a) x = T(integer(random));
  for (T& x : b) x = T(integer(random));
  // Exactly as much memory as the matrices have: address sanitizers see one element too many.
  product({m, n, k, a.data(), a_transposed ? 1 : k, a_transposed ? m : 1, b.data(), n, d.data() + 1, n});
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      T sum = 0;
      for (index_t q = 0; q < k; ++q) sum += a[std::size_t(a_transposed ? i + q * m : i * k + q)] * b[std::size_t(q * n + j)];
      ASSERT_EQ(d[std::size_t(1 + i * n + j)], sum) << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
  EXPECT_EQ(d.front(), T(77));
  EXPECT_EQ(d.back(), T(77));
}

TEST(Host, EveryInstructionSetEverySmallShape) {
  for (const host::Isa* isa : instruction_sets()) {
    SCOPED_TRACE(isa->name);
    for (index_t m : {1, 2, 3, 5, 6, 7, 8, 9, 13, 17, 24})
      for (index_t n = 1; n < 140; n += n < 40 ? 1 : 7)
        for (index_t k : {0, 1, 3, 17}) {
          check_product<float>(isa->product_f32, m, n, k, false);
          check_product<double>(isa->product_f64, m, n, k, true);
          check_product<std::int32_t>(isa->product_i32, m, n, k, false);
        }
  }
}

template <class T>
void check_dots(void (*dots)(const host::Dots<T>&), index_t count, index_t few, index_t k) {
  const index_t row_ld = k + 3, other_ld = k + 1, d_row = few + 2;
  // Ended by a NaN each row: what lies behind K must not be read into a sum.
  std::vector<T> rows(std::size_t(count * row_ld), T(NAN)), others(std::size_t(few * other_ld), T(NAN)), d(std::size_t(count * d_row), 77);
  for (index_t i = 0; i < count; ++i)
    for (index_t q = 0; q < k; ++q) rows[std::size_t(i * row_ld + q)] = T((i * 5 + q * 3) % 7 - 3);
  for (index_t f = 0; f < few; ++f)
    for (index_t q = 0; q < k; ++q) others[std::size_t(f * other_ld + q)] = T((f * 3 + q * 5) % 11 - 5);
  dots({count, few, k, rows.data(), row_ld, others.data(), other_ld, d.data() + 1, d_row, 1});
  for (index_t i = 0; i < count; ++i) {
    for (index_t f = 0; f < few; ++f) {
      T sum = 0;
      for (index_t q = 0; q < k; ++q) sum += rows[std::size_t(i * row_ld + q)] * others[std::size_t(f * other_ld + q)];
      ASSERT_EQ(d[std::size_t(i * d_row + 1 + f)], sum) << count << " rows, " << few << ", " << k << " at " << i << ", " << f;
    }
    ASSERT_EQ(d[std::size_t(i * d_row)], 77);
  }
}

TEST(Host, DotsOfEveryInstructionSet) {
  for (const host::Isa* isa : instruction_sets()) {
    SCOPED_TRACE(isa->name);
    for (index_t count : {1, 3, 4, 5, 13})
      for (index_t few = 1; few <= most_dots; ++few)
        for (index_t k : {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 16389}) {
          check_dots<float>(isa->dots_f32, count, few, k);
          check_dots<double>(isa->dots_f64, count, few, k);
        }
  }
}

template <class T>
void check_rows(void (*rows)(const host::Rows<T>&), index_t count, index_t few, index_t k, bool along_k) {
  std::vector<T> matrix(std::size_t(k * count)), x(std::size_t(few * k)), sums(std::size_t(few * count) + 1, T(77));
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = T(int(i * 7 % 5) - 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(int(i * 11 % 7) - 3);
  const index_t x_few = along_k ? k : 1, x_step = along_k ? 1 : few;
  rows({count, few, k, matrix.data(), count, x.data(), x_few, x_step, sums.data(), count});
  for (index_t f = 0; f < few; ++f)
    for (index_t c = 0; c < count; ++c) {
      T sum = 0;
      for (index_t q = 0; q < k; ++q) sum += x[std::size_t(f * x_few + q * x_step)] * matrix[std::size_t(q * count + c)];
      ASSERT_EQ(sums[std::size_t(f * count + c)], sum) << count << " results, " << few << ", " << k << " at " << f << ", " << c;
    }
  EXPECT_EQ(sums.back(), T(77));
}

TEST(Host, ScaledRowsOfEveryInstructionSet) {
  for (const host::Isa* isa : instruction_sets()) {
    SCOPED_TRACE(isa->name);
    for (const index_t count : {1, 3, 8, 15, 16, 17, 31, 64, 65, 100, 129, 2100})
      for (index_t few = 1; few <= 2; ++few)
        for (const index_t k : {1, 2, 7, 8, 9, 19}) {
          check_rows<float>(isa->rows_f32, count, few, k, k % 2);
          check_rows<double>(isa->rows_f64, count, few, k, few % 2);
        }
  }
}

TEST(Host, TransposesAnyShape) {
  for (const host::Isa* isa : instruction_sets())
    for (index_t rows : {1, 3, 4, 8, 15, 16, 17, 33})
      for (index_t cols : {1, 2, 7, 8, 16, 31, 40}) {
        std::vector<float> from(std::size_t(rows * cols)), to(std::size_t(rows * cols) + 1, -1);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = float(i);
        std::vector<double> from64(from.begin(), from.end()), to64(std::size_t(rows * cols) + 1, -1);
        isa->transpose_f32(from.data(), cols, rows, cols, to.data(), rows);
        isa->transpose_f64(from64.data(), cols, rows, cols, to64.data(), rows);
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols; ++c) {
            ASSERT_EQ(to[std::size_t(c * rows + r)], from[std::size_t(r * cols + c)]) << isa->name;
            ASSERT_EQ(to64[std::size_t(c * rows + r)], from64[std::size_t(r * cols + c)]) << isa->name;
          }
        EXPECT_EQ(to.back(), -1);
        EXPECT_EQ(to64.back(), -1);
      }
}

void put(void* data, DType type, index_t i, double x) {
  switch (type) {
    case DType::float32:
      static_cast<float*>(data)[i] = float(x);
      break;
    case DType::float64:
      static_cast<double*>(data)[i] = x;
      break;
    case DType::float16:
      static_cast<float16_bits*>(data)[i] = to_float16(float(x));
      break;
    case DType::bfloat16:
      static_cast<bfloat16_bits*>(data)[i] = to_bfloat16(float(x));
      break;
    case DType::int8:
      static_cast<std::int8_t*>(data)[i] = std::int8_t(x);
      break;
    case DType::int32:
      static_cast<std::int32_t*>(data)[i] = std::int32_t(x);
      break;
  }
}

/// Small integers, so that both paths must give the same bits whatever the order of their sums.
TEST(Host, RunIsTheReference) {
  std::mt19937 random(5);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8})
    for (int round = 0; round < 300; ++round) {
      Problem p;
      p.dtype = type;
      p.accumulator = type == DType::float64 ? type : type == DType::int8 ? DType::int32 : DType::float32;
      p.out = type == DType::int8 ? DType::int32 : type;
      p.m = between(1, 12), p.n = between(1, 40), p.k = between(0, 12);
      if (round % 10 == 0) p.m = between(30, 90), p.n = between(30, 90), p.k = between(30, 90);  // the team's
      p.batch_outer = between(1, 2), p.batch_inner = between(1, 3);
      p.a.transposed = between(0, 1), p.b.transposed = between(0, 1);
      const index_t a_lines = p.a.transposed ? p.k : p.m, b_lines = p.b.transposed ? p.n : p.k;
      p.a.ld = p.m + p.k - a_lines + between(0, 2), p.b.ld = p.n + p.k - b_lines + between(0, 2), p.c.ld = p.d.ld = p.n + between(0, 2);
      p.a.inner = a_lines * p.a.ld, p.b.inner = between(0, 1) * b_lines * p.b.ld, p.c.inner = p.d.inner = p.m * p.d.ld;
      p.a.outer = p.a.inner * p.batch_inner, p.b.outer = p.b.inner * p.batch_inner, p.c.outer = p.d.outer = p.d.inner * p.batch_inner;
      const auto fill = [&](index_t elements, DType t) {
        std::vector<double> memory(std::size_t(elements) + 1);
        for (index_t i = 0; i < elements; ++i) put(memory.data(), t, i, between(-2, 2));
        return memory;
      };
      auto a = fill(a_lines * p.a.ld * p.batch(), type), b = fill(b_lines * p.b.ld * p.batch(), type),
           d = fill(p.d.inner * p.batch(), p.out);
      auto bias = fill(p.m + p.n, p.accumulator), expected = d;
      p.a.data = a.data(), p.b.data = b.data();
      if (between(0, 1)) {
        p.epilogue.alpha = between(-2, 2), p.epilogue.beta = between(-1, 2);
        p.epilogue.bias_axis = static_cast<BiasAxis>(between(0, 2)), p.epilogue.bias = bias.data();
        p.epilogue.activation = between(0, 1) ? Activation::relu : Activation::none;
      }
      p.c.data = p.d.data = d.data();
      host::run(p);
      p.c.data = p.d.data = expected.data();
      host::reference(p);
      ASSERT_EQ(std::memcmp(d.data(), expected.data(), d.size() * sizeof(double)), 0)
          << name_of(type) << " " << p.m << "x" << p.n << "x" << p.k << " round " << round;
    }
}

TEST(Host, NaNInCWithBetaZeroDoesNotMatter) {
  float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, d[4] = {NAN, NAN, NAN, NAN};
  Problem p;
  p.m = p.n = p.k = 2;
  p.a = {a, 2, false, 0, 0}, p.b = {b, 2, false, 0, 0}, p.d = p.c = {d, 2, false, 0, 0};
  p.epilogue.alpha = 2;
  host::run(p);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(d[i], 2 * a[i]);
}

TEST(Host, PrefersOnlyWhatIsTiny) {
  DeviceInfo cpu;
  cpu.type = "cpu";
  cpu.compute_units = 2;
  Problem p;
  p.m = p.n = p.k = 16;
  EXPECT_TRUE(host::preferred(p, cpu));
  p.batch_outer = 10000;
  EXPECT_TRUE(host::preferred(p, cpu));
  cpu.compute_units = 64;  // far more than the team has
  EXPECT_FALSE(host::preferred(p, cpu));
  p.batch_outer = 1;
  EXPECT_TRUE(host::preferred(p, cpu));
  p.m = p.n = p.k = 512;
  EXPECT_FALSE(host::preferred(p, cpu));
  p.m = p.n = p.k = 4;
  cpu.type = "gpu";
  EXPECT_FALSE(host::preferred(p, cpu));
}

void expect_reference(index_t m, index_t n, index_t k, index_t batch, bool a_transposed, bool b_transposed, bool epilogue) {
  std::vector<float> a(std::size_t(m * k * batch)), b(std::size_t(k * n * batch)), d(std::size_t(m * n * batch), 1),
      bias(std::size_t(n), 2);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(int(i * 7 % 5) - 2);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(int(i * 11 % 7) - 3);
  auto expected = d;
  Problem p;
  p.m = m, p.n = n, p.k = k, p.batch_inner = batch;
  p.a = {a.data(), a_transposed ? m : k, a_transposed, m * k, 0};
  p.b = {b.data(), b_transposed ? k : n, b_transposed, k * n, 0};
  p.c = p.d = {d.data(), n, false, m * n, 0};
  if (epilogue) p.epilogue = {2, -1, bias.data(), BiasAxis::column, Activation::relu};
  host::run(p);
  p.c.data = p.d.data = expected.data();
  host::reference(p);
  EXPECT_TRUE(d == expected) << m << "x" << n << "x" << k << " batch " << batch;
}

/// Past the caches or not: the same bits, wherever in a cache line the results begin, and nothing beside them.
template <class T>
void check_streams(const host::Isa& isa, void (*product)(const host::Product<T>&)) {
  for (const index_t n : {64 / sizeof(T), 128 / sizeof(T), 192 / sizeof(T), 256 / sizeof(T)})
    for (const index_t m : {1, 2, 5, 6, 7, 8, 9, 13, 16, 31})
      for (const index_t count : {1, 2, 5}) {
        constexpr index_t k = 3;
        std::vector<T> a(std::size_t(count * m * k)), b(std::size_t(count * k * n));
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = T(int(i * 7 % 1009));
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = T(int(i * 11 % 2003));
        for (index_t offset = 0; offset <= 64; offset += 16) {
          const std::size_t around = 64 / sizeof(T), results = std::size_t(count * m * n),
                            behind = around + std::size_t(offset) / sizeof(T);
          std::vector<T> memory[2];
          for (const bool stream : {false, true}) {
            memory[stream].assign(results + 3 * around + 64 / sizeof(T), T(-7));
            T* line = memory[stream].data();
            while (reinterpret_cast<std::uintptr_t>(line) % 64 != 0) ++line;
            host::Product<T> x{m, n, k, a.data(), k, 1, b.data(), n, line + behind, n};
            x.stream = stream, x.count = count, x.a_step = m * k, x.b_step = k * n, x.d_step = m * n;
            product(x);
            isa.finish_streams();
            memory[stream].erase(memory[stream].begin(), memory[stream].begin() + (line - memory[stream].data()));
            memory[stream].resize(behind + results + around);
          }
          ASSERT_TRUE(memory[0] == memory[1]) << count << " of " << m << "x" << n << ", " << offset << " bytes behind a line's begin";
          for (std::size_t i = 0; i < around; ++i) ASSERT_TRUE(memory[1][i] == T(-7) && memory[1][behind + results + i] == T(-7));
        }
      }
}

TEST(Host, StreamsFillLinesFromAnyBegin) {
  for (const host::Isa* isa : instruction_sets()) {
    SCOPED_TRACE(isa->name);
    check_streams<float>(*isa, isa->product_f32);
    check_streams<double>(*isa, isa->product_f64);
    check_streams<std::int32_t>(*isa, isa->product_i32);
  }
}

/// Results beyond the caches' size are stored past them where rows are whole vectors, and beside that in the ordinary way.
TEST(Host, ManyResultsAreStreamed) {
  for (const bool transposed : {false, true}) {
    expect_reference(40, 48, 36, 3400, transposed, transposed, false);
    expect_reference(33, 50, 37, 3500, transposed, transposed, false);
    expect_reference(64, 64, 64, 1400, transposed, transposed, false);
  }
  expect_reference(4099, 4100, 1, 1, false, false, false);
  // Two batch axes, the outer one's matrices at no multiple of 16 bytes.
  constexpr index_t inner = 16000, outer = 2, size = 16, step = inner * size * size + 1;
  const std::vector<float> a(std::size_t(outer * inner * size * 8), 2), b(8 * size, 3);
  std::vector<float> d(std::size_t(outer * step), 7);
  Problem p;
  p.m = p.n = size, p.k = 8, p.batch_inner = inner, p.batch_outer = outer;
  p.a = {const_cast<float*>(a.data()), 8, false, size * 8, inner * size * 8}, p.b = {const_cast<float*>(b.data()), size, false, 0, 0};
  p.c = p.d = {d.data(), size, false, size * size, step};
  host::run(p);
  for (index_t i = 0; i < outer * step; ++i) ASSERT_EQ(d[std::size_t(i)], i % step == step - 1 ? 7 : 48) << i;
}

/// Large enough for the team: rows dealt out, stacks dealt out, transposes and write-back by every member; from two threads at once.
TEST(Host, TeamsGiveTheReference) {
  const auto all = [] {
    for (int round = 0; round < 20; ++round)
      for (const bool transposed : {false, true}) {
        expect_reference(100, 90, 80, 1, transposed, transposed, false);
        expect_reference(61, 130, 75, 2, transposed, transposed, true);
        expect_reference(5, 6, 7, 700, transposed, transposed, round % 2);
        expect_reference(40, 33, 50, 17, transposed, transposed, true);
        for (const index_t few : {1, 3}) {  // dot products
          expect_reference(few, 601, 300, 1, false, true, transposed);
          expect_reference(601, few, 300, 2, false, true, transposed);
        }
        // Scaled rows of a long operand: K in parts.
        expect_reference(2, 1003, 401, 1, transposed, false, round % 2);
        expect_reference(1003, 2, 401, 2, true, transposed, round % 2);
        if (round < 3) expect_reference(1, 20011, 37, 1, transposed, false, round % 2);  // runs of results
      }
  };
  all();
  std::thread other(all);
  all();
  other.join();
  host::set_threads(1);
  all();
  host::set_threads(0);
}

TEST(NarrowTypes, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float16_bits h{static_cast<std::uint16_t>(bits)};
    const bfloat16_bits b{static_cast<std::uint16_t>(bits)};
    const float from_h(h), from_b(b);
    if (std::isnan(from_h)) {
      EXPECT_TRUE(std::isnan(float(to_float16(from_h))));
    } else {
      ASSERT_EQ(to_float16(from_h).bits, bits);
    }
    if (std::isnan(from_b)) {
      EXPECT_TRUE(std::isnan(float(to_bfloat16(from_b))));
    } else {
      ASSERT_EQ(to_bfloat16(from_b).bits, bits);
    }
  }
}

/// In runs of every length, and nothing beyond them.
TEST(NarrowTypes, EveryInstructionSetConvertsAlike) {
  std::vector<float16_bits> halves(0x10000);
  std::vector<bfloat16_bits> bfloats(0x10000);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) halves[bits].bits = bfloats[bits].bits = static_cast<std::uint16_t>(bits);
  std::vector<float> numbers(0x20000);
  std::mt19937 random(11);
  for (std::size_t i = 0; i < numbers.size(); ++i)  // any bits, and numbers about where two 16-bit ones meet
    numbers[i] = i % 2 ? std::bit_cast<float>(std::uint32_t(random()))
                       : std::bit_cast<float>(std::bit_cast<std::uint32_t>(float(halves[i / 2])) + 0x0fff + std::uint32_t(i / 2 % 3));
  const auto same = [](float x, float y) {
    return std::isnan(x) ? std::isnan(y) : std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  for (const host::Isa* isa : instruction_sets()) {
    SCOPED_TRACE(isa->name);
    std::vector<float> wide(0x10000);
    isa->widen_f16(halves.data(), 0x10000, wide.data());
    for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_TRUE(same(wide[i], float(halves[i]))) << i;
    isa->widen_bf16(bfloats.data(), 0x10000, wide.data());
    for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_TRUE(same(wide[i], float(bfloats[i]))) << i;
    std::vector<float16_bits> to_halves(numbers.size());
    std::vector<bfloat16_bits> to_bfloats(numbers.size());
    isa->narrow_f16(numbers.data(), index_t(numbers.size()), to_halves.data());
    isa->narrow_bf16(numbers.data(), index_t(numbers.size()), to_bfloats.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_TRUE(same(float(to_halves[i]), float(to_float16(numbers[i])))) << numbers[i];
      ASSERT_TRUE(same(float(to_bfloats[i]), float(to_bfloat16(numbers[i])))) << numbers[i];
    }
    for (int count = 0; count < 40; ++count) {
      std::vector<std::int8_t> bytes(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) bytes[std::size_t(i)] = std::int8_t(i * 37);
      std::vector<std::int32_t> ints(std::size_t(count) + 1, -7);
      isa->widen_i8(bytes.data(), count, ints.data());
      for (int i = 0; i < count; ++i) ASSERT_EQ(ints[std::size_t(i)], bytes[std::size_t(i)]);
      ASSERT_EQ(ints.back(), -7);
      // Exactly as much memory as there are elements: address sanitizers see one too many.
      const std::vector<float16_bits> some(halves.begin() + 0x3c00, halves.begin() + 0x3c00 + count);
      std::vector<float> to(std::size_t(count) + 1, -7);
      isa->widen_f16(some.data(), count, to.data());
      for (int i = 0; i < count; ++i) ASSERT_EQ(to[std::size_t(i)], float(some[std::size_t(i)]));
      ASSERT_EQ(to.back(), -7);
      std::vector<bfloat16_bits> back(std::size_t(count) + 1, bfloat16_bits{77});
      isa->narrow_bf16(to.data(), count, back.data());
      for (int i = 0; i < count; ++i) ASSERT_EQ(back[std::size_t(i)].bits, to_bfloat16(to[std::size_t(i)]).bits);
      ASSERT_EQ(back.back().bits, 77);
    }
  }
}

TEST(NarrowTypes, RoundToNearestTiesToEven) {
  EXPECT_EQ(to_float16(1.f).bits, 0x3c00);
  EXPECT_EQ(to_float16(1 + 0x1p-11f).bits, 0x3c00);  // half way: to the even one
  EXPECT_EQ(to_float16(1 + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(to_float16(65519.f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.f).bits, 0x7c00);
  EXPECT_EQ(to_float16(0x1p-25f).bits, 0);  // half of the smallest
  EXPECT_EQ(to_float16(0x1.8p-25f).bits, 1);
  EXPECT_EQ(to_float16(-0x1.ffcp-15f).bits, 0x8400);  // rounds up into the normal numbers
  EXPECT_EQ(to_bfloat16(1 + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1 + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_EQ(to_bfloat16(3.4e38f).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(float(to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace sycl_mat
