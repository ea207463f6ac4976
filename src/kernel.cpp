// The one list of kernels, and the constants that all of them have.
#include "kernel.hpp"

#include "backends/host.hpp"
#include "families/families.hpp"
#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

int element_of(DType type) {
  switch (type) {
    case DType::float32:
      return 0;
    case DType::float64:
      return 1;
    case DType::float16:
      return 2;
    case DType::bfloat16:
      return 3;
    case DType::int8:
      return 4;
    case DType::int32:
      break;
  }
  throw UnsupportedError("no kernel multiplies " + std::string(name_of(type)));
}

}  // namespace

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> list = [] {
    std::vector<Kernel> kernels;
    for (const auto family : {ladder_kernels(), tiled_kernels(), packed_kernels(), packed_bf16_kernels(), skinny_kernels(), gemv_kernels(),
                              mma_sync_kernels(), tf32x3_kernels(), wgmma16_kernels()})
      kernels.insert(kernels.end(), family.begin(), family.end());
    return kernels;
  }();
  return list;
}

const Kernel& find_kernel(std::string_view name) {
  std::string names;
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.name == name) return kernel;
    names.append(names.empty() ? "" : ", ").append(kernel.name);
  }
  throw UnsupportedError("there is no kernel \"" + std::string(name) + "\"; there are: " + names + ", " + std::string(host::name));
}

std::string unsupported_type(const Problem& p, const DeviceInfo& device) {
  if (p.dtype == DType::float64 && !device.has_fp64) return "the device has no float64";
  if (p.dtype == DType::float16 && !device.has_fp16) return "the device has no float16";
  const auto activation = p.epilogue.activation;
  if (p.dtype == DType::int8 && activation != Activation::none && activation != Activation::relu)
    return "integer results have no activation but relu";
  return "";
}

Constants common_constants(const Problem& p) {
  return {{"ELEMENT", element_of(p.dtype)},
          {"TRANS_A", p.a.transposed},
          {"TRANS_B", p.b.transposed},
          {"BETA", p.epilogue.beta != 0},
          {"BIAS", static_cast<int>(p.epilogue.bias_axis)},
          {"ACTIVATION", static_cast<int>(p.epilogue.activation)}};
}

}  // namespace sycl_mat
