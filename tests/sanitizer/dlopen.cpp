// AddressSanitizer refuses RTLD_DEEPBIND, which the OpenCL CPU driver asks for when it loads its own parts: the flag is left out.
#include <dlfcn.h>

extern "C" void* dlopen(const char* file, int flags) noexcept {
  static const auto next = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  return next(file, flags & ~RTLD_DEEPBIND);
}
