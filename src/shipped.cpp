#include "shipped.hpp"

#include <algorithm>
#include <set>

#include "plan.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

// Local memory, sub-group sizes and work-group limits as Intel's drivers report them for these GPUs (Graphics Programmer's Reference
// Manuals; oneAPI GPU optimisation guide). Compute units are one usual member of each family.
struct Model {
  std::string_view architecture, type;
  int compute_units;
  std::int64_t local_memory, max_work_group_size;
  int vector_width;
  std::vector<int> sub_groups;
  bool fp64;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all{
      {"cpu-avx512", "cpu", 8, 262144, 8192, 16, {4, 8, 16, 32, 64}, true},
      {"cpu-avx2", "cpu", 8, 262144, 8192, 8, {4, 8, 16, 32, 64}, true},
      {"intel-gen9", "gpu", 24, 65536, 256, 1, {8, 16, 32}, true},
      {"intel-xe-lp", "gpu", 96, 65536, 512, 1, {8, 16, 32}, false},
      {"intel-xe-hpg", "gpu", 512, 65536, 1024, 1, {8, 16, 32}, false},
      {"intel-xe-hpc", "gpu", 1024, 131072, 1024, 1, {16, 32}, true},
  };
  return all;
}

struct Usual {
  index_t m, n, k;
};
// One of each kind that the planners tell apart: squares small to large, a network layer, long sums, vectors, thin matrices.
constexpr Usual usual[] = {{128, 128, 128},  {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
                           {12800, 64, 576}, {64, 64, 65536}, {1, 4096, 4096},    {4096, 1, 4096},    {8, 4096, 4096}};

Problem problem_of(const Usual& size, DType dtype, bool trans_a, bool trans_b) {
  Problem p;
  p.m = size.m;
  p.n = size.n;
  p.k = size.k;
  p.dtype = p.accumulator = p.out = dtype;
  p.a.transposed = trans_a;
  p.b.transposed = trans_b;
  p.a.ld = trans_a ? p.m : p.k;
  p.b.ld = trans_b ? p.k : p.n;
  p.d.ld = p.n;
  return p;
}

std::string text_of(const Problem& p) {
  return std::to_string(p.m) + "×" + std::to_string(p.n) + "×" + std::to_string(p.k) + " " + std::string(name_of(p.dtype)) + " " +
         (p.a.transposed ? "t" : "n") + (p.b.transposed ? "t" : "n");
}

}  // namespace

DeviceInfo model_device(std::string_view architecture) {
  for (const Model& model : models()) {
    if (model.architecture != architecture) continue;
    DeviceInfo info;
    info.name = info.architecture = info.fingerprint = std::string(architecture);
    info.type = std::string(model.type);
    info.backend = "opencl";
    info.compute_units = model.compute_units;
    info.max_work_group_size = model.max_work_group_size;
    info.local_memory = model.local_memory;
    info.global_memory = std::int64_t(8) << 30;
    info.max_allocation = info.global_memory / 2;
    info.vector_width = model.vector_width;
    info.sub_group_sizes = model.sub_groups;
    info.has_fp64 = model.fp64;
    info.has_fp16 = true;
    info.usm_device = info.usm_host = info.usm_shared = true;
    info.usm_system = info.is_cpu();
    info.unified_memory = architecture != "intel-xe-hpg" && architecture != "intel-xe-hpc";
    if (info.is_cpu()) {
      info.l1_cache = 32 << 10;
      info.l2_cache = 1 << 20;
      info.l3_cache = 32 << 20;
    }
    return info;
  }
  throw UnsupportedError("no model of an architecture \"" + std::string(architecture) + "\"");
}

std::vector<std::string> shipped_architectures() {
  std::vector<std::string> names;
  for (const Model& model : models()) names.emplace_back(model.architecture);
  return names;
}

std::vector<ShippedProgram> usual_programs(const DeviceInfo& device, DType dtype) {
  std::vector<ShippedProgram> out;
  std::set<std::pair<std::string_view, Constants>> known;
  for (const Usual& size : usual)
    for (const int layout : {0, 1, 2, 3}) {
      const Problem p = problem_of(size, dtype, layout & 2, layout & 1);
      if (on_host(p, device, {})) continue;
      const Plan plan = make_plan(p, device, {});
      if (known.emplace(plan.kernel->name, plan.constants).second)
        out.push_back({plan.kernel, plan.constants, device.architecture, plan.range, text_of(p)});
    }
  return out;
}

std::vector<ShippedProgram> shipped_programs() {
  std::vector<ShippedProgram> out;
  for (const Model& model : models()) {
    for (ShippedProgram& program : usual_programs(model_device(model.architecture), DType::float32)) out.push_back(std::move(program));
  }
  return out;
}

}  // namespace sycl_mat
