#include "warning.hpp"

#include <atomic>
#include <cstdio>

namespace sycl_mat {
namespace {
std::atomic<void (*)(const std::string&)> current{nullptr};
}

void set_warning_listener(void (*listener)(const std::string&)) noexcept { current = listener; }

void warn(const std::string& message) noexcept {
  try {
    if (auto* listener = current.load()) {
      listener(message);
      return;
    }
  } catch (...) {  // a listener that fails must not turn a warning into an error
  }
  std::fprintf(stderr, "sycl_mat: warning: %s\n", message.c_str());
}

}  // namespace sycl_mat
