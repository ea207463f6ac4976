// A folder of compiled programs. Every entry carries its whole key and a checksum, so that a foreign, truncated or damaged file is
// noticed, reported and rebuilt; writes are atomic; files are private to the user. A folder that cannot be used only costs time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sycl_mat {

/// $SYCL_MAT_CACHE_DIR, else the platform's user cache folder / "sycl_mat". May not exist.
std::filesystem::path cache_folder();

/// 64-bit FNV-1a: names files and finds damage; it is no protection against an attacker, the folder's permissions are.
std::uint64_t checksum(std::string_view bytes);

class DiskCache {
 public:
  /// shared: a folder that travels with the library, perhaps installed by somebody else: only read, nothing in it is made or removed.
  enum class Kind { of_the_user, shared };
  explicit DiskCache(std::filesystem::path folder, Kind kind = Kind::of_the_user);

  /// The payload stored under exactly this key. A damaged entry is removed, with a warning.
  std::optional<std::vector<char>> read(std::string_view key);
  /// Returns whether it was stored; warns once a process where it cannot be.
  bool write(std::string_view key, const std::vector<char>& payload);
  /// Drops an entry that turned out to be unusable.
  void remove(std::string_view key);

  std::filesystem::path path_of(std::string_view key) const;

  /// Holds other processes off one key while it is compiled. Where locks do not work (read-only folder, network drive) it holds nothing:
  /// then the same program may be compiled twice, which is only slower.
  class Lock {
   public:
    /// Waits for another holder, but not longer than this (by default longer than any of the kernels takes to compile): it may have been
    /// stopped. After that, with a warning, nothing is held.
    Lock(DiskCache& cache, std::string_view key, std::chrono::milliseconds longest_wait = std::chrono::seconds(20));
    bool held() const { return descriptor_ >= 0; }
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int descriptor_ = -1;
  };

 private:
  bool prepare_folder();
  void warn_once(const std::string& message);
  std::filesystem::path folder_;
  Kind kind_;
  std::atomic<bool> warned_{false};
};

}  // namespace sycl_mat
