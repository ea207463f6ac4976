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
  std::vector<ShippedProgram> wanted = shipped_programs();
  // Most packages are built where they will run: its caches and its tuned constants are not those of the models.
  for (const DeviceInfo& device : devices())
    for (const DType dtype : {DType::float32, DType::float64}) {
      if (dtype == DType::float64 && !device.has_fp64) continue;
      for (ShippedProgram& program : usual_programs(device, dtype)) wanted.push_back(std::move(program));
    }
  for (const ShippedProgram& shipped : wanted) {
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
