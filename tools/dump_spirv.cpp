// Writes the SPIR-V of kernels to files, for compilers that run without a device (ocloc).
//
//   dump_spirv all FOLDER [ARCH]                       what the planner chooses by default on Intel GPUs, every dtype and layout
//   dump_spirv one FILE KERNEL ARCH [NAME=VALUE …]     one kernel with that architecture's defaults, constants replaced
//
// `all` prints one line a program: file, kernel, architecture, dtype, layout, problem, work-group, local memory, constants; tabs between.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "plan.hpp"
#include "program.hpp"
#include "shipped.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

/// The SPIR-V module of a kernel inside a serialised object bundle: from its magic number to its last OpFunctionEnd. A bundle may hold
/// several: kernels that require a sub-group size have one of their own.
std::vector<char> module_of(const std::vector<char>& bundle, std::string_view kernel) {
  constexpr std::uint32_t magic = 0x07230203, function_end = 56;
  const std::string entry = "__sycl_kernel_" + std::string(kernel);
  const auto word = [&](std::size_t at) {
    std::uint32_t w;
    std::memcpy(&w, &bundle[at], 4);
    return w;
  };
  for (std::size_t start = 0; start + 20 <= bundle.size(); start += 4) {
    if (word(start) != magic) continue;
    std::size_t end = start;
    for (std::size_t at = start + 20; at + 4 <= bundle.size() && word(at) >> 16 != 0 && word(at) != magic;
         at += std::size_t(word(at) >> 16) * 4)
      if ((word(at) & 0xffff) == function_end) end = at + 4;
    const std::string_view text(bundle.data() + start, end - start);
    if (text.find(entry) != std::string_view::npos) return {text.begin(), text.end()};
  }
  throw Error("no SPIR-V module with " + entry + " in the bundle");
}

void write(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), std::streamsize(bytes.size()))) throw Error("cannot write " + path);
}

Problem problem_of(index_t m, index_t n, index_t k, DType dtype, int layout) {
  Problem p;
  p.m = m, p.n = n, p.k = k;
  p.dtype = p.accumulator = p.out = dtype;
  if (dtype == DType::float16 || dtype == DType::bfloat16) p.accumulator = DType::float32;
  if (dtype == DType::int8) p.accumulator = p.out = DType::int32;
  p.a.transposed = layout & 2;
  p.b.transposed = layout & 1;
  p.a.ld = p.a.transposed ? m : k;
  p.b.ld = p.b.transposed ? k : n;
  p.d.ld = n;
  return p;
}

std::string text_of(const Constants& constants) {
  std::string out;
  for (const auto& [name, value] : constants) out.append(out.empty() ? "" : " ").append(name).append("=").append(std::to_string(value));
  return out;
}

int dump_all(sycl::queue& queue, const std::string& folder, const std::string& only) {
  struct Size {
    const char* kernel;
    index_t m, n, k;
  };
  constexpr Size sizes[] = {{"tiled", 256, 256, 256}, {"tiled", 1024, 1024, 1024}, {"tiled", 4096, 4096, 4096}, {"tiled", 64, 64, 65536},
                            {"gemv", 1, 4096, 4096},  {"gemv", 3, 1000, 65536},    {"gemv", 8, 16384, 4096}};
  constexpr const char* layouts[] = {"nn", "nt", "tn", "tt"};
  std::map<std::string, std::string> files;  // by source, since architectures share programs
  for (const std::string& architecture : shipped_architectures()) {
    const DeviceInfo device = model_device(architecture);
    if (!device.is_gpu() || (!only.empty() && architecture != only)) continue;
    std::set<std::string> seen;
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8})
      for (int layout = 0; layout < 4; ++layout)
        for (const auto& [name, m, n, k] : sizes) {
          const Problem p = problem_of(m, n, k, dtype, layout);
          const Kernel& kernel = find_kernel(name);
          if (!kernel.why_not(p, device).empty()) continue;
          const Plan plan = kernel.plan(kernel, p, device, kernel.defaults(p, device));
          const std::string source = render(kernel, plan.constants);
          if (!seen.insert(source).second) continue;
          auto [file, fresh] = files.try_emplace(source, std::to_string(files.size()) + ".spv");
          if (fresh) write(folder + "/" + file->second, module_of(compile_object(queue, kernel, source), kernel.name));
          std::cout << file->second << '\t' << kernel.name << '\t' << architecture << '\t' << name_of(dtype) << '\t' << layouts[layout]
                    << '\t' << m << "×" << n << "×" << k << '\t' << plan.range.local[1] << "×" << plan.range.local[2] << '\t'
                    << plan.local_memory << '\t' << text_of(plan.constants) << '\n';
        }
  }
  return 0;
}

int dump_one(sycl::queue& queue, int count, char** arguments) {
  const Kernel& kernel = find_kernel(arguments[1]);
  const Problem p = problem_of(kernel.name == "gemv" ? 1 : 1024, 1024, 1024, DType::float32, 0);
  const DeviceInfo device = model_device(arguments[2]);
  Constants constants = kernel.plan(kernel, p, device, kernel.defaults(p, device)).constants;
  for (int i = 3; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto equals = argument.find('=');
    bool known = false;
    for (auto& [name, value] : constants)
      if (name == argument.substr(0, equals)) value = std::stoi(argument.substr(equals + 1)), known = true;
    if (!known) throw Error("the kernel has no constant " + argument.substr(0, equals));
  }
  write(arguments[0], module_of(compile_object(queue, kernel, render(kernel, constants)), kernel.name));
  return 0;
}

}  // namespace
}  // namespace sycl_mat

int main(int count, char** arguments) try {
  const std::string mode = count > 1 ? arguments[1] : "";
  sycl::queue queue;
  if (mode == "all" && (count == 3 || count == 4)) return sycl_mat::dump_all(queue, arguments[2], count == 4 ? arguments[3] : "");
  if (mode == "one" && count >= 5) return sycl_mat::dump_one(queue, count - 2, arguments + 2);
  std::cerr << "usage: dump_spirv all FOLDER [ARCHITECTURE] | dump_spirv one FILE KERNEL ARCHITECTURE [NAME=VALUE ...]\n";
  return 2;
} catch (const std::exception& e) {
  std::cerr << "dump_spirv: " << e.what() << '\n';
  return 1;
}
