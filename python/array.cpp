// Device memory for Python. An array in it is an ordinary ndarray object, so that NumPy does all arithmetic of shapes, strides and
// views; where the processor does not reach the memory, sycl_mat/_array.py lets nobody look inside.
#include "array.hpp"

#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "operands.hpp"
#include "options.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {

Memory::~Memory() {
  const WithoutGil released;
  if (context_) {
    try {
      context_->wait();
    } catch (...) {  // whoever needs the result that failed will hear of it
    }
  }
  if (give_back_) give_back_();
  owned_.reset();
}

Memory* memory_of(nb::handle value) {
  PyObject* object = value.ptr();
  while (object && PyArray_Check(object)) object = PyArray_BASE(reinterpret_cast<PyArrayObject*>(object));
  return object && nb::isinstance<Memory>(object) ? nb::cast<Memory*>(nb::handle(object)) : nullptr;
}

nb::object array_over(void* data, nb::object dtype, const std::vector<npy_intp>& shape, const npy_intp* strides, bool writeable,
                      std::unique_ptr<Memory> owner) {
  nb::object base = nb::cast(owner.release(), nb::rv_policy::take_ownership);
  auto* descr = reinterpret_cast<PyArray_Descr*>(dtype.release().ptr());
  nb::object array = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, static_cast<int>(shape.size()), shape.data(), strides, data,
                                                    writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  auto* raw = reinterpret_cast<PyArrayObject*>(array.ptr());
  PyArray_UpdateFlags(raw, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
  if (PyArray_SetBaseObject(raw, base.release().ptr()) < 0) throw nb::python_error();
  return array;
}

nb::object dtype_from(nb::handle value) {
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(value.ptr(), &descr)) throw nb::python_error();
  return nb::steal(reinterpret_cast<PyObject*>(descr));
}

namespace {

MemoryKind kind_named(const std::string& name) {
  if (name == "device") return MemoryKind::device;
  if (name == "shared") return MemoryKind::shared;
  if (name == "host") return MemoryKind::host;
  throw nb::value_error(("memory: 'device', 'shared' or 'host' is wanted, not '" + name + "'").c_str());
}

std::string name_of(std::optional<MemoryKind> kind) {
  if (!kind) return "system";
  return *kind == MemoryKind::device ? "device" : *kind == MemoryKind::shared ? "shared" : "host";
}

PyArrayObject* ndarray_from(nb::handle value) {
  if (!PyArray_Check(value.ptr())) throw nb::type_error("an ndarray is wanted");
  return reinterpret_cast<PyArrayObject*>(value.ptr());
}

std::vector<npy_intp> sizes_from(nb::handle tuple) {
  std::vector<npy_intp> sizes;
  for (nb::handle size : tuple) sizes.push_back(nb::cast<npy_intp>(size));
  return sizes;
}

nb::object allocate(nb::handle shape, nb::handle dtype, nb::handle device, const std::string& memory) {
  const std::vector<npy_intp> sizes = sizes_from(shape);
  nb::object descr = dtype_from(dtype);
  const auto element = static_cast<std::size_t>(PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(descr.ptr())));
  std::size_t bytes = element;
  bool empty = false;
  for (const npy_intp extent : sizes) {
    if (extent < 0) throw nb::value_error("negative dimensions are not allowed");
    if (extent == 0) empty = true;
  }
  for (const npy_intp extent : sizes) {
    if (empty) break;
    if (bytes > static_cast<std::size_t>(std::numeric_limits<npy_intp>::max() / extent)) {
      PyErr_SetString(PyExc_MemoryError, "the array has more bytes than memory can have addresses");
      throw nb::python_error();
    }
    bytes *= static_cast<std::size_t>(extent);
  }
  Context& context = context_from(device);
  const MemoryKind kind = kind_named(memory);
  std::unique_ptr<Memory> owner;
  void* data = nullptr;
  {
    const WithoutGil released;
    DeviceMemory allocation(context, bytes, kind);
    data = allocation.data();
    owner = std::make_unique<Memory>(std::move(allocation));
  }
  return array_over(data, std::move(descr), sizes, nullptr, true, std::move(owner));
}

/// Somebody else's memory as an array. `owner` lives as long; the array may be in use by the device's queue when it is dropped.
nb::object wrap(std::uintptr_t pointer, nb::handle shape, nb::handle strides, nb::handle dtype, nb::handle device, nb::object owner,
                bool writeable) {
  const std::vector<npy_intp> sizes = sizes_from(shape), steps = strides.is_none() ? std::vector<npy_intp>{} : sizes_from(strides);
  PyObject* kept = owner.release().ptr();
  auto memory = std::make_unique<Memory>(&context_from(device), [kept] {
    const nb::gil_scoped_acquire gil;
    Py_DECREF(kept);
  });
  return array_over(reinterpret_cast<void*>(pointer), dtype_from(dtype), sizes, strides.is_none() ? nullptr : steps.data(), writeable,
                    std::move(memory));
}

/// Any array as matrices: one row where it has fewer than two axes.
MatrixView any_view(nb::handle value) {
  PyArrayObject* array = ndarray_from(value);
  const std::optional<DType> type = dtype_of(array);
  if (!type || !is_plain(array)) throw nb::value_error("an array of a type that has a kernel, native and aligned, is wanted");
  if (PyArray_NDIM(array) > 0) return view_of(array, *type, Vector::row);
  return row_major(PyArray_DATA(array), 1, 1, *type);
}

/// The buffer protocol for sycl_mat.Array, which is written in Python: its _buffer() gives the ndarray whose buffer it is.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  PyObject* array = PyObject_CallMethod(self, "_buffer", nullptr);
  if (!array) return -1;
  const int status = PyObject_GetBuffer(array, view, flags);  // its release is the ndarray's
  Py_DECREF(array);
  return status;
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
PyType_Spec spec = {"sycl_mat._core.ArrayBase", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

void bind_arrays(nb::module_& m) {
  nb::class_<Memory>(m, "Memory", "What keeps the memory of an array.");
  nb::object base = nb::steal(PyType_FromSpec(&spec));
  if (!base.is_valid()) throw nb::python_error();
  m.attr("ArrayBase") = base;
  m.def("allocate", &allocate, "shape"_a, "dtype"_a, "device"_a.none(), "memory"_a,
        nb::sig("def allocate(shape: tuple[int, ...], dtype: Any, device: Device | str | None, memory: str) -> NDArray[Any]"),
        "An uninitialised ndarray in memory of the device.");
  m.def("wrap", &wrap, "pointer"_a, "shape"_a, "strides"_a.none(), "dtype"_a, "device"_a.none(), "owner"_a, "writeable"_a,
        nb::sig("def wrap(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: Any, device: Device | str | None, "
                "owner: object, writeable: bool) -> NDArray[Any]"),
        "An ndarray over somebody else's memory. Strides in bytes.");
  m.def(
      "copy",
      [](nb::handle dst, nb::handle src, nb::handle device) {
        const MatrixView to = any_view(dst), from = any_view(src);
        Context& context = context_from(device);
        const WithoutGil released;
        copy(context, to, from);
      },
      "dst"_a, "src"_a, "device"_a.none(), nb::sig("def copy(dst: NDArray[Any], src: NDArray[Any], device: Device | str | None) -> None"),
      "dst ← src, in the order of the device's queue; host memory is free for use afterwards.");
  m.def(
      "memory_kind",
      [](nb::handle array, nb::handle device) { return name_of(kind_of(context_from(device), PyArray_DATA(ndarray_from(array)))); },
      "array"_a, "device"_a.none(), nb::sig("def memory_kind(array: NDArray[Any], device: Device | str | None) -> str"),
      "'device', 'shared', 'host'; 'system': ordinary memory, or another device's.");
  m.def(
      "host_reachable",
      [](nb::handle array, nb::handle device) { return host_reachable(context_from(device), PyArray_DATA(ndarray_from(array))); },
      "array"_a, "device"_a.none(), nb::sig("def host_reachable(array: NDArray[Any], device: Device | str | None) -> bool"),
      "Whether the processor may read and write there.");
  m.def(
      "shown",
      [](nb::handle array) {
        if (Memory* memory = memory_of(array)) memory->shown();
      },
      "array"_a, nb::sig("def shown(array: NDArray[Any]) -> None"),
      "Others can see this memory from now on: products that use it are waited for.");
  m.def(
      "adopt",
      [](nb::handle array, nb::handle device) {
        if (Memory* memory = memory_of(array)) memory->adopt(context_from(device));
      },
      "array"_a, "device"_a.none(), nb::sig("def adopt(array: NDArray[Any], device: Device | str | None) -> None"),
      "Work of this device may use the array's memory: it is not given back before.");
  m.def(
      "wait",
      [](nb::handle device) {
        Context& context = context_from(device);
        const WithoutGil released;
        context.wait();
      },
      "device"_a.none(), nb::sig("def wait(device: Device | str | None) -> None"),
      "Blocks until everything that was submitted to the device has run. Raises DeviceError.");
}

}  // namespace sycl_mat::python
