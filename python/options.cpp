#include "options.hpp"

#include <string>

namespace nb = nanobind;

namespace sycl_mat::python {

std::string text_from(nb::handle value, const char* what) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &length) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    throw nb::type_error((std::string(what) + ": a string is wanted").c_str());
  }
  std::string checked(text, static_cast<std::size_t>(length));
  if (checked.find('\0') != std::string::npos) throw nb::value_error((std::string(what) + ": the text holds a NUL character").c_str());
  return checked;
}

Context& context_from(nb::handle device) {
  if (device.is_none()) return context();
  if (nb::isinstance<DeviceInfo>(device)) return context(nb::cast<const DeviceInfo&>(device).selector);
  return context(text_from(device, "device"));
}

Precision precision_from(nb::handle value) {
  if (value.is_none()) return Precision::automatic;
  const std::string name = text_from(value, "precision");
  if (name == "highest" || name == "ieee") return Precision::ieee;
  if (name == "tf32") return Precision::tf32;
  throw nb::value_error(("precision: 'highest' or 'tf32' is wanted, not '" + name + "'").c_str());
}

GemmOptions options_from(nb::handle kernel, nb::handle params, nb::handle backend, nb::handle precision, nb::handle max_device_memory) {
  GemmOptions options;
  if (!kernel.is_none()) options.kernel = text_from(kernel, "kernel");
  if (!params.is_none()) options.params = params_from(params);
  if (!backend.is_none()) options.backend = text_from(backend, "backend");
  if (options.backend == "onemkl") tell_where_onemkl_is();
  options.precision = precision_from(precision);
  if (!max_device_memory.is_none()) {
    if (!nb::try_cast(max_device_memory, options.max_device_memory)) throw nb::type_error("max_device_memory: a number of bytes is wanted");
    if (options.max_device_memory <= 0) throw nb::value_error("max_device_memory: a positive number of bytes is wanted");
  }
  return options;
}

}  // namespace sycl_mat::python
