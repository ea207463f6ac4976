#include "disk_cache.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#if __has_include(<unistd.h>)
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#else
#include <process.h>
#endif

#include "warning.hpp"

namespace sycl_mat {
namespace fs = std::filesystem;
namespace {

// File layout: magic, key length, payload length, checksum of key and payload, key, payload.
constexpr char magic[8] = {'s', 'y', 'c', 'l', 'm', 'a', 't', '1'};
struct Header {
  char magic[8];
  std::uint64_t key_bytes, payload_bytes, checksum;
};

std::uint64_t checksum_of(std::string_view key, std::string_view payload) { return checksum(key) * 31 + checksum(payload); }

long process_id() {
#if __has_include(<unistd.h>)
  return getpid();
#else
  return _getpid();
#endif
}

}  // namespace

std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001b3u;
  return h;
}

fs::path cache_folder() {
  const auto set = [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
  };
  if (const char* folder = set("SYCL_MAT_CACHE_DIR")) return folder;
#if defined(_WIN32)
  if (const char* local = set("LOCALAPPDATA")) return fs::path(local) / "sycl_mat" / "cache";
#else
  if (const char* xdg = set("XDG_CACHE_HOME")) return fs::path(xdg) / "sycl_mat";
  if (const char* home = set("HOME")) return fs::path(home) / ".cache" / "sycl_mat";
#endif
  return {};
}

DiskCache::DiskCache(fs::path folder, Kind kind) : folder_(std::move(folder)), kind_(kind) {}

void DiskCache::warn_once(const std::string& message) {
  if (!warned_.exchange(true)) warn(message);
}

bool DiskCache::prepare_folder() {
  if (folder_.empty()) return false;
  std::error_code error;
  if (kind_ == Kind::shared) return fs::exists(folder_, error);
  const bool made = fs::create_directories(folder_, error);
  if (made) fs::permissions(folder_, fs::perms::owner_all, error);
  if (error) {
    warn_once("the cache folder " + folder_.string() + " cannot be made (" + error.message() +
              "): programs are compiled anew in every process. Set SYCL_MAT_CACHE_DIR to a folder that you may write to.");
    return false;
  }
#if __has_include(<unistd.h>)
  // Compiled code is loaded from here and run: a folder that somebody else owns or may write to must not be used.
  struct stat info{};
  if (stat(folder_.c_str(), &info) == 0) {
    if (info.st_uid == geteuid()) {
      if (info.st_mode & 022) chmod(folder_.c_str(), 0700);
    } else {
      warn_once("the cache folder " + folder_.string() +
                " belongs to another user and is not used. Set SYCL_MAT_CACHE_DIR to a folder of your own.");
      return false;
    }
  }
#endif
  return true;
}

fs::path DiskCache::path_of(std::string_view key) const {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.bin", static_cast<unsigned long long>(checksum(key)));
  return folder_ / name;
}

std::optional<std::vector<char>> DiskCache::read(std::string_view key) {
  if (folder_.empty()) return std::nullopt;
  std::error_code error;
  if (!fs::exists(folder_, error) || !prepare_folder()) return std::nullopt;
  const fs::path path = path_of(key);
  const auto kind = fs::status(path, error).type();
  if (kind == fs::file_type::not_found) return std::nullopt;
  std::ifstream file;
  if (kind == fs::file_type::regular) file.open(path, std::ios::binary);  // opening a pipe would wait for its writer
  if (kind == fs::file_type::regular && !file) return std::nullopt;
  Header header{};
  const auto size = fs::file_size(path, error);
  const bool whole = !error && file.read(reinterpret_cast<char*>(&header), sizeof header) &&
                     std::memcmp(header.magic, magic, sizeof magic) == 0 && header.key_bytes < size && header.payload_bytes < size &&
                     sizeof header + header.key_bytes + header.payload_bytes == size;
  if (whole) {
    std::string stored(header.key_bytes, '\0');
    std::vector<char> payload(header.payload_bytes);
    if (file.read(stored.data(), static_cast<std::streamsize>(stored.size())) &&
        file.read(payload.data(), static_cast<std::streamsize>(payload.size())) &&
        header.checksum == checksum_of(stored, {payload.data(), payload.size()})) {
      if (stored == key) return payload;
      return std::nullopt;  // another program whose key has the same hash: it is overwritten by the next write
    }
  }
  file.close();
  warn("the cache file " + path.string() + " is damaged or not ours; its program is built again.");
  if (kind_ == Kind::of_the_user) fs::remove(path, error);
  return std::nullopt;
}

bool DiskCache::write(std::string_view key, const std::vector<char>& payload) {
  if (!prepare_folder()) return false;
  static std::atomic<unsigned> serial{0};
  const fs::path path = path_of(key);
  fs::path temporary = path;
  temporary += "." + std::to_string(process_id()) + "." + std::to_string(serial++) + ".tmp";
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.key_bytes = key.size();
  header.payload_bytes = payload.size();
  header.checksum = checksum_of(key, {payload.data(), payload.size()});
  bool good = false;
  std::error_code error;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (file) {
      if (kind_ == Kind::of_the_user) fs::permissions(temporary, fs::perms::owner_read | fs::perms::owner_write, error);
      file.write(reinterpret_cast<const char*>(&header), sizeof header);
      file.write(key.data(), static_cast<std::streamsize>(key.size()));
      file.write(payload.data(), static_cast<std::streamsize>(payload.size()));
      file.close();
      good = !file.fail();
    }
  }
  if (good) {
    fs::rename(temporary, path, error);  // atomic: a reader sees the old file, none, or the whole new one
    good = !error;
  }
  if (!good) {
    fs::remove(temporary, error);
    warn_once("the cache folder " + folder_.string() +
              " cannot be written (read-only or full disk?): programs are compiled anew in every process.");
  }
  return good;
}

void DiskCache::remove(std::string_view key) {
  std::error_code error;
  if (!folder_.empty()) fs::remove(path_of(key), error);
}

#if __has_include(<unistd.h>)
DiskCache::Lock::Lock(DiskCache& cache, std::string_view key, std::chrono::milliseconds longest_wait) {
  if (!cache.prepare_folder()) return;
  fs::path path = cache.path_of(key);
  path.replace_extension(".lock");
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // Not for ever: whoever holds it may have been stopped. Compiling the same program twice only costs time.
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const bool held = errno == EWOULDBLOCK, waiting = held && std::chrono::steady_clock::now() < end;
    if (waiting) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    if (held)
      warn("another process has held " + path.string() + " for long (is it stopped?); the program is compiled without waiting for it.");
    close(descriptor_);
    descriptor_ = -1;
  }
}

DiskCache::Lock::~Lock() {
  if (descriptor_ >= 0) close(descriptor_);  // closing releases the lock; the empty file stays, so that all agree on one inode
}
#else
DiskCache::Lock::Lock(DiskCache&, std::string_view, std::chrono::milliseconds) {}
DiskCache::Lock::~Lock() {}
#endif

}  // namespace sycl_mat
