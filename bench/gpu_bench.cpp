// gpu_bench: our kernels on a GPU, with cuBLAS in the same run where it is installed. TFLOP/s by the wall clock over back-to-back launches
// of operands that are on the device: what a kernel costs, not what a call from Python costs.
//
//   gpu_bench [--cublas libcublas.so.13] [--device cuda:0] [--type float16] [--ms 40] [--pause 200] [--check] kernel…
//             -- MxNxK[:layout][:batch]…
//
// A kernel is "cublas", "auto" (the planner's choice), a name, or "tiled/8,16,8,16,8,4/split_k=2,swizzle=8" with its constants. A layout is
// two letters, N or T: how A and B are stored. Before each figure the device rests for --pause milliseconds: it lowers its clock while it
// is hot, and no kernel shall pay for the one before. --check prints the largest error of sampled results, relative to Σ|a·b|: of 16-bit
// types mostly what rounding the result costs. Types are float64, float32, float16 and bfloat16; the last two cuBLAS sums in float32, too.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/narrow_types.hpp"
#include "context.hpp"
#include "launch.hpp"
#include "params_json.hpp"
#include "plan.hpp"
#include "rearrange.hpp"
#include "sycl_mat/sycl_mat.hpp"
#include "view.hpp"

namespace {

using namespace sycl_mat;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Shape {
  index_t m = 0, n = 0, k = 0, batch = 1;
  bool trans_a = false, trans_b = false;
  std::string text;
};

Shape parse_shape(const std::string& text) {
  Shape s;
  s.text = text;
  char layout[3] = "NN";
  long long m = 0, n = 0, k = 0, batch = 1;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld:%2[NT]:%lld", &m, &n, &k, layout, &batch) < 3) throw InputError("not a shape: " + text);
  s.m = m, s.n = n, s.k = k, s.batch = batch;
  s.trans_a = layout[0] == 'T';
  s.trans_b = layout[1] == 'T';
  return s;
}

/// cuBLAS, loaded when asked for: TF32 stays off, as is its default.
struct Cublas {
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int, long long, const void*, int, int, long long,
                       const void*, void*, int, int, long long, int, int, int);
  void* handle = nullptr;
  Gemm gemm = nullptr;
  int (*synchronize)() = nullptr;

  void open(const char* file) {
    void* library = dlopen(file, RTLD_NOW);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || !driver) throw Error(std::string("cuBLAS cannot be loaded: ") + dlerror());
    const auto create = reinterpret_cast<int (*)(void**)>(dlsym(library, "cublasCreate_v2"));
    gemm = reinterpret_cast<Gemm>(dlsym(library, "cublasGemmStridedBatchedEx"));
    synchronize = reinterpret_cast<int (*)()>(dlsym(driver, "cuCtxSynchronize"));
    if (!create || !gemm || create(&handle) != 0) throw Error("cuBLAS does not start");
  }
  /// Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ.
  void run(const Shape& s, DType type, const void* a, const void* b, void* d) const {
    const float ones[] = {1, 0};
    const double wide_ones[] = {1, 0};
    const bool wide = type == DType::float64;
    const void *one = wide ? static_cast<const void*>(wide_ones) : ones, *zero = wide ? static_cast<const void*>(wide_ones + 1) : ones + 1;
    const int cuda_type = wide ? 1 : type == DType::float16 ? 2 : type == DType::bfloat16 ? 14 : 0;
    const int sums = wide ? 70 : 68;  // CUBLAS_COMPUTE_64F, …_32F
    constexpr int default_algorithm = -1;
    const int status = gemm(handle, s.trans_b, s.trans_a, int(s.n), int(s.m), int(s.k), one, b, cuda_type, int(s.trans_b ? s.k : s.n),
                            s.k * s.n, a, cuda_type, int(s.trans_a ? s.m : s.k), s.m * s.k, zero, d, cuda_type, int(s.n), s.m * s.n,
                            int(s.batch), sums, default_algorithm);
    if (status != 0) throw Error("cublasGemmStridedBatchedEx: " + std::to_string(status));
  }
};

DType parse_type(const std::string& text) {
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16})
    if (text == name_of(type)) return type;
  throw InputError("not a type that can be measured here: " + text);
}

/// The numbers as elements of a type, and what they have become as such.
std::vector<char> elements_of(std::vector<float>& numbers, DType type) {
  std::vector<char> elements(numbers.size() * std::size_t(size_of(type)));
  if (type == DType::float32) std::memcpy(elements.data(), numbers.data(), elements.size());
  if (type == DType::float64) std::copy(numbers.begin(), numbers.end(), reinterpret_cast<double*>(elements.data()));
  for (std::size_t i = 0; size_of(type) == 2 && i < numbers.size(); ++i) {
    std::uint16_t bits;
    if (type == DType::float16) {
      const auto narrow = to_float16(numbers[i]);
      bits = narrow.bits, numbers[i] = float(narrow);
    } else {
      const auto narrow = to_bfloat16(numbers[i]);
      bits = narrow.bits, numbers[i] = float(narrow);
    }
    std::memcpy(elements.data() + i * 2, &bits, 2);
  }
  return elements;
}
double number_at(const std::vector<char>& elements, std::size_t i, DType type) {
  if (type == DType::float64) {
    double x;
    std::memcpy(&x, elements.data() + i * 8, 8);
    return x;
  }
  if (type == DType::float32) {
    float x;
    std::memcpy(&x, elements.data() + i * 4, 4);
    return x;
  }
  std::uint16_t bits;
  std::memcpy(&bits, elements.data() + i * 2, 2);
  return type == DType::float16 ? float(float16_bits{bits}) : float(bfloat16_bits{bits});
}

MatrixView view_of(void* data, DType type, index_t rows, index_t cols, bool transposed, index_t batch) {
  auto* const floats = static_cast<float*>(data);
  MatrixView v = transposed ? row_major(floats, cols, rows).transposed() : row_major(floats, rows, cols);
  v.dtype = type;
  if (batch > 1) v.batch = {{batch, rows * cols}};
  return v;
}

GemmOptions options_of(const std::string& kernel) {
  GemmOptions options;
  std::stringstream parts(kernel);
  std::string name, params, extras;
  std::getline(parts, name, '/');
  std::getline(parts, params, '/');
  std::getline(parts, extras, '/');
  if (name != "auto") options.kernel = name;
  if (name == "tf32x3" || name == "mma_sync") options.precision = Precision::tf32;  // short sums too
  if (params.empty()) return options;
  TiledChoice choice;
  TileParams& t = choice.params;
  if (std::sscanf(params.c_str(), "%d,%d,%d,%d,%d,%d", &t.tile_m, &t.tile_n, &t.tile_k, &t.batch_m, &t.batch_n, &t.chunk) != 6)
    throw InputError("not a set of six constants: " + params);
  Params chosen = choice;
  std::stringstream list(extras);
  for (std::string item; std::getline(list, item, ',');) {
    const auto equals = item.find('=');
    bool known = false;
    for (const ParamField& field : fields_of(chosen))
      if (item.substr(0, equals) == field.name) field.set(chosen, std::atoi(item.c_str() + equals + 1)), known = true;
    if (!known) throw InputError("no such constant: " + item);
  }
  options.params = chosen;
  return options;
}

struct Arrays {
  DType type;
  std::vector<float> host_a, host_b;
  std::vector<char> host_d;
  void *a, *b, *d;
};

/// Largest |computed − exact| / Σ|a·b| over some columns and rows of the first matrix.
double largest_error(const Shape& s, const Arrays& o) {
  std::mt19937 random(1);
  double largest = 0;
  std::vector<double> column(std::size_t(s.k));
  for (int sample = 0; sample < 8; ++sample) {
    const index_t j = index_t(random() % std::uint32_t(s.n));
    for (index_t x = 0; x < s.k; ++x) column[std::size_t(x)] = o.host_b[std::size_t(s.trans_b ? j * s.k + x : x * s.n + j)];
    for (int row = 0; row < 64; ++row) {
      const index_t i = index_t(random() % std::uint32_t(s.m));
      double exact = 0, magnitude = 0;
      for (index_t x = 0; x < s.k; ++x) {
        const double product = column[std::size_t(x)] * o.host_a[std::size_t(s.trans_a ? x * s.m + i : i * s.k + x)];
        exact += product;
        magnitude += std::fabs(product);
      }
      const double error = std::fabs(number_at(o.host_d, std::size_t(i * s.n + j), o.type) - exact) / magnitude;
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

/// Seconds of one launch: the best of five rounds of back-to-back launches that take `seconds` together.
template <class Launch, class Wait>
double time_of(double seconds, double pause, Launch launch, Wait wait) {
  launch();
  wait();
  std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  double start = now();
  launch();
  wait();
  const int count = std::max(3, std::min(2000, int(seconds / (now() - start))));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    start = now();
    for (int i = 0; i < count; ++i) launch();
    wait();
    best = std::min(best, (now() - start) / count);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  std::string device = "gpu", cublas_file = "libcublas.so";
  std::vector<std::string> kernels;
  std::vector<Shape> shapes;
  double seconds = 0.04, pause = 0.2;
  bool check = false, in_shapes = false;
  DType type = DType::float32;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--cublas")
      cublas_file = argv[++i];
    else if (arg == "--device")
      device = argv[++i];
    else if (arg == "--type")
      type = parse_type(argv[++i]);
    else if (arg == "--ms")
      seconds = std::atof(argv[++i]) / 1000;
    else if (arg == "--pause")
      pause = std::atof(argv[++i]) / 1000;
    else if (arg == "--check")
      check = true;
    else if (arg == "--")
      in_shapes = true;
    else if (in_shapes)
      shapes.push_back(parse_shape(arg));
    else
      kernels.push_back(arg);
  }
  Context::State& context = sycl_mat::context(device).state();
  std::printf("%s, driver %s; %s, TFLOP/s", context.info.name.c_str(), context.info.driver_version.c_str(),
              std::string(name_of(type)).c_str());
  std::printf(check ? ", error / Σ|a·b|\n" : "\n");
  Cublas cublas;
  std::printf("%-24s", "M×N×K:layout:batch");
  for (const auto& kernel : kernels) std::printf(" %*s", std::max(12, int(kernel.size())), kernel.c_str());
  std::printf("\n");
  for (const Shape& s : shapes) {
    const auto size = [&](index_t rows, index_t cols) { return std::size_t(rows * cols * s.batch); };
    Arrays o;
    o.type = type;
    o.host_a.resize(size(s.m, s.k)), o.host_b.resize(size(s.k, s.n)), o.host_d.resize(size(s.m, s.n) * std::size_t(size_of(type)));
    std::mt19937 random(12345);
    std::vector<float> pool(1 << 20);
    std::normal_distribution<float> normal;
    for (float& x : pool) x = normal(random);
    for (auto* v : {&o.host_a, &o.host_b})
      for (std::size_t i = 0, at = random() % 4096; i < v->size(); ++i, at = (at + 1) % 1048573) (*v)[i] = pool[at];
    sycl::queue& queue = context.queue;
    const auto on_device = [&](const std::vector<char>& host) {
      void* p = sycl::malloc_device(host.size(), queue);
      queue.memcpy(p, host.data(), host.size()).wait();
      return p;
    };
    o.a = on_device(elements_of(o.host_a, type)), o.b = on_device(elements_of(o.host_b, type)), o.d = on_device(o.host_d);
    std::printf("%-24s", s.text.c_str());
    std::string notes;
    for (const auto& kernel : kernels) {
      const int width = std::max(12, int(kernel.size()));
      try {
        queue.memset(o.d, 0xff, o.host_d.size()).wait();
        double time = 0;
        if (kernel == "cublas") {
          if (!cublas.handle) cublas.open(cublas_file.c_str());
          time = time_of(seconds, pause, [&] { cublas.run(s, type, o.a, o.b, o.d); }, [&] { cublas.synchronize(); });
        } else {
          const GemmOptions options = options_of(kernel);
          const Problem problem = make_problem(
              sycl_mat::check(view_of(o.a, type, s.m, s.k, s.trans_a, s.batch), view_of(o.b, type, s.k, s.n, s.trans_b, s.batch), nullptr,
                              view_of(o.d, type, s.m, s.n, false, s.batch), options),
              options);
          const Plan plan = make_plan(problem, context.info, options);
          const Program& program = context.programs.get(*plan.kernel, plan.constants);
          time = time_of(seconds, pause, [&] { launch(context, plan, program, problem); }, [&] { context.wait(); });
          notes += "\n    " + kernel + ": " + std::string(plan.kernel->name) + ", " + reason_of(plan, problem) + ", " +
                   std::to_string(program.registers) + " registers";
        }
        const double tflops = 2.0 * double(s.m) * double(s.n) * double(s.k) * double(s.batch) / time / 1e12;
        if (check) {
          queue.memcpy(o.host_d.data(), o.d, o.host_d.size()).wait();
          char cell[64];
          std::snprintf(cell, sizeof(cell), "%.2f %.1e", tflops, largest_error(s, o));
          std::printf(" %*s", width, cell);
        } else {
          std::printf(" %*.2f", width, tflops);
        }
        std::fflush(stdout);
      } catch (const std::exception& e) {
        std::printf(" %*s", width, "-");
        notes += "\n    " + kernel + ": " + std::string(e.what()).substr(0, 300);
      }
    }
    std::printf("%s\n", std::getenv("NOTES") ? notes.c_str() : "");
    for (void* p : {o.a, o.b, o.d}) sycl::free(p, queue);
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "gpu_bench: %s\n", e.what());
  return 1;
}
