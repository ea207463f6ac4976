// Computing without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace sycl_mat::python {

/// Gives the GIL away and takes it back. Unlike nanobind's, it never asks for it once the interpreter shuts down: there CPython up to 3.13
/// ends a daemon thread by pthread_exit, which C++ destructors turn into an abort of the whole process. Such a thread sleeps instead, as it
/// does from Python 3.14 on, until the process is gone.
class WithoutGil {
 public:
  /// While the interpreter shuts down, only the thread that does it runs Python code: it keeps the lock.
  WithoutGil() : state_(shutting_down() ? nullptr : PyEval_SaveThread()) {}
  ~WithoutGil() {
    if (!state_) return;
    while (shutting_down()) std::this_thread::sleep_for(std::chrono::hours(1));
    PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  static bool shutting_down() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
  }
  PyThreadState* state_;
};

}  // namespace sycl_mat::python
