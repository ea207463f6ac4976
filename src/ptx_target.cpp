#include "ptx_target.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

namespace sycl_mat {
namespace {

constexpr const char* cpu_variable = "SYCL_JIT_AMDGCN_PTX_TARGET_CPU";
constexpr const char* features_variable = "SYCL_JIT_AMDGCN_PTX_TARGET_FEATURES";
constexpr std::string_view hopper = "sm_90a", ampere = "sm_80";

/// For this process's CUDA devices.
std::string_view target() {
  static const std::string_view answer = [] {
    std::vector<int> capabilities;
    for (const DeviceInfo& device : devices())
      if (device.backend == "cuda") capabilities.push_back(compute_capability(device));
    return ptx_target_for(capabilities);
  }();
  return answer;
}

std::string set_by_user(const char* set) { return std::string("kernels are built for ") + set + ", as " + cpu_variable + " says"; }

void set_variable(const char* name, const std::string& value) {
#ifdef _WIN32
  _putenv_s(name, value.c_str());
#else
  setenv(name, value.c_str(), 0);
#endif
}

}  // namespace

int compute_capability(const DeviceInfo& device) {
  constexpr std::string_view prefix = "nvidia-sm";
  const std::string_view name = device.architecture;
  int capability = 0;
  if (device.backend == "cuda" && name.starts_with(prefix))
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), capability);
  return capability;
}

std::string_view ptx_target_for(std::span<const int> capabilities) {
  if (capabilities.empty()) return {};
  // PTX for sm_90a runs on compute capability 9.0 and on nothing else, newer devices included; that for sm_80 on all newer ones.
  if (std::all_of(capabilities.begin(), capabilities.end(), [](int c) { return c == 90; })) return hopper;
  return *std::min_element(capabilities.begin(), capabilities.end()) >= 80 ? ampere : std::string_view();
}

bool has_sm80_instructions(std::string_view target) {
  constexpr std::string_view prefix = "sm_";
  int number = 0;
  return target.starts_with(prefix) &&
         std::from_chars(target.data() + prefix.size(), target.data() + target.size(), number).ec == std::errc() && number >= 80;
}

std::string why_no_sm90a() {
  if (const char* set = std::getenv(cpu_variable); set && set != hopper && target() != set) return set_by_user(set);
  if (target() != hopper)
    return "not all CUDA devices of this process have compute capability 9.0, and all kernels of a process are built for one";
  return {};
}

std::string why_no_mma_sync() {
  if (const char* set = std::getenv(cpu_variable)) return has_sm80_instructions(set) ? std::string() : set_by_user(set);
  if (target().empty())
    return "not all CUDA devices of this process have compute capability 8.0 or newer, and all kernels of a process are built for one";
  return {};
}

void choose_ptx_target() {
  if (std::getenv(cpu_variable) || target().empty()) return;
  set_variable(cpu_variable, std::string(target()));
  // The target alone aborts the compiler. PTX 7.0 is the first with sm_80, 8.1 the first with all that the kernels for
  // sm_90a use (st.async).
  set_variable(features_variable, "+" + std::string(target()) + (target() == hopper ? ",+ptx81" : ",+ptx70"));
}

}  // namespace sycl_mat
