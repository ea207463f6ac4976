// Runs one kernel on one problem, straight through the runtime: no planner, no cache, no memory pool. What is wrong here is the
// kernel's (or its family's) fault. Operands end, or begin, at a page that must not be touched, and gaps hold values that show.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "gemm_args.hpp"
#include "kernel.hpp"
#include "program.hpp"
#include "sycl.hpp"
#include "sycl_mat/device.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define SYCL_MAT_GUARD_PAGES
#endif

namespace sycl_mat::harness {

// ---- element types on the host ----------------------------------------------------------------------------------------------------
inline float half_to_float(std::uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const float sign = h & 0x8000 ? -1.f : 1.f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024.f + float(mantissa), exponent - 25) : std::ldexp(float(mantissa), -24));
}
inline std::uint16_t float_to_half(float x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const float y = std::fabs(x);
  if (std::isnan(x)) return 0x7e00;
  if (y >= 65520.f) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(y, &exponent);
  const int step = std::max(exponent - 11, -24);  // of the last bit
  const auto units = std::nearbyint(std::ldexp(y, -step));
  const float rounded = std::ldexp(float(units), step);
  if (rounded < std::ldexp(1.f, -14)) return std::uint16_t(sign | int(std::ldexp(rounded, 24)));
  std::frexp(rounded, &exponent);
  return std::uint16_t(sign | (exponent + 14) << 10 | (int(std::ldexp(rounded, 11 - exponent)) & 1023));
}
inline float bfloat_to_float(std::uint16_t b) {
  const std::uint32_t bits = std::uint32_t(b) << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline std::uint16_t float_to_bfloat(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if (std::isnan(x)) return 0x7fc0;
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline void put(void* at, DType type, double x) {
  switch (type) {
    case DType::float32: {
      const float v = float(x);
      std::memcpy(at, &v, 4);
      break;
    }
    case DType::float64:
      std::memcpy(at, &x, 8);
      break;
    case DType::float16: {
      const auto v = float_to_half(float(x));
      std::memcpy(at, &v, 2);
      break;
    }
    case DType::bfloat16: {
      const auto v = float_to_bfloat(float(x));
      std::memcpy(at, &v, 2);
      break;
    }
    case DType::int8: {
      const auto v = std::int8_t(x);
      std::memcpy(at, &v, 1);
      break;
    }
    case DType::int32: {
      const auto v = std::int32_t(x);
      std::memcpy(at, &v, 4);
      break;
    }
  }
}
inline double get(const void* at, DType type) {
  switch (type) {
    case DType::float32: {
      float v;
      std::memcpy(&v, at, 4);
      return v;
    }
    case DType::float64: {
      double v;
      std::memcpy(&v, at, 8);
      return v;
    }
    case DType::float16: {
      std::uint16_t v;
      std::memcpy(&v, at, 2);
      return half_to_float(v);
    }
    case DType::bfloat16: {
      std::uint16_t v;
      std::memcpy(&v, at, 2);
      return bfloat_to_float(v);
    }
    case DType::int8: {
      std::int8_t v;
      std::memcpy(&v, at, 1);
      return v;
    }
    case DType::int32: {
      std::int32_t v;
      std::memcpy(&v, at, 4);
      return v;
    }
  }
  return 0;
}
inline DType accumulator_of(DType t) { return t == DType::float64 ? t : t == DType::int8 ? DType::int32 : DType::float32; }
inline DType out_of(DType t) { return t == DType::int8 ? DType::int32 : t; }
inline double unit_roundoff(DType t) {
  return t == DType::float64 ? 0x1p-53 : t == DType::float32 ? 0x1p-24 : t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : 0;
}

// ---- memory -----------------------------------------------------------------------------------------------------------------------
/// Bytes that the device reads and writes, with forbidden pages (where the device reads system memory) or a margin around them.
class Guarded {
 public:
  Guarded(sycl::queue& queue, std::size_t bytes, bool at_end) : queue_(queue) {
#ifdef SYCL_MAT_GUARD_PAGES
    if (queue.get_device().has(sycl::aspect::usm_system_allocations)) {
      const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE)), inner = (bytes + page - 1) / page * page;
      mapped_ = inner + 2 * page;
      base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      if (base_ == MAP_FAILED) throw std::bad_alloc();
      if (inner) mprotect(base_ + page, inner, PROT_READ | PROT_WRITE);
      data_ = base_ + page + (at_end ? inner - bytes : 0);
      return;
    }
#endif
    base_ = static_cast<char*>(sycl::malloc_shared(bytes + 2 * margin, queue));
    data_ = base_ + margin;
  }
  ~Guarded() {
#ifdef SYCL_MAT_GUARD_PAGES
    if (mapped_) {
      munmap(base_, mapped_);
      return;
    }
#endif
    sycl::free(base_, queue_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data() const { return data_; }

 private:
  static constexpr std::size_t margin = 4096;
  sycl::queue& queue_;
  char* base_ = nullptr;
  char* data_ = nullptr;
  std::size_t mapped_ = 0;
};

// ---- problems ---------------------------------------------------------------------------------------------------------------------
struct Case {
  index_t m = 0, n = 0, k = 0;
  DType dtype = DType::float32;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::none;
  Activation activation = Activation::none;
  index_t batch_outer = 1, batch_inner = 1;
  index_t gap = 0;           ///< elements between one line of a matrix and the next
  bool backwards = false;    ///< negative leading dimensions
  bool integers = false;     ///< small integers: the result must be exact
  bool broadcast_a = false;  ///< all products of the stack share A
  bool padded = false;       ///< A's and B's lines may be read up to the gap's end
  unsigned seed = 1;
  Precision precision = Precision::automatic;

  std::string text() const {
    std::ostringstream s;
    s << m << "x" << n << "x" << k << " " << name_of(dtype) << (trans_a ? " A^T" : "") << (trans_b ? " B^T" : "") << " alpha " << alpha
      << " beta " << beta << " bias " << int(bias) << " activation " << int(activation) << " batch " << batch_outer << "x" << batch_inner
      << " gap " << gap << (backwards ? " backwards" : "") << (broadcast_a ? " broadcast" : "") << (padded ? " padded" : "");
    return s.str();
  }
};

/// A stack of matrices in guarded memory: logical element (i, j) of matrix g.
class Stack {
 public:
  Stack(sycl::queue& queue, DType type, index_t rows, index_t cols, bool transposed, index_t gap, bool backwards, index_t outer,
        index_t inner, bool at_end, bool padded = false)
      : type_(type),
        lines_(transposed ? cols : rows),
        length_(transposed ? rows : cols),
        ld_(length_ + gap),
        matrix_(lines_ * ld_),
        elements_(std::max<index_t>(outer * inner * matrix_ - (padded ? 0 : gap), 0)),
        memory_(queue, std::size_t(elements_ * size_of(type)), at_end) {
    for (index_t e = 0; e < elements_; ++e) put(at(e), type, canary());
    operand.transposed = transposed;
    operand.padded = padded;
    operand.ld = backwards ? -ld_ : ld_;
    operand.data = at(backwards && lines_ > 0 ? (lines_ - 1) * ld_ : 0);
    operand.inner = matrix_;
    operand.outer = matrix_ * inner;
    backwards_ = backwards;
  }
  double canary() const { return type_ == DType::int8 ? 111 : type_ == DType::int32 ? 123456789 : NAN; }
  char* element(index_t g, index_t i, index_t j) const {
    index_t line = operand.transposed ? j : i;
    const index_t place = operand.transposed ? i : j;
    if (backwards_) line = lines_ - 1 - line;
    return at(g * matrix_ + line * ld_ + place);
  }
  /// Elements between the lines that were written over.
  int damaged() const {
    int count = 0;
    for (index_t e = 0; e < elements_; ++e) {
      if (e % ld_ < length_) continue;
      const double x = get(at(e), type_);
      count += std::isnan(canary()) ? !std::isnan(x) : x != canary();
    }
    return count;
  }
  Operand operand;

 private:
  char* at(index_t e) const { return memory_.data() + e * size_of(type_); }
  DType type_;
  index_t lines_, length_, ld_, matrix_, elements_;
  bool backwards_ = false;
  Guarded memory_;
};

inline double activate(double x, Activation a) {
  switch (a) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

class Harness {
 public:
  Harness() : queue(sycl::property::queue::in_order{}), info(describe(queue.get_device())) {}
  sycl::queue queue;
  DeviceInfo info;
  std::string prefix;  ///< text before every source

  sycl::kernel build(const Plan& plan) {
    namespace syclex = sycl::ext::oneapi::experimental;
    const auto key = std::tuple(prefix, plan.kernel->name, plan.constants);
    if (const auto found = built_.find(key); found != built_.end()) return found->second;
    const std::string source = prefix + render(*plan.kernel, plan.constants);
    std::string log;
    try {
      auto sources = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl, source);
      auto bundle = syclex::build(sources, syclex::properties{syclex::save_log{&log}});
      return built_.emplace(key, bundle.ext_oneapi_get_kernel(std::string(plan.kernel->name))).first->second;
    } catch (const sycl::exception& e) {
      throw std::runtime_error(std::string(e.what()) + "\n" + log);
    }
  }

  void launch(const Plan& plan, const Problem& p, void* scratch) {
    switch (p.accumulator) {
      case DType::float64:
        launch_as<double>(plan, p, scratch);
        break;
      case DType::int32:
        launch_as<int>(plan, p, scratch);
        break;
      default:
        launch_as<float>(plan, p, scratch);
    }
  }

  /// Runs the case and compares every element with float64; adds a failure for each thing that is wrong.
  void check(std::string_view kernel_name, const Params& params, const Case& c, bool at_end = true) {
    SCOPED_TRACE(std::string(kernel_name) + " " + c.text() + (at_end ? "" : " at page begin"));
    const Kernel& kernel = find_kernel(kernel_name);
    const index_t batch = c.batch_outer * c.batch_inner;
    const DType acc = accumulator_of(c.dtype), out = out_of(c.dtype);
    Stack a(queue, c.dtype, c.m, c.k, c.trans_a, c.gap, c.backwards, c.broadcast_a ? 1 : c.batch_outer, c.broadcast_a ? 1 : c.batch_inner,
            at_end, c.padded);
    Stack b(queue, c.dtype, c.k, c.n, c.trans_b, c.gap, c.backwards, c.batch_outer, c.batch_inner, at_end, c.padded);
    Stack d(queue, out, c.m, c.n, false, c.gap, c.backwards, c.batch_outer, c.batch_inner, at_end);
    Stack old(queue, out, c.m, c.n, false, c.gap, c.backwards, c.batch_outer, c.batch_inner, at_end);
    if (c.broadcast_a) a.operand.inner = a.operand.outer = 0;
    const index_t bias_length = c.bias == BiasAxis::column ? c.n : c.bias == BiasAxis::row ? c.m : 0;
    Guarded bias(queue, std::size_t(bias_length * size_of(acc)), at_end);

    std::mt19937 random(c.seed);
    const bool whole = c.integers || c.dtype == DType::int8;
    std::uniform_int_distribution<int> integer(-3, 3);
    std::uniform_real_distribution<double> real(-1, 1);
    const auto number = [&] { return whole ? double(integer(random)) : real(random); };
    for (index_t g = 0; g < (c.broadcast_a ? 1 : batch); ++g)
      for (index_t i = 0; i < c.m; ++i)
        for (index_t p = 0; p < c.k; ++p) put(a.element(g, i, p), c.dtype, number());
    for (index_t g = 0; g < batch; ++g) {
      for (index_t p = 0; p < c.k; ++p)
        for (index_t j = 0; j < c.n; ++j) put(b.element(g, p, j), c.dtype, number());
      if (c.beta != 0)
        for (index_t i = 0; i < c.m; ++i)
          for (index_t j = 0; j < c.n; ++j) put(old.element(g, i, j), out, number());
    }
    for (index_t i = 0; i < bias_length; ++i) put(bias.data() + i * size_of(acc), acc, number());

    Problem p;
    p.m = c.m, p.n = c.n, p.k = c.k, p.batch_outer = c.batch_outer, p.batch_inner = c.batch_inner;
    p.dtype = c.dtype, p.accumulator = acc, p.out = out, p.precision = c.precision;
    p.a = a.operand, p.b = b.operand, p.d = d.operand, p.c = old.operand;
    if (c.beta == 0) p.c.data = nullptr;
    p.epilogue = {c.alpha, c.beta, bias_length ? bias.data() : nullptr, c.bias, c.activation};
    if (const std::string reason = kernel.why_not(p, info); !reason.empty()) GTEST_SKIP() << reason;
    const Plan plan = kernel.plan(kernel, p, info, std::holds_alternative<std::monostate>(params) ? kernel.defaults(p, info) : params);
    Guarded scratch(queue, plan.scratch_bytes, true);
    std::memset(scratch.data(), 0, plan.counter_bytes);
    launch(plan, p, scratch.data());
    queue.wait_and_throw();

    for (std::size_t i = 0; i < plan.counter_bytes; ++i) ASSERT_EQ(scratch.data()[i], 0) << "counter byte " << i << " was not left zero";
    EXPECT_EQ(d.damaged(), 0) << "elements between the rows of D were written";
    int wrong = 0;
    for (index_t g = 0; g < batch; ++g)
      for (index_t i = 0; i < c.m; ++i)
        for (index_t j = 0; j < c.n; ++j) {
          double sum = 0, size = 0;
          for (index_t q = 0; q < c.k; ++q) {
            const double x = get(a.element(c.broadcast_a ? 0 : g, i, q), c.dtype) * get(b.element(g, q, j), c.dtype);
            sum += x, size += std::fabs(x);
          }
          double x = c.alpha * sum, scale = std::fabs(c.alpha) * size;
          if (c.beta != 0) x += c.beta * get(old.element(g, i, j), out), scale += std::fabs(c.beta * get(old.element(g, i, j), out));
          if (bias_length) {
            const double added = get(bias.data() + (c.bias == BiasAxis::column ? j : i) * size_of(acc), acc);
            x += added, scale += std::fabs(added);
          }
          const double expected = activate(x, c.activation), result = get(d.element(g, i, j), out);
          // k roundings of the accumulator, a few of the epilogue (functions are good to some units), one of the stored type.
          const double epilogue = c.activation > Activation::relu ? 16 : 4;
          double bound = 1.2 * unit_roundoff(acc) * ((double(c.k) + epilogue) * scale + epilogue * std::fabs(expected)) +
                         unit_roundoff(out) * std::fabs(expected);
          if (out == DType::float16) bound += 0x1p-25;
          if (c.integers && c.activation <= Activation::relu) bound = unit_roundoff(out) * std::fabs(expected) * (out == acc ? 0 : 1);
          if (!(std::fabs(result - expected) <= bound) && wrong++ < 3)
            ADD_FAILURE() << "matrix " << g << " (" << i << ", " << j << "): " << result << " instead of " << expected << ", bound "
                          << bound;
        }
    EXPECT_EQ(wrong, 0);
  }

 private:
  template <class Accumulator>
  void launch_as(const Plan& plan, const Problem& p, void* scratch) {
    GemmArgs<Accumulator> g{};
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.lda = p.a.ld, g.ldb = p.b.ld, g.ldc = p.c.ld, g.ldd = p.d.ld;
    g.batch = p.batch(), g.batch_inner = p.batch_inner;
    g.a_inner = p.a.inner, g.a_outer = p.a.outer, g.b_inner = p.b.inner, g.b_outer = p.b.outer;
    g.c_inner = p.c.inner, g.c_outer = p.c.outer, g.d_inner = p.d.inner, g.d_outer = p.d.outer;
    g.split_m = plan.split_m, g.split_n = plan.split_n, g.split_k = plan.split_k, g.scratch_stride = plan.scratch_stride;
    g.alpha = Accumulator(p.epilogue.alpha), g.beta = Accumulator(p.epilogue.beta);
    const sycl::kernel kernel = build(plan);
    const auto& [global, local] = plan.range;
    queue.submit([&](sycl::handler& h) {
      h.set_args(p.a.data, p.b.data, p.c.data, p.d.data, const_cast<void*>(p.epilogue.bias), scratch);
      if (info.backend == "cuda") {  // in pieces of 16 bytes: see ENTRY in kernels/device.hpp
        struct Word {
          std::uint64_t low, high;
        } words[13]{};
        static_assert(sizeof(g) <= sizeof(words));
        std::memcpy(words, &g, sizeof(g));
        for (int i = 0; i < 13; ++i) h.set_arg(6 + i, words[i]);
      } else {
        h.set_arg(6, g);
      }
      h.parallel_for(sycl::nd_range<3>{{global[0], global[1], global[2]}, {local[0], local[1], local[2]}}, kernel);
    });
  }
  std::map<std::tuple<std::string, std::string_view, Constants>, sycl::kernel> built_;
};

inline Harness& harness() {
  static Harness* const one = new Harness;  // never destroyed: bundles must not outlive their context at exit
  return *one;
}

/// Zero times anything but a number is no number; and what lies beyond an edge, or scratch memory that was never written, must not get in.
/// At least 3 rows and 4 columns, and k ≥ 5; float32, with the kernel's defaults.
inline void check_nan_and_infinity(std::string_view name, index_t m, index_t n, index_t k, bool trans_a, bool trans_b) {
  Harness& h = harness();
  Stack a(h.queue, DType::float32, m, k, trans_a, 0, false, 1, 1, true), b(h.queue, DType::float32, k, n, trans_b, 0, false, 1, 1, true);
  Stack d(h.queue, DType::float32, m, n, false, 0, false, 1, 1, true);
  for (index_t p = 0; p < k; ++p) {
    for (index_t i = 0; i < m; ++i) put(a.element(0, i, p), DType::float32, 1);
    for (index_t j = 0; j < n; ++j) put(b.element(0, p, j), DType::float32, j == 3 ? 0 : 1);
  }
  put(a.element(0, 1, k - 1), DType::float32, INFINITY);
  put(a.element(0, 2, 4), DType::float32, NAN);
  Problem p;
  p.m = m, p.n = n, p.k = k;
  p.a = a.operand, p.b = b.operand, p.d = d.operand;
  const Kernel& kernel = find_kernel(name);
  const Plan plan = kernel.plan(kernel, p, h.info, kernel.defaults(p, h.info));
  Guarded scratch(h.queue, plan.scratch_bytes, true);
  std::memset(scratch.data(), 0xff, plan.scratch_bytes);  // NaN
  std::memset(scratch.data(), 0, plan.counter_bytes);
  h.launch(plan, p, scratch.data());
  h.queue.wait_and_throw();
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      const double x = get(d.element(0, i, j), DType::float32);
      if (i == 2 || (i == 1 && j == 3))
        ASSERT_TRUE(std::isnan(x)) << name << " " << trans_a << trans_b << " " << i << ", " << j;
      else
        ASSERT_EQ(x, i == 1 ? INFINITY : j == 3 ? 0 : double(k)) << name << " " << trans_a << trans_b << " " << i << ", " << j;
    }
}

}  // namespace sycl_mat::harness
