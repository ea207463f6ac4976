// Computing without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace sycl_mat::python {

/// Gives the GIL away and takes it back. Where the interpreter shuts down meanwhile, CPython up to 3.13 ends the daemon thread that asks
/// for the GIL by pthread_exit, and unwinding through nanobind's own class, whose destructor must not throw, aborts the whole process. Here
/// such a thread sleeps until the process is gone, as every such thread does from Python 3.14 on.
class WithoutGil {
 public:
  /// While the interpreter shuts down, only the thread that does it runs Python code: it keeps the lock.
  WithoutGil() : state_(shutting_down() ? nullptr : PyEval_SaveThread()) {}
  ~WithoutGil() {
    if (!state_) return;
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // no exception of anybody's: the thread is being unwound by pthread_exit
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
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
