#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/host.hpp"
#include "launch.hpp"
#include "params_pack.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A number of at most 8 bits as an element of the type.
void store(DType type, void* to, std::size_t at, float value) {
  switch (type) {
    case DType::float64:
      static_cast<double*>(to)[at] = value;
      return;
    case DType::float32:
      static_cast<float*>(to)[at] = value;
      return;
    case DType::int32:
      static_cast<std::int32_t*>(to)[at] = static_cast<std::int32_t>(value);
      return;
    case DType::int8:
      static_cast<std::int8_t*>(to)[at] = static_cast<std::int8_t>(value);
      return;
    case DType::bfloat16: {
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(bits >> 16);
      return;
    }
    case DType::float16: {
      // Normal numbers with few bits only: sign, rebased exponent, the mantissa's top ten bits.
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      const std::uint32_t exponent = bits >> 23 & 0xff;
      const std::uint32_t half = value == 0 ? 0 : (bits >> 16 & 0x8000) | ((exponent - 112) << 10) | (bits >> 13 & 0x3ff);
      static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(half);
      return;
    }
  }
}

std::vector<char> random_integers(DType type, std::size_t count, int largest, std::uint64_t seed) {
  std::vector<char> data(count * static_cast<std::size_t>(size_of(type)));
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i)
    store(type, data.data(), i, static_cast<float>(static_cast<int>(random() % static_cast<std::uint64_t>(2 * largest + 1)) - largest));
  return data;
}

std::size_t elements(index_t rows, index_t cols, index_t batch) {
  return static_cast<std::size_t>(std::max<index_t>(1, rows * cols * batch));
}

/// How many cells of D, which has guard rows around each matrix, are not as expected, where the first is, and how many were not written.
std::string difference(const std::vector<char>& got, const std::vector<char>& expected, const std::vector<char>& before, const Problem& p) {
  const auto size = static_cast<std::size_t>(size_of(p.out));
  const auto same = [&](const std::vector<char>& x, std::size_t cell) {
    return std::equal(got.begin() + cell * size, got.begin() + (cell + 1) * size, x.begin() + cell * size);
  };
  index_t wrong = 0, untouched = 0, first = 0;
  for (std::size_t cell = 0; cell < got.size() / size; ++cell) {
    if (same(expected, cell)) continue;
    if (wrong++ == 0) first = static_cast<index_t>(cell);
    untouched += same(before, cell);
  }
  return std::to_string(wrong) + " cells differ, the first in row " + std::to_string(first / p.d.ld % (p.m + 2) - 1) + ", column " +
         std::to_string(first % p.d.ld) + "; " + std::to_string(untouched) + " of them were not written";
}

}  // namespace

Problem make_problem(const TuneProblem& t) {
  Problem p;
  p.m = t.m;
  p.n = t.n;
  p.k = t.k;
  p.batch_inner = t.batch;
  p.dtype = t.dtype;
  p.accumulator = t.dtype == DType::float64 ? DType::float64 : t.dtype == DType::int8 ? DType::int32 : DType::float32;
  p.out = t.dtype == DType::int8 ? DType::int32 : t.dtype;
  // A vector lies one way only, however it is called: in the form that a product's operands take (view.cpp).
  p.a.transposed = t.transpose_a && t.m > 1 && t.k > 1;
  p.a.ld = p.a.transposed ? t.m : t.k;
  p.b.transposed = t.k > 1 && (t.transpose_b || t.n == 1);
  p.b.ld = p.b.transposed ? t.k : t.n;
  p.d.ld = t.n;
  if (t.batch > 1) {
    p.a.inner = t.m * t.k;
    p.b.inner = t.k * t.n;
    p.d.inner = t.m * t.n;
  }
  return p;
}

Workbench::Workbench(Context::State& context, std::span<const TuneProblem> problems) : context_(context) {
  std::size_t sizes[3] = {1, 1, 1};
  const DType type = problems.front().dtype;
  for (const TuneProblem& p : problems) {
    sizes[0] = std::max(sizes[0], elements(p.m, p.k, p.batch));
    sizes[1] = std::max(sizes[1], elements(p.k, p.n, p.batch));
    sizes[2] = std::max(sizes[2], elements(p.m, p.n, p.batch));
  }
  // One block of numbers, repeated: the values are of no consequence, but zeros would let a GPU run cooler and faster than real data.
  constexpr std::size_t block_elements = 1 << 18;
  // They are multiples of 1/128, so that sums of their products are exact whatever the order: results can be compared bit for bit.
  std::vector<char> block(block_elements * static_cast<std::size_t>(size_of(type)));
  const auto fill = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < block_elements; ++i) {
      const float value = static_cast<float>(static_cast<int>(random() % 255) - 127);
      store(type, block.data(), i, type == DType::int8 ? value : value / 128);
    }
  };
  try {
    for (int operand = 0; operand < 3; ++operand) {
      const DType stored = operand == 2 && type == DType::int8 ? DType::int32 : type;
      const std::size_t bytes = sizes[operand] * static_cast<std::size_t>(size_of(stored));
      operands_[operand] = context.pool.take(bytes + shift(), sycl::usm::alloc::device);
      if (operand == 2) {
        context.queue.memset(data(operand), 0, bytes);
        continue;
      }
      fill(static_cast<std::uint64_t>(operand) + 1);
      for (std::size_t at = 0; at < bytes; at += block.size())
        context.queue.memcpy(static_cast<char*>(data(operand)) + at, block.data(), std::min(block.size(), bytes - at));
      context.wait();  // before the block is filled again
    }
    context.wait();
  } catch (...) {
    for (void* operand : operands_)
      if (operand) context.pool.give_back(operand);
    throw;
  }
}

Workbench::~Workbench() {
  for (void* operand : operands_) context_.pool.give_back(operand);
}

std::size_t Workbench::shift() const { return context_.info.is_cpu() ? 16 : 0; }

void* Workbench::data(int operand) const { return static_cast<char*>(operands_[operand]) + shift(); }

Problem Workbench::problem(const TuneProblem& t) const {
  Problem p = make_problem(t);
  p.a.data = data(0);
  p.b.data = data(1);
  p.d.data = data(2);
  return p;
}

double Workbench::time(const Plan& plan, const Program& program, const Problem& p, int launches) {
  const double start = now();
  for (int i = 0; i < launches; ++i) launch(context_, plan, program, p);
  context_.wait();
  return (now() - start) / launches;
}

int launches_for(double seconds, double one) { return static_cast<int>(std::clamp(std::ceil(seconds / one), 1.0, 1000.0)); }

double least_time(Workbench& bench, const Plan& plan, const Program& program, const Problem& p, double best, int rounds) {
  // The first launch loads the program and warms the caches; alone it only shows the hopeless.
  const double first = bench.time(plan, program, p, 1);
  if (first > 10 * best) return first;
  const double second = bench.time(plan, program, p, 1);
  double least = std::min(first, second);
  if (least > 2 * best) return least;
  constexpr double round_seconds = 2e-3;  // a few hundred launches of the smallest problems, one of the large ones
  for (int round = 0; round < rounds; ++round) {
    least = std::min(least, bench.time(plan, program, p, launches_for(round_seconds, least)));
    if (round >= 1 && least > 1.15 * best) break;
  }
  return least;
}

std::string prove(Context::State& context, const Kernel& kernel, const Params& params, const TuneProblem& like) {
  // Sizes with remainders against the blocks of these constants, a bit more than one block along each axis.
  index_t block_m = 8, block_n = 16, block_k = 8;
  if (const auto* tiled = std::get_if<TiledChoice>(&params)) {
    block_m = tiled->params.tile_m * tiled->params.batch_m;
    block_n = tiled->params.tile_n * tiled->params.batch_n;
    block_k = tiled->params.tile_k * tiled->options.split_k;
  } else if (const auto* pack = std::get_if<PackParams>(&params)) {
    block_m = pack->mr;
    block_n = pack->nv * vector_elements(context.info, make_problem(like).accumulator);
    block_k = pack->kc;
  }
  std::vector<TuneProblem> cases = {like, like, like, like};
  const auto set = [&](std::size_t i, index_t m, index_t n, index_t k) { cases[i].m = m, cases[i].n = n, cases[i].k = k; };
  set(0, block_m + block_m / 2 + 1, block_n + 5, block_k + 3);
  set(1, block_m, block_n, block_k);
  set(2, block_m * 3 - 1, block_n * 2 - 1, 1);
  set(3, 3, block_n * 2 + 1, block_k * 2 + 1);
  if (const auto* pack = std::get_if<PackParams>(&params)) {
    // More than one block of columns, and of rows, but little work.
    cases.push_back(like);
    set(4, std::max(pack->mc, pack->mr) + 1, pack->nc + 3, 5);
  }
  for (TuneProblem& c : cases) {
    // A kernel for vectors is proven on vectors.
    if (like.m == 1) c.m = 1;
    if (like.n == 1) c.n = 1;
    c.batch = like.batch > 1 ? 3 : 1;
  }
  std::uint64_t seed = 17;
  for (const TuneProblem& c : cases) {
    Problem p = make_problem(c);
    if (kernel.why_not && !kernel.why_not(p, context.info).empty()) continue;
    // Guard cells: D's rows are longer than n, and rows lie before and behind it.
    p.d.ld = p.n + 3;
    const index_t rows_of_d = p.m + 2;
    if (c.batch > 1) p.d.inner = rows_of_d * p.d.ld;
    const std::size_t size_d = elements(rows_of_d, p.d.ld, c.batch);
    // Sums of K products of at most 4 stay far below 2²⁴: exact in every accumulator.
    const std::vector<char> a = random_integers(p.dtype, elements(p.m, p.k, c.batch), 2, ++seed);
    const std::vector<char> b = random_integers(p.dtype, elements(p.k, p.n, c.batch), 2, ++seed);
    const std::vector<char> before = random_integers(p.out, size_d, 100, ++seed);
    std::vector<char> expected = before, got(before.size());

    Problem on_host = p;
    on_host.a.data = const_cast<char*>(a.data());
    on_host.b.data = const_cast<char*>(b.data());
    const std::size_t first_row = static_cast<std::size_t>(p.d.ld * size_of(p.out));

    const auto block = [&](const std::vector<char>& data) {
      void* memory = context.pool.take(data.size(), sycl::usm::alloc::device);
      context.queue.memcpy(memory, data.data(), data.size());
      return memory;
    };
    std::vector<void*> taken;
    const auto give_back = [&] {
      for (void* memory : taken) context.pool.give_back(memory);
    };
    const auto run = [&] {
      context.queue.memcpy(taken[2], before.data(), before.size());
      context.wait();
      const Plan plan = plan_with(kernel, p, context.info, params);
      launch(context, plan, context.programs.get(kernel, plan.constants), p);
      context.queue.memcpy(got.data(), taken[2], got.size());
      context.wait();
    };
    on_host.d.data = expected.data() + first_row;
    host::reference(on_host);
    std::string wrong;  // and whether always: that tells constants that compute nonsense from races
    try {
      taken.push_back(p.a.data = block(a));
      taken.push_back(p.b.data = block(b));
      taken.push_back(context.pool.take(before.size(), sycl::usm::alloc::device));
      p.d.data = static_cast<char*>(taken[2]) + first_row;
      run();
      if (got != expected) {
        wrong = difference(got, expected, before, p);
        run();
        wrong += got == expected ? "; launched again it was right" : "; launched again " + difference(got, expected, before, p);
      }
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    if (!wrong.empty())
      return "wrong result for " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
             (c.batch > 1 ? " (3 of them): " : ": ") + wrong;
  }
  return {};
}

}  // namespace sycl_mat
