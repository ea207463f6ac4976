#include "onemkl.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <vector>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

#include "../plugins/onemkl_interface.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat::onemkl {
namespace {

namespace fs = std::filesystem;

// ---- loading ---------------------------------------------------------------------------------------------------------------------
struct Library {
  std::mutex mutex;
  std::vector<fs::path> folders;
  std::atomic<Submit*> submit{nullptr};
};

Library& library() {
  static auto* instance = new Library;  // never destroyed: threads may run products while the process exits
  return *instance;
}

[[noreturn]] void missing(const std::string& why) {
  throw UnsupportedError("the backend \"onemkl\" is not usable: " + why + ". Install it with: pip install sycl-mat[onemkl]");
}

#if __has_include(<dlfcn.h>)
fs::path folder_of(const void* symbol) {
  Dl_info info{};
  std::error_code error;
  if (!dladdr(symbol, &info) || !info.dli_fname) return {};
  const fs::path path = fs::weakly_canonical(info.dli_fname, error);
  return (error ? fs::path(info.dli_fname) : path).parent_path();
}

void add_from_environment(std::vector<fs::path>& out, const char* variable, const char* below) {
  if (const char* value = std::getenv(variable); value && *value) out.push_back(fs::path(value) / below);
}

std::vector<fs::path> onemkl_folders(const std::vector<fs::path>& told) {
  std::vector<fs::path> out;
  add_from_environment(out, "SYCL_MAT_ONEMKL_DIR", "");
  if (!out.empty()) return out;
  out = told;
  if (const fs::path runtime = folder_of(reinterpret_cast<const void*>(&sycl::platform::get_platforms)); !runtime.empty())
    out.push_back(runtime);
  add_from_environment(out, "MKLROOT", "lib");
  out.emplace_back();
  return out;
}

/// Where the plugin may lie: beside this library or the program that holds it, above it in a build folder, or where the C++ library was
/// installed.
std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> out;
  add_from_environment(out, "SYCL_MAT_PLUGIN_DIR", "");
  const fs::path here = folder_of(reinterpret_cast<const void*>(&plugin_folders));
  const fs::path above = here.parent_path();
  for (const fs::path& folder : {here, above, above.parent_path(), above / "lib"}) out.push_back(folder);
#ifdef SYCL_MAT_PLUGIN_FOLDER
  out.emplace_back(SYCL_MAT_PLUGIN_FOLDER);
#endif
  return out;
}

/// The first of the folders' libraries of this name that loads; null with `error` set where there is none. The empty folder stands for
/// the dynamic linker's own.
void* load(const std::string& file, const std::vector<fs::path>& folders, int flags, std::string& error) {
  error = "there is no such file";
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!folder.empty() && !fs::exists(folder / file, ignored)) continue;
    if (void* handle = dlopen((folder / file).c_str(), flags)) return handle;
    error = dlerror();
  }
  return nullptr;
}

struct Part {
  const char* file;
  int flags;
};
// In this order, because none but the last names what it needs. The interface layer exports sgemm_, cblas_sgemm and their like with
// 64-bit integers: global, it would take the place of another BLAS in this process, so it stays local, and so do its users. The two
// global ones export names of MKL's own alone; the interface layer's tables want them while it loads.
constexpr std::array parts{Part{"libtbb.so.12", RTLD_LAZY | RTLD_LOCAL}, Part{"libmkl_core.so.3", RTLD_LAZY | RTLD_GLOBAL},
                           Part{"libmkl_tbb_thread.so.3", RTLD_LAZY | RTLD_GLOBAL}, Part{"libmkl_intel_ilp64.so.3", RTLD_LAZY | RTLD_LOCAL},
                           Part{"libmkl_sycl_blas.so.6", RTLD_LAZY | RTLD_LOCAL}};

Submit* load_everything(const std::vector<fs::path>& told) {
  const std::vector<fs::path> folders = onemkl_folders(told);
  std::string error;
  for (const Part& part : parts)
    if (!load(part.file, folders, part.flags, error)) missing(std::string(part.file) + " could not be loaded (" + error + ")");
  // The plugin needs all of them by name, so that loading it makes the interface layer visible to the library that calls it.
  void* plugin = load("libsycl_mat_onemkl.so", plugin_folders(), RTLD_NOW | RTLD_LOCAL, error);
  void* symbol = plugin ? dlsym(plugin, submit_name) : nullptr;
  if (!symbol)
    throw UnsupportedError("the backend \"onemkl\" is not part of this build: libsycl_mat_onemkl.so could not be loaded (" + error + ")");
  return reinterpret_cast<Submit*>(symbol);
}
#else
std::vector<fs::path> plugin_folders();
Submit* load_everything(const std::vector<fs::path>&) { missing("it is supported on Linux only"); }
#endif

// ---- what oneMKL can do ----------------------------------------------------------------------------------------------------------
/// Stacks that gemm_batch does not do are submitted one matrix at a time, as long as there are few.
constexpr index_t most_single_submissions = 64;
constexpr index_t most_copies = 1024;  // of C into D, a few microseconds each

/// So many products of two int8 numbers always fit an int32.
constexpr index_t most_int8_products = (index_t(1) << 31) / (128 * 128) - 1;

/// Whether float16 holds it exactly: 11 bits, of which the last is worth at least 2⁻²⁴, and no more than 65504.
bool is_float16(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent), bits = std::ldexp(mantissa, 11), units = std::ldexp(x, 24);
  return std::fabs(x) <= 65504 && bits == std::trunc(bits) && units == std::trunc(units);
}

/// Whether gemm_batch does a stack with these strides. On the CPU it multiplies 8 and 16-bit numbers through copies that overwrite
/// what lies between the rows and the matrices of D, and with some layouts the products are wrong (2026.2): those one by one.
bool walks(index_t a, index_t b, index_t d, const Problem& p) {
  return a >= 0 && b >= 0 && d >= p.m * p.d.ld && (p.dtype == DType::float32 || p.dtype == DType::float64);
}
bool inner_walks(const Problem& p) { return p.batch_inner == 1 || walks(p.a.inner, p.b.inner, p.d.inner, p); }

/// gemm_batch walks the inner axis: the outer one is put there where it is longer, or the only one whose strides it takes.
void put_best_axis_inside(Problem& p) {
  if (p.batch_outer == 1 || !walks(p.a.outer, p.b.outer, p.d.outer, p)) return;
  if (p.batch_outer <= p.batch_inner && inner_walks(p)) return;
  std::swap(p.batch_outer, p.batch_inner);
  for (Operand* o : {&p.a, &p.b, &p.c, &p.d}) std::swap(o->inner, o->outer);
}

index_t submissions(const Problem& p) { return inner_walks(p) ? p.batch_outer : p.batch(); }

/// C already is where the product goes.
bool in_place(const Problem& p) {
  return p.c.data == p.d.data && p.c.ld == p.d.ld && (p.batch_inner == 1 || p.c.inner == p.d.inner) &&
         (p.batch_outer == 1 || p.c.outer == p.d.outer);
}

void* at(const Operand& o, index_t outer, index_t inner, DType type) {
  return static_cast<char*>(o.data) + (outer * o.outer + inner * o.inner) * size_of(type);
}

/// Whether all of the matrix lies in one piece, in C as in D.
bool in_one_piece(const Problem& p) { return p.m == 1 || (p.c.ld == p.n && p.d.ld == p.n); }
index_t copies(const Problem& p) { return p.batch() * (in_one_piece(p) ? 1 : p.m); }

/// oneMKL adds to what is where the product goes: puts C there. (The runtime's memcpy2d may want a kernel, which we cannot compile.)
void copy_c(Context::State& context, const Problem& p) {
  const bool whole = in_one_piece(p);
  const index_t lines = whole ? 1 : p.m;
  const auto bytes = static_cast<std::size_t>((whole ? p.m : 1) * p.n * size_of(p.out));
  for (index_t o = 0; o < p.batch_outer; ++o)
    for (index_t i = 0; i < p.batch_inner; ++i)
      for (index_t line = 0; line < lines; ++line)
        context.queue.memcpy(static_cast<char*>(at(p.d, o, i, p.out)) + line * p.d.ld * size_of(p.out),
                             static_cast<char*>(at(p.c, o, i, p.out)) + line * p.c.ld * size_of(p.out), bytes);
}

}  // namespace

void add_folder(const fs::path& folder) {
  std::lock_guard guard(library().mutex);
  library().folders.push_back(folder);
}

void require() {
  Library& l = library();
  if (l.submit) return;
  std::lock_guard guard(l.mutex);
  if (!l.submit) l.submit = load_everything(l.folders);
}

bool usable() {
  try {
    require();
    return true;
  } catch (const UnsupportedError&) {
    return false;
  }
}

std::string why_not(const Problem& problem) {
  Problem p = problem;
  put_best_axis_inside(p);
  const Epilogue& e = p.epilogue;
  if (p.k == 0) return "K is 0";  // an int8 product then fails to allocate nothing, and ends the process (2026.2)
  if (e.bias_axis != BiasAxis::none) return "its gemm adds no bias";
  if (e.activation != Activation::none) return "its gemm has no activation";
  if (p.precision == Precision::tf32) return "precision \"tf32\" is for our kernels";
  const index_t a_line = p.a.transposed ? p.m : p.k, b_line = p.b.transposed ? p.k : p.n;
  if (p.a.ld < a_line || p.b.ld < b_line || p.d.ld < p.n)
    return "it takes no leading dimension smaller than a row (rows that repeat, overlap or run backwards)";
  if (e.beta != 0 && !in_place(p) && copies(p) > most_copies) return "C would have to be copied first, row by row or matrix by matrix";
  if (submissions(p) > most_single_submissions)
    return "its gemm_batch does not do this dtype or these strides, and there are many matrices";
  // By its interface, scalars of an int8 product are float32. Sums beyond int32 wrap around in ours and in NumPy.
  if (p.dtype == DType::int8 && (e.alpha != 1 || e.beta != 0))
    return "it takes alpha and beta of an int8 product as float32, which may round";
  if (p.dtype == DType::int8 && p.k > most_int8_products) return "the sums may exceed int32";
  if (p.dtype == DType::float16 && !(is_float16(e.alpha) && is_float16(e.beta)))
    return "it takes alpha and beta as float16, which would round them";
  return {};
}

void gemm(Context::State& context, const Problem& problem) {
  require();
  Call call{problem};
  Problem& p = call.problem;
  put_best_axis_inside(p);
  if (p.epilogue.beta != 0 && !in_place(p)) copy_c(context, p);
  const bool together = inner_walks(p);
  const index_t outer = p.batch_outer, inner = together ? 1 : p.batch_inner;
  const Operand a = p.a, b = p.b, d = p.d;
  p.batch_outer = 1;
  if (!together) p.batch_inner = 1;
  try {
    for (index_t o = 0; o < outer; ++o)
      for (index_t i = 0; i < inner; ++i) {
        p.a.data = at(a, o, i, p.dtype);
        p.b.data = at(b, o, i, p.dtype);
        p.d.data = at(d, o, i, p.out);
        library().submit.load()(context.queue, call);
        context.pending.submitted();
      }
  } catch (const sycl::exception&) {
    throw;  // translated with the device's other failures
  } catch (const std::exception& e) {
    throw DeviceError(std::string("oneMKL failed: ") + e.what());
  }
}

}  // namespace sycl_mat::onemkl
