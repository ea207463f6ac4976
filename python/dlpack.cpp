// DLPack, the exchange of arrays between libraries without a copy: ndarrays (over device memory too) ↔ capsules.
// The structs are those of the DLPack 1.0 ABI (https://dmlc.github.io/dlpack/latest/c_api.html).
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "array.hpp"
#include "bindings.hpp"
#include "context.hpp"
#include "operands.hpp"
#include "options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {
namespace {

struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t dimensions;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // elements; null: C order
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* manager;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};

constexpr std::int32_t on_cpu = 1, on_cuda = 2, on_rocm = 10, on_oneapi = 14;
constexpr std::uint64_t flag_read_only = 1, flag_copied = 2;
constexpr const char *plain_name = "dltensor", *versioned_name = "dltensor_versioned";
constexpr int most_dimensions = 32;

enum Code : std::uint8_t { code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_complex = 5, code_bool = 6 };

[[noreturn]] void buffer_error(const std::string& what) {
  PyErr_SetString(PyExc_BufferError, what.c_str());
  throw nb::python_error();
}

DLDataType type_of(DType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  if (type == DType::bfloat16) return {code_bfloat, bits, 1};
  return {type == DType::int8 || type == DType::int32 ? code_int : code_float, bits, 1};
}

nb::object numpy_type_of(const DLDataType& type) {
  if (type.lanes != 1 || type.bits % 8 != 0) buffer_error("DLPack: vectors and types of parts of bytes are not supported");
  if (type.code == code_bfloat && type.bits == 16) return dtype_from(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  const std::string bytes = std::to_string(type.bits / 8);
  switch (type.code) {
    case code_int:
      return dtype_from(nb::str(("i" + bytes).c_str()));
    case code_uint:
      return dtype_from(nb::str(("u" + bytes).c_str()));
    case code_float:
      return dtype_from(nb::str(("f" + bytes).c_str()));
    case code_complex:
      return dtype_from(nb::str(("c" + bytes).c_str()));
    case code_bool:
      return dtype_from(nb::str("?"));
    default:
      buffer_error("DLPack: an element type that NumPy does not have");
  }
}

/// Keeps the exported array, and the sizes that the tensor points to.
struct Export {
  PyObject* array;
  std::array<std::int64_t, most_dimensions> shape, strides;
};

void drop(void* manager) {
  auto* kept = static_cast<Export*>(manager);
  if (nb::is_alive()) {  // a consumer may outlive the interpreter
    const nb::gil_scoped_acquire gil;
    Py_DECREF(kept->array);
  }
  delete kept;
}

/// The capsule still holds the tensor where nobody has taken it over (who does so renames it).
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

/// Other libraries call a GPU by the number that its own runtime gives it, and an Intel one by its place among SYCL's devices.
std::pair<int, int> device_of(Context& context) {
  if (context.device().is_cpu()) return {on_cpu, 0};
  const std::string& backend = context.device().backend;
  const int type = backend == "cuda" ? on_cuda : backend == "hip" ? on_rocm : on_oneapi;
  const sycl::device wanted = context.state().queue.get_device();
  int number = 0;
  for (const sycl::device& device : sycl::device::get_devices()) {
    if (device == wanted) break;
    if (type == on_oneapi || device.get_backend() == wanted.get_backend()) ++number;
  }
  return {type, number};
}

DLTensor tensor_of(PyArrayObject* array, const DLDevice& device, Export& sizes) {
  const std::optional<DType> type = python::dtype_of(array);
  if (!type || !is_plain(array)) buffer_error("DLPack: an array of a type that has a kernel is wanted");
  DLTensor t{};
  t.data = PyArray_DATA(array);
  t.device = device;
  t.dimensions = PyArray_NDIM(array);
  t.dtype = type_of(*type);
  for (int axis = 0; axis < t.dimensions; ++axis) {
    sizes.shape[static_cast<std::size_t>(axis)] = PyArray_DIM(array, axis);
    sizes.strides[static_cast<std::size_t>(axis)] = PyArray_STRIDE(array, axis) / size_of(*type);
  }
  t.shape = sizes.shape.data();
  t.strides = sizes.strides.data();
  return t;
}

template <class Managed>
nb::object capsule_of(std::unique_ptr<Managed> managed, const char* name, PyCapsule_Destructor destructor) {
  managed->deleter = [](Managed* self) {
    drop(self->manager);
    delete self;
  };
  PyObject* capsule = PyCapsule_New(managed.get(), name, destructor);
  if (!capsule) throw nb::python_error();
  managed.release();
  return nb::steal(capsule);
}

nb::object to_dlpack(nb::handle value, std::pair<int, int> device, bool versioned, bool copied) {
  auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
  if (!PyArray_Check(value.ptr())) throw nb::type_error("an ndarray is wanted");
  if (PyArray_NDIM(array) > most_dimensions) buffer_error("DLPack: too many dimensions");
  if (!versioned && !PyArray_ISWRITEABLE(array)) buffer_error("DLPack before version 1 has no read-only arrays: pass max_version=(1, 0)");
  auto kept = std::make_unique<Export>();
  const DLTensor tensor = tensor_of(array, {device.first, device.second}, *kept);
  kept->array = value.inc_ref().ptr();
  if (!versioned) {
    auto managed = std::make_unique<DLManagedTensor>();
    managed->tensor = tensor;
    managed->manager = kept.release();
    return capsule_of(std::move(managed), plain_name, [](PyObject* capsule) { drop_capsule<DLManagedTensor>(capsule, plain_name); });
  }
  auto managed = std::make_unique<DLManagedTensorVersioned>();
  managed->major = 1;
  managed->flags = (PyArray_ISWRITEABLE(array) ? 0 : flag_read_only) | (copied ? flag_copied : 0);
  managed->tensor = tensor;
  managed->manager = kept.release();
  return capsule_of(std::move(managed), versioned_name,
                    [](PyObject* capsule) { drop_capsule<DLManagedTensorVersioned>(capsule, versioned_name); });
}

/// The tensor of a capsule as an array that gives it back when it is dropped.
template <class Managed>
nb::object array_from(nb::handle capsule, const char* name, const char* used_name, Context* context, bool writeable) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  const DLTensor& t = managed->tensor;
  nb::object dtype = numpy_type_of(t.dtype);
  const auto element = static_cast<npy_intp>(t.dtype.bits / 8);
  std::vector<npy_intp> shape, strides;
  for (int axis = 0; axis < t.dimensions; ++axis) {
    shape.push_back(static_cast<npy_intp>(t.shape[axis]));
    if (t.strides) strides.push_back(static_cast<npy_intp>(t.strides[axis]) * element);
  }
  void* data = static_cast<char*>(t.data) + t.byte_offset;
  auto owner = std::make_unique<Memory>(context, [managed] {
    if (!managed->deleter) return;
    const nb::gil_scoped_acquire gil;  // the producer may be written in Python
    managed->deleter(managed);
  });
  if (PyCapsule_SetName(capsule.ptr(), used_name) < 0) throw nb::python_error();
  return array_over(data, std::move(dtype), shape, t.strides ? strides.data() : nullptr, writeable, std::move(owner));
}

nb::object from_dlpack(nb::handle capsule, nb::handle device) {
  Context* context = device.is_none() ? nullptr : &context_from(device);
  if (PyCapsule_IsValid(capsule.ptr(), versioned_name)) {
    const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), versioned_name));
    if (managed->major != 1) buffer_error("DLPack: version " + std::to_string(managed->major) + " is not known");
    const bool writeable = (managed->flags & flag_read_only) == 0;
    return array_from<DLManagedTensorVersioned>(capsule, versioned_name, "used_dltensor_versioned", context, writeable);
  }
  if (PyCapsule_IsValid(capsule.ptr(), plain_name)) return array_from<DLManagedTensor>(capsule, plain_name, "used_dltensor", context, true);
  throw nb::type_error("a DLPack capsule that nobody has used is wanted");
}

/// "opencl:cpu:0", "level_zero:gpu:1": SYCL's filter selectors, by which dpctl names devices.
std::string filter_of(Context& context) {
  const sycl::device wanted = context.state().queue.get_device();
  int index = 0;
  for (const sycl::device& device : sycl::device::get_devices()) {
    if (device == wanted) break;
    if (device.get_backend() == wanted.get_backend() &&
        device.get_info<sycl::info::device::device_type>() == wanted.get_info<sycl::info::device::device_type>())
      ++index;
  }
  return context.device().backend + ":" + context.device().type + ":" + std::to_string(index);
}

}  // namespace

void bind_dlpack(nb::module_& m) {
  m.def(
      "dlpack_device", [](nb::handle device) { return device_of(context_from(device)); }, "device"_a.none(),
      nb::sig("def dlpack_device(device: Device | str | None) -> tuple[int, int]"),
      "(1, 0) for the processor, whose memory every library reads; (2, number) for CUDA's devices, (10, number) for ROCm's; (14, position "
      "among SYCL's devices) for others");
  m.def("to_dlpack", &to_dlpack, "array"_a, "device"_a, "versioned"_a, "copied"_a,
        nb::sig("def to_dlpack(array: NDArray[Any], device: tuple[int, int], versioned: bool, copied: bool) -> Any"),
        "A DLPack capsule of the array's memory.");
  m.def("from_dlpack", &from_dlpack, "capsule"_a, "device"_a.none(),
        nb::sig("def from_dlpack(capsule: Any, device: Device | str | None) -> NDArray[Any]"),
        "An ndarray over the tensor's memory; `device`: whose queue may use it.");
  m.def(
      "device_filter", [](nb::handle device) { return filter_of(context_from(device)); }, "device"_a.none(),
      nb::sig("def device_filter(device: Device | str | None) -> str"), "The device's name as dpctl has it.");
  m.def(
      "device_of_pointer",
      [](std::uintptr_t pointer) -> nb::object {
        const auto* data = reinterpret_cast<const void*>(pointer);
        const auto belongs_to = [data](Context& context) {
          const sycl::context where = context.state().queue.get_context();
          return sycl::get_pointer_type(data, where) != sycl::usm::alloc::unknown &&
                 sycl::get_pointer_device(data, where) == context.state().queue.get_device();
        };
        if (Context& usual = sycl_mat::context(); belongs_to(usual)) return nb::cast(usual.device());
        for (const DeviceInfo& info : devices())
          if (Context& other = sycl_mat::context(info.selector); belongs_to(other)) return nb::cast(other.device());
        return nb::none();
      },
      "pointer"_a, nb::sig("def device_of_pointer(pointer: int) -> Device | None"),
      "The device whose memory a pointer leads to; None for ordinary memory.");
}

}  // namespace sycl_mat::python
