#include "kernel_version.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

#include "backends/host.hpp"
#include "disk_cache.hpp"
#include "kernel.hpp"
#include "program.hpp"

#ifndef SYCL_MAT_HOST_VERSION  // of cmake/host_version.cmake
#define SYCL_MAT_HOST_VERSION "unknown"
#endif

namespace sycl_mat {

std::string code_of(std::string_view source) {
  std::string code;
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source.substr(at).starts_with("//")) at = std::min(source.find('\n', at), source.size());
    if (source.substr(at).starts_with("/*")) at = std::min(source.find("*/", at + 2), source.size() - 2) + 2;
    const char c = at < source.size() ? source[at] : '\n';
    if (!std::isspace(static_cast<unsigned char>(c)))
      code += c;
    else if (!code.empty() && code.back() != ' ')
      code += ' ';
  }
  return code;
}

const std::string& kernel_version(std::string_view kernel) {
  static const std::map<std::string, std::string, std::less<>> versions = [] {
    std::map<std::string, std::string, std::less<>> all;
    for (const Kernel& k : all_kernels()) {
      char text[17];
      std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(checksum(code_of(render(k, {})))));
      all.emplace(k.name, text);
    }
    all.emplace(host::name, SYCL_MAT_HOST_VERSION);
    return all;
  }();
  static const std::string none;
  const auto at = versions.find(kernel);
  return at == versions.end() ? none : at->second;
}

}  // namespace sycl_mat
