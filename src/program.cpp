#include "program.hpp"

#include <mutex>
#include <unordered_map>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

#include "disk_cache.hpp"
#include "ptx_target.hpp"
#include "sycl_mat/errors.hpp"
#include "vec_type_hint.hpp"
#include "warning.hpp"

namespace sycl_mat {
namespace fs = std::filesystem;
namespace syclex = sycl::ext::oneapi::experimental;
namespace {

/// The file from which a symbol was loaded, empty where the platform does not say.
fs::path file_of(const void* symbol) {
#if __has_include(<dlfcn.h>)
  Dl_info info{};
  if (dladdr(symbol, &info) && info.dli_fname) {
    std::error_code error;
    const fs::path path = fs::weakly_canonical(info.dli_fname, error);
    return error ? fs::path(info.dli_fname) : path;
  }
#endif
  (void)symbol;
  return {};
}

/// Tells one build of the SYCL runtime from another: its version when we were built, and the size of the library that is loaded now.
const std::string& runtime_version() {
  static const std::string version = [] {
    std::error_code error;
    const fs::path library = file_of(reinterpret_cast<const void*>(&sycl::platform::get_platforms));
    const auto size = library.empty() ? 0 : fs::file_size(library, error);
    return std::to_string(__LIBSYCL_MAJOR_VERSION) + "." + std::to_string(__LIBSYCL_MINOR_VERSION) + "." + std::to_string(error ? 0 : size);
  }();
  return version;
}

std::string text_of(const Constants& constants) {
  std::string out;
  for (const auto& [name, value] : constants) out.append(name).append("=").append(std::to_string(value)).append(" ");
  return out;
}

/// The first program that a process builds for PTX gets the device library's functions as calls instead of inlined code (47 instead of
/// 50 TFLOP/s, seen with 2026.2), and a cache would keep it: let a kernel of one line be the first.
void build_a_first_one(sycl::queue& queue) {
  static std::once_flag once;
  std::call_once(once, [&] {
    choose_ptx_target();
    const std::string source =
        "extern \"C\" [[__sycl_detail__::add_ir_attributes_function(\"sycl-nd-range-kernel\", 1)]] __attribute__((sycl_device)) void "
        "first(float* p) "
        "{ *p = 1; }\n";
    auto sources = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl, source);
    (void)syclex::build(sources);
  });
}

constexpr std::int64_t unknown = -1;

std::int64_t registers_of(const sycl::kernel& kernel, const sycl::device& device) {
  try {
    return static_cast<std::int64_t>(kernel.get_info<sycl::info::kernel_device_specific::ext_codeplay_num_regs>(device));
  } catch (const sycl::exception&) {
    return unknown;
  }
}

std::int64_t spills_of(const sycl::kernel& kernel, const sycl::device& device) {
  try {
    if (!device.has(sycl::aspect::ext_intel_spill_memory_size)) return unknown;
    return static_cast<std::int64_t>(kernel.get_info<sycl::ext::intel::info::kernel_device_specific::spill_memory_size>(device));
  } catch (const sycl::exception&) {
    return unknown;
  }
}

}  // namespace

fs::path data_folder() {
  static const fs::path folder = [] {
    if (const char* set = std::getenv("SYCL_MAT_DATA_DIR"); set && *set) return fs::path(set);
    const fs::path here = file_of(reinterpret_cast<const void*>(&data_folder)).parent_path();
    std::error_code error;
    for (const fs::path& candidate : {here, here.parent_path() / "share" / "sycl_mat"})
      if (!candidate.empty() && (fs::exists(candidate / "tuned", error) || fs::exists(candidate / "bundles", error))) return candidate;
    return fs::path();
  }();
  return folder;
}

std::string object_key(const Kernel& kernel, const std::string& source) {
  return "object " + std::string(kernel.name) + " source=" + std::to_string(checksum(source)) + "." + std::to_string(source.size()) +
         " runtime=" + std::to_string(__LIBSYCL_MAJOR_VERSION) + " hint=" + std::to_string(kernel.hand_vectorised);
}

std::vector<char> compile_object(sycl::queue& queue, const Kernel& kernel, const std::string& source) {
  std::string log;
  try {
    auto sources = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl, source);
    auto object =
        syclex::compile(sources, syclex::properties{syclex::save_log{&log}, syclex::build_options{std::vector<std::string>{"-O3"}}});
    std::vector<char> bundle = object.ext_oneapi_get_content();
    if (kernel.hand_vectorised && !add_vec_type_hint(bundle))
      warn("the kernel '" + std::string(kernel.name) + "' could not be marked as vectorised: building it takes longer.");
    return bundle;
  } catch (const sycl::exception& e) {
    throw CompileError("the kernel '" + std::string(kernel.name) + "' does not compile: " + e.what() + (log.empty() ? "" : "\n" + log), log,
                       "");
  }
}

struct Programs::State {
  /// One program; its mutex is held while it is being made, so that other threads wait for it instead of making it too.
  struct Entry {
    std::mutex making;
    std::optional<Program> program;
  };

  sycl::queue queue;
  DeviceInfo device;
  DiskCache disk{cache_folder()};
  DiskCache shipped{data_folder().empty() ? fs::path() : data_folder() / "bundles", DiskCache::Kind::shared};
  std::mutex mutex{};
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries{};

  Program make(const Kernel& kernel, const Constants& constants);
  Program build_for_ptx(const Kernel& kernel, const std::string& source, const Constants& constants);
  Program load(const Kernel& kernel, const std::vector<char>& executable, Origin origin);
  std::vector<char> object_for(const Kernel& kernel, const std::string& source, Origin& origin);
};

Program Programs::State::load(const Kernel& kernel, const std::vector<char>& executable, Origin origin) {
  auto bundle = syclex::get_kernel_bundle<sycl::bundle_state::executable>(
      queue.get_context(), {queue.get_device()}, sycl::span<char>(const_cast<char*>(executable.data()), executable.size()));
  sycl::kernel k = bundle.ext_oneapi_get_kernel(std::string(kernel.name));
  const auto device_ = queue.get_device();
  return Program{k, bundle, origin, registers_of(k, device_), spills_of(k, device_)};
}

std::vector<char> Programs::State::object_for(const Kernel& kernel, const std::string& source, Origin& origin) {
  origin = Origin::shipped_object;
  if (auto bundle = shipped.read(object_key(kernel, source))) return *std::move(bundle);
  origin = Origin::compiled;
  return compile_object(queue, kernel, source);
}

/// Bundles of PTX cannot be loaded again (2026.2: get_kernel_bundle finds no image in them), so nothing of them is kept on the disk.
Program Programs::State::build_for_ptx(const Kernel& kernel, const std::string& source, const Constants& constants) {
  std::string log;
  try {
    build_a_first_one(queue);
    auto sources = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl, source);
    auto bundle =
        syclex::build(sources, syclex::properties{syclex::save_log{&log}, syclex::build_options{std::vector<std::string>{"-O3"}}});
    sycl::kernel k = bundle.ext_oneapi_get_kernel(std::string(kernel.name));
    return Program{k, bundle, Origin::compiled, registers_of(k, queue.get_device()), unknown};
  } catch (const sycl::exception& e) {
    throw CompileError("the kernel '" + std::string(kernel.name) + "' does not build for " + device.name + ": " + e.what(), log,
                       text_of(constants));
  }
}

Program Programs::State::make(const Kernel& kernel, const Constants& constants) {
  const std::string source = render(kernel, constants);
  const std::string key = "executable device=" + device.fingerprint + " driver=" + device.driver_version + " backend=" + device.backend +
                          " runtime=" + runtime_version() + " " + object_key(kernel, source);
  const auto from_disk = [&]() -> std::optional<Program> {
    const auto executable = disk.read(key);
    if (!executable) return std::nullopt;
    try {
      return load(kernel, *executable, Origin::disk_cache);
    } catch (const sycl::exception& e) {
      warn("the cached program " + disk.path_of(key).string() + " cannot be used (" + e.what() + "); it is built again.");
      disk.remove(key);
      return std::nullopt;
    }
  };
  if (device.backend == "cuda") return build_for_ptx(kernel, source, constants);
  if (auto program = from_disk()) return *std::move(program);
  DiskCache::Lock lock(disk, key);
  if (auto program = from_disk()) return *std::move(program);  // another process made it while we waited

  Origin origin{};
  std::vector<char> object = object_for(kernel, source, origin);
  try {
    auto objects = syclex::get_kernel_bundle<sycl::bundle_state::object>(queue.get_context(), {queue.get_device()},
                                                                         sycl::span<char>(object.data(), object.size()));
    auto bundle = sycl::link(objects);
    disk.write(key, bundle.ext_oneapi_get_content());
    sycl::kernel k = bundle.ext_oneapi_get_kernel(std::string(kernel.name));
    const auto device_ = queue.get_device();
    return Program{k, bundle, origin, registers_of(k, device_), spills_of(k, device_)};
  } catch (const sycl::exception& e) {
    throw CompileError("the kernel '" + std::string(kernel.name) + "' does not build for " + device.name + ": " + e.what(), e.what(),
                       text_of(constants));
  }
}

Programs::Programs(sycl::queue& queue, const DeviceInfo& device) : state_(new State{queue, device}) {}
Programs::~Programs() = default;

const Program& Programs::get(const Kernel& kernel, const Constants& constants) {
  std::shared_ptr<State::Entry> entry;
  {
    std::lock_guard guard(state_->mutex);
    auto& slot = state_->entries[std::string(kernel.name) + " " + text_of(constants)];
    if (!slot) slot = std::make_shared<State::Entry>();
    entry = slot;
  }
  std::lock_guard guard(entry->making);
  if (!entry->program) {
    try {
      entry->program = state_->make(kernel, constants);
    } catch (CompileError& e) {
      throw CompileError(e.what(), e.log, text_of(constants));
    }
  }
  return *entry->program;
}

}  // namespace sycl_mat
