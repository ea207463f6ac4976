// C++ exceptions → the Python classes of sycl_mat/errors.py, where their inheritance is written.
#include "sycl_mat/errors.hpp"

#include <new>

#include "bindings.hpp"

namespace nb = nanobind;

namespace sycl_mat::python {
namespace {

void raise(const char* name, const char* message) {
  nb::object type = nb::module_::import_("sycl_mat.errors").attr(name);
  PyErr_SetString(type.ptr(), message);
}

void raise_compile_error(const CompileError& e) {
  nb::object type = nb::module_::import_("sycl_mat.errors").attr("CompileError");
  nb::object error = type(e.what(), e.log.c_str(), e.constants.c_str());
  PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

bool set_python_error() {
  try {
    throw;
  } catch (const DimensionError& e) {
    raise("DimensionError", e.what());
  } catch (const SizeError& e) {
    raise("SizeError", e.what());
  } catch (const UnsupportedError& e) {
    raise("UnsupportedError", e.what());
  } catch (const ParamsError& e) {
    raise("ParamsError", e.what());
  } catch (const InputError& e) {
    raise("InputError", e.what());
  } catch (const OutOfMemoryError& e) {
    raise("OutOfMemoryError", e.what());
  } catch (const DeviceError& e) {
    raise("DeviceError", e.what());
  } catch (const CompileError& e) {
    raise_compile_error(e);
  } catch (const Error& e) {
    raise("Error", e.what());
  } catch (...) {
    return false;
  }
  return true;
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      set_python_error();
    }
  });
}

}  // namespace sycl_mat::python
