// What can go wrong, as types. The caller's mistakes (InputError) and the machine's (DeviceError, CompileError) never mix.
#pragma once

#include <stdexcept>
#include <string>

namespace sycl_mat {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The caller passed something that cannot be multiplied. Nothing was computed or written.
struct InputError : Error {
  using Error::Error;
};

/// An operand has the wrong number of dimensions. Messages begin with "Dimension Error: ".
struct DimensionError : InputError {
  using InputError::InputError;
};

/// Sizes that must agree do not, or do not fit 64-bit arithmetic. Messages begin with "Size Error: ".
struct SizeError : InputError {
  using InputError::InputError;
};

/// A dtype, or a combination of options, for which there is no kernel on this device.
struct UnsupportedError : InputError {
  using InputError::InputError;
};

/// A set of kernel constants breaks a constraint; the message names it and the nearest set that holds it.
struct ParamsError : InputError {
  using InputError::InputError;
};

/// No such device, a lost device, or a failure the runtime reports while a kernel runs.
struct DeviceError : Error {
  using Error::Error;
};

/// The device or the host has not enough memory. Nothing leaks.
struct OutOfMemoryError : DeviceError {
  using DeviceError::DeviceError;
};

/// The run-time compiler refused a kernel. Carries its log and the constants that were rendered.
struct CompileError : Error {
  CompileError(const std::string& what, std::string build_log, std::string rendered_constants)
      : Error(what), log(std::move(build_log)), constants(std::move(rendered_constants)) {}
  std::string log;
  std::string constants;
};

}  // namespace sycl_mat
