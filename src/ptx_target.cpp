#include "ptx_target.hpp"

#include <cstdlib>
#include <string_view>

#include "sycl.hpp"

namespace sycl_mat {
namespace {

constexpr const char* cpu_variable = "SYCL_JIT_AMDGCN_PTX_TARGET_CPU";
constexpr const char* features_variable = "SYCL_JIT_AMDGCN_PTX_TARGET_FEATURES";
constexpr const char* target = "sm_90a";

/// PTX for sm_90a runs on compute capability 9.0 and on nothing else, newer devices included.
bool all_are_hopper() {
  namespace syclex = sycl::ext::oneapi::experimental;
  static const bool answer = [] {
    bool any = false;
    for (const sycl::device& device : sycl::device::get_devices(sycl::info::device_type::gpu)) {
      if (device.get_backend() != sycl::backend::ext_oneapi_cuda) continue;
      any = true;
      try {
        if (device.get_info<syclex::info::device::architecture>() != syclex::architecture::nvidia_gpu_sm_90) return false;
      } catch (const sycl::exception&) {
        return false;  // a device newer than the runtime
      }
    }
    return any;
  }();
  return answer;
}

}  // namespace

std::string why_no_sm90a() {
  const char* set = std::getenv(cpu_variable);
  if (set && std::string_view(set) != target) return std::string("kernels are built for ") + set + ", as " + cpu_variable + " says";
  if (!all_are_hopper())
    return "not all CUDA devices of this process have compute capability 9.0, and all kernels of a process are built for one";
  return {};
}

void choose_ptx_target() {
  if (std::getenv(cpu_variable) || !all_are_hopper()) return;
#ifdef _WIN32
  _putenv_s(cpu_variable, target);
  _putenv_s(features_variable, "+sm_90a,+ptx80");
#else
  setenv(cpu_variable, target, 0);
  setenv(features_variable, "+sm_90a,+ptx80", 0);  // the target alone aborts the compiler
#endif
}

}  // namespace sycl_mat
