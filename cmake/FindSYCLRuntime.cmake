# The SYCL runtime's headers and library, as an imported target SYCLRuntime::sycl.
#
# Looked for in this order: SYCLRuntime_ROOT (a folder with include/sycl and lib), the PyPI wheel intel-sycl-rt of the Python that CMake
# found, an oneAPI installation (CMPLR_ROOT), the compiler's own folders.
include(find_python_package)

if(NOT SYCLRuntime_ROOT)
  sycl_mat_python_file(_header intel-sycl-rt include/sycl/sycl.hpp)
  if(_header)
    cmake_path(GET _header PARENT_PATH _folder)
    cmake_path(GET _folder PARENT_PATH _folder)
    cmake_path(GET _folder PARENT_PATH SYCLRuntime_wheel)
  endif()
endif()

set(_hints ${SYCLRuntime_ROOT} ${SYCLRuntime_wheel} $ENV{CMPLR_ROOT})
find_path(SYCLRuntime_INCLUDE_DIR sycl/sycl.hpp HINTS ${_hints} PATH_SUFFIXES include)
find_library(SYCLRuntime_LIBRARY NAMES sycl sycl9 HINTS ${_hints} PATH_SUFFIXES lib Library/lib NO_CMAKE_ENVIRONMENT_PATH)

# The CPU's OpenCL driver, for tests and bundles: the loader does not find the wheel's by itself.
sycl_mat_python_file(_driver intel-opencl-rt lib/libintelocl.so)
set(SYCLRuntime_CPU_DRIVER "${_driver}" CACHE FILEPATH "OpenCL driver of the CPU device, put into OCL_ICD_FILENAMES for tests")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SYCLRuntime REQUIRED_VARS SYCLRuntime_LIBRARY SYCLRuntime_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install it with `pip install 'intel-sycl-rt>=2026.2,<2027'` into the Python that CMake finds, or set SYCLRuntime_ROOT")
mark_as_advanced(SYCLRuntime_INCLUDE_DIR SYCLRuntime_LIBRARY)

if(SYCLRuntime_FOUND AND NOT TARGET SYCLRuntime::sycl)
  add_library(SYCLRuntime::sycl UNKNOWN IMPORTED)
  set_target_properties(
    SYCLRuntime::sycl
    PROPERTIES IMPORTED_LOCATION "${SYCLRuntime_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SYCLRuntime_INCLUDE_DIR}"
               INTERFACE_COMPILE_DEFINITIONS SYCL_DISABLE_FSYCL_SYCLHPP_WARNING)
endif()
