#include "trace.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "shape_class.hpp"
#include "warning.hpp"

namespace sycl_mat {
namespace {

class Trace {
 public:
  explicit Trace(const char* file) : file_(std::fopen(file, "a")) {
    if (file_ == nullptr) warn(std::string("SYCL_MAT_TRACE: the file ") + file + " cannot be written; nothing is traced.");
  }

  void count(const Problem& p) {
    if (file_ == nullptr) return;
    const std::lock_guard guard(mutex_);
    auto [at, inserted] = counts_.try_emplace({shape_of(p), p.dtype, layout_of(p)}, 0);
    ++at->second;
    if (inserted) write(at->first, 1);
  }

  void finish() {
    if (file_ == nullptr) return;
    const std::lock_guard guard(mutex_);
    for (const auto& [key, count] : counts_)
      if (count > 1) write(key, count);
    counts_.clear();
  }

 private:
  using Key = std::tuple<Shape, DType, std::string_view>;

  void write(const Key& key, std::uint64_t count) {
    const auto& [shape, dtype, layout] = key;
    const std::string line = "{\"m\": " + std::to_string(shape.m) + ", \"n\": " + std::to_string(shape.n) +
                             ", \"k\": " + std::to_string(shape.k) + ", \"batch\": " + std::to_string(shape.batch) + ", \"dtype\": \"" +
                             std::string(name_of(dtype)) + "\", \"layout\": \"" + std::string(layout) +
                             "\", \"count\": " + std::to_string(count) + "}\n";
    // Whole lines at once: appending processes do not mix them.
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

  std::FILE* file_;
  std::mutex mutex_;
  std::map<Key, std::uint64_t> counts_;
};

/// Null where nothing is traced. Never destroyed: products may still run while the process ends.
Trace* tracer() {
  static Trace* const instance = []() -> Trace* {
    const char* file = std::getenv("SYCL_MAT_TRACE");
    if (file == nullptr || *file == 0) return nullptr;
    auto* made = new Trace(file);
    std::atexit([] { tracer()->finish(); });
    return made;
  }();
  return instance;
}

}  // namespace

void trace(const Problem& p) {
  if (Trace* const t = tracer()) t->count(p);
}

}  // namespace sycl_mat
