// make_bundles <folder>: compiles the shipped programs to object bundles, run while the package is built.
#include <cstdio>
#include <set>

#include "disk_cache.hpp"
#include "program.hpp"
#include "shipped.hpp"

int main(int argc, char** argv) try {
  using namespace sycl_mat;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <folder>\n", argv[0]);
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  DiskCache bundles(argv[1], DiskCache::Kind::shared);
  sycl::queue queue{sycl::property::queue::in_order{}};
  std::set<std::string> made;
  for (const ShippedProgram& shipped : shipped_programs()) {
    const std::string source = render(*shipped.kernel, shipped.constants);
    const std::string key = object_key(*shipped.kernel, source);
    if (!made.insert(key).second) continue;
    if (!bundles.write(key, compile_object(queue, *shipped.kernel, source))) return 1;
  }
  std::printf("%zu object bundles in %s\n", made.size(), argv[1]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "make_bundles: %s\n", e.what());
  return 1;
}
