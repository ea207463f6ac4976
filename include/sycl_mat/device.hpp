// The machine's SYCL devices, and the context in which products run on one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sycl_mat {

/// What matters of a device for a matrix product. Sizes are in bytes.
struct DeviceInfo {
  std::string name;  ///< as the driver reports it, trimmed
  std::string vendor;
  std::string platform;
  std::string backend;   ///< "opencl", "level_zero", "cuda", "hip"
  std::string type;      ///< "cpu", "gpu", "accelerator"
  std::string selector;  ///< what to pass as `device=` to get this one, for example "opencl:0"
  std::string driver_version;
  std::string architecture;  ///< tuning family: "cpu-avx512", "intel-gen9", "intel-xe-lp", "nvidia-sm90", …
  std::string fingerprint;   ///< stable identity of this model of device, made by one function (device.cpp); no driver version in it
  int compute_units = 1;
  std::int64_t max_work_group_size = 1;
  std::int64_t local_memory = 0;
  std::int64_t global_memory = 0;
  std::int64_t max_allocation = 0;
  int vector_width = 1;            ///< float32 elements of the native vector (CPU), or the preferred one
  bool has_bfloat16_dots = false;  ///< a CPU with AVX512_BF16
  std::vector<int> sub_group_sizes;
  std::int64_t l1_cache = 0;  ///< per core, 0: unknown
  std::int64_t l2_cache = 0;  ///< per core, 0: unknown
  std::int64_t l3_cache = 0;  ///< shared, 0: unknown
  int clock_mhz = 0;
  bool has_fp64 = false;
  bool has_fp16 = false;
  bool usm_device = false;
  bool usm_host = false;
  bool usm_shared = false;
  bool usm_system = false;      ///< ordinary pointers go to kernels as they are
  bool unified_memory = false;  ///< the device shares the host's physical memory

  bool is_cpu() const { return type == "cpu"; }
  bool is_gpu() const { return type == "gpu"; }
};

/// Every SYCL device that ONEAPI_DEVICE_SELECTOR lets through, GPUs first. Empty: none was found.
std::vector<DeviceInfo> devices();

/// One device with its in-order queue, compiled programs and pooled memory. Shared by all threads of the process; created on first
/// use and deliberately never destroyed (bundles that outlive their SYCL context crash at exit, intel/llvm#22786).
class Context {
 public:
  const DeviceInfo& device() const;
  /// Blocks until everything submitted so far has run. Throws DeviceError.
  void wait();
  /// How many of a CPU device's cores a product is shared among, 0: all. Holds for products planned from now on; the device's fingerprint
  /// and what was tuned for it stay. Throws UnsupportedError on other devices.
  void set_threads(int count);
  int threads() const;

  struct State;
  State& state() { return *state_; }
  explicit Context(std::unique_ptr<State> state);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  std::unique_ptr<State> state_;
};

/// The context of a device: "" (the default), "cpu", "gpu", "gpu:1", "level_zero:0", "opencl:1".
/// Throws DeviceError that says what to install or check; also in a child of fork() whose parent had used a device.
Context& context(std::string_view selector = "");

/// Which device "" means from now on. Throws DeviceError and changes nothing where there is no such device.
void set_default_device(std::string_view selector);

}  // namespace sycl_mat
