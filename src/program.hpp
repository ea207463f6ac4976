// Source + constants → object bundle (shipped, or compiled now) → executable bundle (cached on disk) → sycl::kernel.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel.hpp"
#include "sycl.hpp"

namespace sycl_mat {

/// Where a program came from, for explain() and for tests.
enum class Origin { memory, disk_cache, shipped_object, compiled };

struct Program {
  sycl::kernel kernel;                                         ///< the main entry point, named like the Kernel
  sycl::kernel_bundle<sycl::bundle_state::executable> bundle;  ///< where further entry points are
  Origin origin;
  std::int64_t registers = -1;  ///< as the driver reports, -1 unknown
  std::int64_t spills = -1;     ///< bytes a work-item
};

/// The rendered source: device.hpp and gemm_args.hpp inlined, the default constants replaced by `constants`.
std::string render(const Kernel& kernel, const Constants& constants);

/// Programs of one device. Thread-safe; a key is compiled once, also by several processes (lock file beside the cache entry).
class Programs {
 public:
  Programs(sycl::queue& queue, const DeviceInfo& device);
  /// Throws CompileError.
  const Program& get(const Kernel& kernel, const Constants& constants);
  ~Programs();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The object bundle of a kernel, compiled from source now: what make_bundles ships. Throws CompileError.
std::vector<char> compile_object(sycl::queue& queue, const Kernel& kernel, const std::string& source);

/// Under which key an object bundle is shipped: it does not depend on the device, only on the source and the runtime's version.
std::string object_key(const Kernel& kernel, const std::string& source);

/// The folder of what travels with the library (bundles/, tuned/): $SYCL_MAT_DATA_DIR, else beside the library's own file, else the
/// install prefix's share/sycl_mat. Empty where there is none.
std::filesystem::path data_folder();

}  // namespace sycl_mat
