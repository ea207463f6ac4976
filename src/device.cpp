#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "last_cache.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

namespace syclex = sycl::ext::oneapi::experimental;

std::string trimmed(std::string s) {
  while (!s.empty() && (std::isspace(static_cast<unsigned char>(s.back())) || s.back() == '\0')) s.pop_back();
  s.erase(0, s.find_first_not_of(" \t\n"));
  return s;
}

/// Lower case letters and digits, runs of anything else as one dash: safe in a file name.
std::string slug(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (std::isalnum(c)) {
      out += static_cast<char>(std::tolower(c));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

template <class Info>
auto ask(const sycl::device& device, typename Info::return_type fallback) {
  try {
    return device.get_info<Info>();
  } catch (const sycl::exception&) {
    return fallback;
  }
}

/// Tuning family of an Intel GPU from its GMDID, whose top ten bits are the IP's major version and the next eight the minor one
/// (values as in the SYCL extension ext_oneapi_device_architecture).
std::string intel_gpu_family(std::uint32_t gmdid) {
  const unsigned major = gmdid >> 22, minor = (gmdid >> 14) & 0xff;
  if (major <= 9) return "intel-gen9";
  if (major == 11) return "intel-gen11";
  if (major == 12) {
    if (minor < 50) return "intel-xe-lp";
    if (minor == 60 || minor == 61) return "intel-xe-hpc";
    if (minor < 60) return "intel-xe-hpg";
    return "intel-xe-lpg";
  }
  if (major == 20) return "intel-xe2";
  return "intel-xe3";
}

std::string cpu_family() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return "cpu-avx512";
  if (__builtin_cpu_supports("avx2")) return "cpu-avx2";
#endif
  return "cpu";
}

/// AVX512_BF16, on a system that keeps the wide registers for its processes.
bool has_bfloat16_dots() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

std::string architecture_of(const sycl::device& device) {
  if (device.is_cpu()) return cpu_family();
  try {
    const auto id = static_cast<std::uint64_t>(device.get_info<syclex::info::device::architecture>());
    const auto family = id >> 56;
    const auto model = static_cast<std::uint32_t>(id >> 8);
    if (family == 0) return intel_gpu_family(model);
    // For example 0x0100000000009000 is sm_90, 0x01000000000090a0 sm_90a: major and minor version, a suffix, and eight bits of nothing.
    if (family == 1) return "nvidia-sm" + std::to_string((model >> 4 & 0xff) * 10 + (model & 0xf));
    if (family == 2) return "amd-gfx";
  } catch (const sycl::exception&) {  // a device that the runtime has no name for
  }
  return device.is_gpu() ? "gpu" : "accelerator";
}

void add_caches(DeviceInfo& info, const sycl::device& device) {
  info.l2_cache = static_cast<std::int64_t>(ask<sycl::info::device::global_mem_cache_size>(device, 0));
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (info.is_cpu()) {
    // sysconf gives 0 or -1 where the kernel hides the caches (containers, some virtual machines).
    info.l1_cache = std::max(0L, sysconf(_SC_LEVEL1_DCACHE_SIZE));
    if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) info.l2_cache = l2;
    info.l3_cache = last_cache_bytes("/sys/devices/system/cpu/cpu0", static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    if (info.l3_cache == 0) info.l3_cache = std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE));
  }
#endif
}

/// Throws DeviceError where ONEAPI_DEVICE_SELECTOR makes no sense to the runtime.
std::vector<sycl::device> all_devices() {
  std::vector<sycl::device> all;
  try {
    all = sycl::device::get_devices();
  } catch (const sycl::exception& e) {
    const char* filter = std::getenv("ONEAPI_DEVICE_SELECTOR");
    throw DeviceError(std::string("the SYCL runtime could not list its devices: ") + e.what() +
                      (filter ? std::string(" (ONEAPI_DEVICE_SELECTOR is '") + filter + "': unset it, or write for example '*:gpu')" : ""));
  }
  std::stable_sort(all.begin(), all.end(), [](const sycl::device& a, const sycl::device& b) { return a.is_gpu() > b.is_gpu(); });
  return all;
}

/// A GPU that Level Zero drives too is the same device a second time through OpenCL: "gpu:1" must not mean it.
bool hidden_twin(const sycl::device& device, const std::vector<sycl::device>& all) {
  return device.is_gpu() && device.get_backend() == sycl::backend::opencl &&
         std::any_of(all.begin(), all.end(), [](const sycl::device& d) { return d.get_backend() == sycl::backend::ext_oneapi_level_zero; });
}

[[noreturn]] void no_device(std::string_view selector) {
  std::string what = selector.empty() ? std::string("no SYCL device was found") : "there is no SYCL device '" + std::string(selector) + "'";
  const char* filter = std::getenv("ONEAPI_DEVICE_SELECTOR");
  if (filter) what += std::string(" (ONEAPI_DEVICE_SELECTOR=") + filter + " is set and hides others)";
  const auto found = all_devices();
  if (!found.empty()) {
    what += "; there are:";
    for (const auto& info : devices()) what += " " + info.selector + " (" + info.name + ")";
    what += ".";
  } else {
    what +=
        ". For the processor: pip install intel-opencl-rt. For an Intel GPU: install its compute driver (Debian, Ubuntu: intel-opencl-icd "
        "and libze1 with libze-intel-gpu1; Fedora: intel-compute-runtime; Windows: the graphics driver) and check that you may open "
        "/dev/dri/renderD128. For an NVIDIA GPU: Codeplay's oneAPI plug-in of the same version as intel-sycl-rt.";
  }
  throw DeviceError(what + " Run 'sycl-mat doctor' to see what is missing.");
}

}  // namespace

std::string backend_name(const sycl::device& device) {
  switch (device.get_backend()) {
    case sycl::backend::opencl:
      return "opencl";
    case sycl::backend::ext_oneapi_level_zero:
      return "level_zero";
    case sycl::backend::ext_oneapi_cuda:
      return "cuda";
    case sycl::backend::ext_oneapi_hip:
      return "hip";
    default:
      return "other";
  }
}

std::string make_fingerprint(const DeviceInfo& info) {
  return slug(info.name) + "-" + slug(info.architecture) + "-" + std::to_string(info.compute_units) + "cu";
}

DeviceInfo describe(const sycl::device& device) {
  namespace dev = sycl::info::device;
  DeviceInfo info;
  info.name = trimmed(device.get_info<dev::name>());
  info.vendor = trimmed(device.get_info<dev::vendor>());
  info.platform = trimmed(device.get_platform().get_info<sycl::info::platform::name>());
  info.backend = backend_name(device);
  info.type = device.is_cpu() ? "cpu" : device.is_gpu() ? "gpu" : "accelerator";
  info.driver_version = trimmed(device.get_info<dev::driver_version>());
  info.compute_units = static_cast<int>(device.get_info<dev::max_compute_units>());
  info.max_work_group_size = static_cast<std::int64_t>(device.get_info<dev::max_work_group_size>());
  info.local_memory = static_cast<std::int64_t>(ask<dev::local_mem_size>(device, 0));
  info.global_memory = static_cast<std::int64_t>(device.get_info<dev::global_mem_size>());
  info.max_allocation = static_cast<std::int64_t>(ask<dev::max_mem_alloc_size>(device, 0));
  info.vector_width = static_cast<int>(ask<dev::native_vector_width_float>(device, 1));
  info.has_bfloat16_dots = info.is_cpu() && info.backend == "opencl" && info.vector_width >= 16 && has_bfloat16_dots();
  for (const auto size : ask<dev::sub_group_sizes>(device, {})) info.sub_group_sizes.push_back(static_cast<int>(size));
  info.clock_mhz = static_cast<int>(ask<dev::max_clock_frequency>(device, 0));
  info.has_fp64 = device.has(sycl::aspect::fp64);
  info.has_fp16 = device.has(sycl::aspect::fp16);
  info.usm_device = device.has(sycl::aspect::usm_device_allocations);
  info.usm_host = device.has(sycl::aspect::usm_host_allocations);
  info.usm_shared = device.has(sycl::aspect::usm_shared_allocations);
  info.usm_system = device.has(sycl::aspect::usm_system_allocations);
  info.unified_memory = info.is_cpu() || ask<dev::host_unified_memory>(device, false);
  info.architecture = architecture_of(device);
  add_caches(info, device);
  info.fingerprint = make_fingerprint(info);
  return info;
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> out;
  std::vector<std::string> seen;
  for (const auto& device : all_devices()) {
    DeviceInfo info = describe(device);
    const auto index = std::count(seen.begin(), seen.end(), info.backend);
    seen.push_back(info.backend);
    info.selector = info.backend + ":" + std::to_string(index);
    out.push_back(std::move(info));
  }
  return out;
}

sycl::device select_device(std::string_view selector) {
  if (selector.empty()) {
    try {
      return sycl::device{sycl::default_selector_v};
    } catch (const sycl::exception&) {
      no_device(selector);
    }
  }
  const auto colon = selector.find(':');
  const std::string_view kind = selector.substr(0, colon);
  std::size_t index = 0;
  if (colon != std::string_view::npos) {
    const std::string digits(selector.substr(colon + 1));
    if (digits.empty() || digits.size() > 4 || !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); }))
      throw DeviceError("device '" + std::string(selector) + "' is not understood; write \"cpu\", \"gpu\", \"gpu:1\" or \"level_zero:0\"");
    index = static_cast<std::size_t>(std::stoul(digits));
  }
  const auto all = all_devices();
  for (const auto& device : all) {
    const bool by_type = (kind == "cpu" && device.is_cpu()) || (kind == "gpu" && device.is_gpu() && !hidden_twin(device, all)) ||
                         (kind == "accelerator" && device.is_accelerator());
    if (!by_type && kind != backend_name(device)) continue;
    if (index-- == 0) return device;
  }
  no_device(selector);
}

}  // namespace sycl_mat
