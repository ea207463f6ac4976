#include "runtime.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>

#include "sycl.hpp"

namespace sycl_mat::blas {

void prepare_runtime() {
  namespace fs = std::filesystem;
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr const char *variable = "OCL_ICD_FILENAMES", *driver = "libintelocl.so";
    const char* set = std::getenv(variable);
    const std::string known = set ? set : "";
    Dl_info info{};
    if (known.find(driver) != std::string::npos || !dladdr(reinterpret_cast<const void*>(&sycl::platform::get_platforms), &info)) return;
    std::error_code error;
    const fs::path path = fs::weakly_canonical(info.dli_fname, error).parent_path() / driver;
    if (!error && fs::exists(path, error)) setenv(variable, (known.empty() ? path.string() : known + ":" + path.string()).c_str(), 1);
  });
}

}  // namespace sycl_mat::blas
