#include "last_cache.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace sycl_mat {
namespace {

std::string first_word_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

/// "32768K", "32M".
std::int64_t bytes_of(const std::string& size) {
  std::int64_t bytes = 0;
  std::size_t i = 0;
  for (; i < size.size() && i < 12 && size[i] >= '0' && size[i] <= '9'; ++i) bytes = bytes * 10 + (size[i] - '0');
  if (i == size.size()) return bytes;
  return size[i] == 'K' ? bytes << 10 : size[i] == 'M' ? bytes << 20 : size[i] == 'G' ? bytes << 30 : 0;
}

/// Of a list like "0-3,64-67": 8. Not understood: 0.
int count_of(const std::string& list) {
  int count = 0;
  std::size_t at = 0;
  const auto number = [&] {
    int value = 0, digits = 0;
    for (; at < list.size() && digits < 7 && list[at] >= '0' && list[at] <= '9'; ++at, ++digits) value = value * 10 + (list[at] - '0');
    return digits > 0 ? value : -1;
  };
  while (at < list.size()) {
    const int first = number();
    int last = first;
    if (at < list.size() && list[at] == '-') ++at, last = number();
    if (first < 0 || last < first) return 0;
    count += last - first + 1;
    if (at < list.size() && list[at++] != ',') return 0;
  }
  return count;
}

}  // namespace

std::int64_t last_cache_bytes(const std::filesystem::path& processor, int processors) {
  for (int index = 0; index < 8; ++index) {
    const auto folder = processor / "cache" / ("index" + std::to_string(index));
    if (first_word_of(folder / "level") != "3") continue;
    const int sharers = count_of(first_word_of(folder / "shared_cpu_list"));
    const int caches = sharers > 0 ? (std::max(processors, 1) + sharers - 1) / sharers : 1;
    return bytes_of(first_word_of(folder / "size")) * caches;
  }
  return 0;
}

}  // namespace sycl_mat
