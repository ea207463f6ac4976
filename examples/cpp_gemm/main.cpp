// Products from C++: views of the program's own memory, a fused epilogue, a stack, and products that run while the program goes on.
//
// For the processor, the OpenCL driver of the wheel intel-opencl-rt must be known before the program starts:
//   OCL_ICD_FILENAMES=<prefix>/lib/libintelocl.so build/cpp_gemm
#include <cmath>
#include <cstdio>
#include <string>
#include <sycl_mat/sycl_mat.hpp>
#include <vector>

namespace {

int failures = 0;

void check(const char* what, double have, double want) {
  const bool right = std::fabs(have - want) <= 1e-4 * std::fabs(want);
  std::printf("%-40s %12.4f %s\n", what, have, right ? "right" : "WRONG");
  failures += !right;
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace sycl_mat;
  Context& device = context(argc > 1 ? argv[1] : "");  // "cpu", "gpu", "gpu:1", …; "": the default
  std::printf("%s\n\n", device.device().name.c_str());

  // A is 300×200, B 200×100, both row-major; the library reads and writes this memory where the device can, else copies of it.
  const std::int64_t m = 300, k = 200, n = 100;
  std::vector<float> a(std::size_t(m * k), 0.5f), b(std::size_t(k * n), 2.f), c(std::size_t(m * n));
  a[3] = 1.5f;
  matmul(device, row_major(a.data(), m, k), row_major(b.data(), k, n), row_major(c.data(), m, n));
  check("A*B", c[0], 0.5 * 2 * double(k) + 2);

  // D ← relu(−A·B + 3·C + bias), C in place, one bias value a column.
  std::vector<float> bias(std::size_t(n), 1.f);
  GemmOptions options;
  options.epilogue.alpha = -1;
  options.epilogue.beta = 3;
  options.epilogue.bias = bias.data();
  options.epilogue.bias_axis = BiasAxis::column;
  options.epilogue.activation = Activation::relu;
  const MatrixView d = row_major(c.data(), m, n);
  gemm(device, row_major(a.data(), m, k), row_major(b.data(), k, n), &d, d, options);
  check("relu(-A*B + 3*C + bias)", c[std::size_t(n)], 2 * 200 + 1);

  // Aᵀ·A: a transposed view costs nothing.
  const MatrixView view = row_major(a.data(), m, k);
  std::vector<float> square(std::size_t(k * k));
  matmul(device, view.transposed(), view, row_major(square.data(), k, k));
  check("A^T*A", square[1], 0.25 * double(m));

  // A stack of 50 matrices times one matrix, which is broadcast.
  std::vector<float> stack(std::size_t(50 * 8 * 4), 1.f), one(std::size_t(4 * 6), 3.f), products(std::size_t(50 * 8 * 6));
  MatrixView left = row_major(stack.data(), 8, 4), out = row_major(products.data(), 8, 6);
  left.batch = {{50, 8 * 4}};
  out.batch = {{50, 8 * 6}};
  matmul(device, left, row_major(one.data(), 4, 6), out);
  check("a stack", products.back(), 12);

  // Two products that depend on each other, submitted without waiting: the queue keeps their order.
  options = {};
  options.wait = false;
  std::vector<float> first(std::size_t(m * n)), second(std::size_t(m * n));
  std::vector<float> eye(std::size_t(n * n), 0.f);
  for (std::int64_t i = 0; i < n; ++i) eye[std::size_t(i * n + i)] = 2.f;
  const Event begun = matmul(device, view, row_major(b.data(), k, n), row_major(first.data(), m, n), options);
  Event done = matmul(device, row_major(first.data(), m, n), row_major(eye.data(), n, n), row_major(second.data(), m, n), options);
  done.wait();
  check("(A*B)*2I, submitted without waiting", second[std::size_t(n)], 2 * 200);

  // What is wrong with the shapes is an exception, before anything is written.
  try {
    matmul(device, view, view, row_major(square.data(), k, k));
    ++failures;
  } catch (const SizeError& e) {
    std::printf("%s\n", e.what());
  }

  const Explanation why = explain(device, view, row_major(b.data(), k, n), nullptr, row_major(c.data(), m, n));
  std::printf("\nkernel %s: %s\n", why.kernel.c_str(), why.reason.c_str());
  return failures;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
