// Source + constants → object bundle (shipped, or compiled now) → executable bundle (cached on disk) → sycl::kernel.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "kernel.hpp"
#include "sycl.hpp"

namespace sycl_mat {

/// Where a program came from, for explain() and for tests.
enum class Origin { memory, disk_cache, shipped_object, compiled };

struct Program {
  sycl::kernel kernel;
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

/// The folder of the disk cache: $SYCL_MAT_CACHE_DIR, else the platform's user cache folder / "sycl_mat". May not exist.
std::filesystem::path cache_folder();

}  // namespace sycl_mat
