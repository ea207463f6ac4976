#include "roofline.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "caller_placement.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "params_pack.hpp"

namespace sycl_mat {
namespace {

// Not in the list of kernels: they compute no product.
constexpr Kernel peak_kernel(bool cpu) {
  return {.name = "peak", .file = "peak.cpp", .summary = "", .params = "none", .hand_vectorised = cpu};
}
constexpr Kernel stream_kernel(bool cpu) {
  return {.name = "stream", .file = "stream.cpp", .summary = "", .params = "none", .hand_vectorised = cpu};
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Memory of the context's pool, given back at the end.
class Block {
 public:
  Block(Context::State& context, std::size_t bytes) : pool_(context.pool), data_(pool_.take(bytes, sycl::usm::alloc::device)) {}
  ~Block() { pool_.give_back(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() const { return data_; }

 private:
  MemoryPool& pool_;
  void* data_;
};

/// Least seconds of a launch over some rounds. The minimum, since whatever disturbs a ceiling only lowers it.
double least_seconds(Context::State& context, const Plan& plan, const Program& program, const Problem& p, int rounds) {
  double least = 1e30;
  const CallerPlacement placement(context.info.is_cpu());
  launch(context, plan, program, p);
  context.wait();
  for (int round = 0; round < rounds; ++round) {
    const double start = now();
    launch(context, plan, program, p);
    context.wait();
    least = std::min(least, now() - start);
  }
  return least;
}

Problem empty_problem(DType dtype, void* data) {
  Problem p;
  p.dtype = p.accumulator = p.out = dtype;
  p.a.data = p.b.data = p.d.data = data;
  return p;
}

/// `flops`: of one launch, whose rate counts; 0: the best of launches of 15 ms each.
double measure_peak(Context::State& context, DType dtype, double flops, double& launch_seconds) {
  const Block one(context, 4096);
  const std::vector<float> halves(16, 0.5f);
  const std::vector<double> double_halves(16, 0.5);
  const void* source = dtype == DType::float64 ? static_cast<const void*>(double_halves.data()) : halves.data();
  context.queue.memcpy(one.data(), source, 64).wait();
  const DeviceInfo& device = context.info;
  const bool cpu = device.is_cpu();
  const Kernel kernel = peak_kernel(cpu);
  Problem p = empty_problem(dtype, one.data());
  Plan plan;
  plan.kernel = &kernel;
  const int width = cpu ? vector_elements(device, dtype) : 1;
  // Sixteen vectors cover a latency of 4 at two a cycle twice; a GPU covers its latency with work-items as well.
  const int chains = cpu && device.vector_width < 16 ? 10 : 16;
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"WIDTH", width}, {"CHAINS", chains}});
  const std::size_t local = cpu ? 1 : static_cast<std::size_t>(std::min<std::int64_t>(256, device.max_work_group_size));
  const std::size_t groups = static_cast<std::size_t>(device.compute_units) * (cpu ? 1 : 32);
  plan.range = {{1, 1, groups * local}, {1, 1, local}};
  const Program& program = context.programs.get(kernel, plan.constants);

  const double flops_a_step = 2.0 * width * chains * double(groups * local);

  p.k = 0;
  launch_seconds = least_seconds(context, plan, program, p, flops > 0 ? 3 : 50);
  if (flops > 0) {
    p.k = std::max<index_t>(4, static_cast<index_t>(flops / flops_a_step));
    const CallerPlacement placement(cpu);
    const double start = now();
    launch(context, plan, program, p);
    context.wait();
    return flops_a_step * double(p.k) / std::max(now() - start - launch_seconds, 1e-9) * 1e-9;
  }
  // As many steps as take 15 ms, found by doubling: long beside the launch, short beside a time slice of the machine.
  double seconds = 0;
  for (p.k = 1 << 12; p.k < (index_t{1} << 34); p.k *= 4) {
    seconds = least_seconds(context, plan, program, p, 1);
    if (seconds > 4e-3) break;
  }
  p.k *= std::max<index_t>(1, static_cast<index_t>(15e-3 / seconds));
  seconds = least_seconds(context, plan, program, p, 6) - launch_seconds;
  return flops_a_step * double(p.k) / seconds * 1e-9;
}

double measure_stream(Context::State& context, DType dtype, bool write, const Block* arrays, std::size_t bytes) {
  const DeviceInfo& device = context.info;
  const bool cpu = device.is_cpu();
  const Kernel kernel = stream_kernel(cpu);
  Problem p = empty_problem(dtype, arrays[0].data());
  p.b.data = arrays[1].data();
  p.d.data = arrays[2].data();
  Plan plan;
  plan.kernel = &kernel;
  const int width = cpu ? vector_elements(device, dtype) : static_cast<int>(16 / size_of(dtype));
  const std::size_t local = cpu ? 1 : static_cast<std::size_t>(std::min<std::int64_t>(256, device.max_work_group_size));
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"WIDTH", width}, {"STRIDED", !cpu}, {"WRITE", write}, {"GROUP", static_cast<int>(local)}});
  const std::size_t groups = static_cast<std::size_t>(device.compute_units) * (cpu ? 1 : 16);
  plan.range = {{1, 1, groups * local}, {1, 1, local}};
  const std::size_t step = groups * local * static_cast<std::size_t>(width);
  p.n = static_cast<index_t>(bytes / static_cast<std::size_t>(size_of(dtype)) / step * step);
  const double seconds = least_seconds(context, plan, context.programs.get(kernel, plan.constants), p, 5);
  return double(p.n) * double(size_of(dtype)) * (write ? 3 : 1) / seconds * 1e-9;
}

Roofline measure(Context::State& context, DType dtype) {
  const DeviceInfo& device = context.info;
  Roofline r;
  r.peak_gflops = measure_peak(context, dtype, 0, r.launch_seconds);
  // Four times the last cache, so that it serves at most a quarter; a GPU's is no larger than 64 MB.
  std::size_t bytes =
      static_cast<std::size_t>(std::clamp<std::int64_t>(4 * std::max(device.l3_cache, device.l2_cache), 64 << 20, 512 << 20));
  if (device.max_allocation > 0) bytes = std::min<std::size_t>(bytes, static_cast<std::size_t>(device.max_allocation));
  if (device.global_memory > 0) bytes = std::min<std::size_t>(bytes, static_cast<std::size_t>(device.global_memory) / 16);
  const Block arrays[3] = {{context, bytes}, {context, bytes}, {context, bytes}};
  for (const Block& array : arrays) context.queue.memset(array.data(), 0, bytes);
  context.wait();
  r.read_gbs = measure_stream(context, dtype, false, arrays, bytes);
  r.triad_gbs = measure_stream(context, dtype, true, arrays, bytes);
  return r;
}

}  // namespace

Roofline measure_roofline(Context::State& context, DType dtype) {
  static std::mutex mutex;
  static auto* known = new std::map<std::pair<const Context::State*, DType>, Roofline>;  // contexts live for ever
  const DType measured = dtype == DType::float64 ? DType::float64 : DType::float32;
  const std::lock_guard guard(mutex);
  if (const auto at = known->find({&context, measured}); at != known->end()) return at->second;
  try {
    const Roofline r = measure(context, measured);
    (*known)[{&context, measured}] = r;
    return r;
  } catch (const sycl::exception& e) {
    rethrow(e, context.info);
  }
}

double measure_fma_peak(Context::State& context, DType dtype, double flops) {
  double launch_seconds = 0;
  try {
    return measure_peak(context, dtype == DType::float64 ? DType::float64 : DType::float32, flops, launch_seconds);
  } catch (const sycl::exception& e) {
    rethrow(e, context.info);
  }
}

Bound bound(const Roofline& roofline, const DeviceInfo& device, const Shape& shape, DType dtype, bool reads_c) {
  const double m = double(shape.m), n = double(shape.n), k = double(shape.k), batch = double(shape.batch);
  const double in = double(size_of(dtype)), out = dtype == DType::int8 ? 4 : in;
  Bound b;
  b.flops = 2 * m * n * k * batch;
  b.bytes = batch * ((m * k + k * n) * in + m * n * out * (reads_c ? 2 : 1));
  b.intensity = b.bytes > 0 ? b.flops / b.bytes : 0;
  b.compute_seconds = roofline.peak_gflops > 0 ? b.flops / (roofline.peak_gflops * 1e9) : 0;
  const double last_cache = double(std::max(device.l3_cache, device.l2_cache));
  const double bandwidth = std::max(roofline.read_gbs, roofline.triad_gbs) * 1e9;
  b.memory_seconds = bandwidth > 0 && b.bytes > last_cache ? b.bytes / bandwidth : 0;
  b.launch_seconds = roofline.launch_seconds;
  b.seconds = std::max({b.compute_seconds, b.memory_seconds, b.launch_seconds});
  b.limit = b.seconds == b.compute_seconds ? Limit::compute : b.seconds == b.memory_seconds ? Limit::memory : Limit::launch;
  return b;
}

std::string to_string(Limit limit) {
  switch (limit) {
    case Limit::compute:
      return "multiply-add rate";
    case Limit::memory:
      return "memory bandwidth";
    case Limit::launch:
      return "launch latency";
  }
  return "";
}

}  // namespace sycl_mat
