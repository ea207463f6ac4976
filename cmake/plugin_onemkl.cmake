# libsycl_mat_onemkl.so: the oneMKL backend, loaded on demand. It is built without oneMKL at hand: what it needs of it are symbols that
# the dynamic linker resolves at run time. Empty libraries that bear the real ones' names put those names into its list of needed
# libraries, in the order of the search (docs/decisions/0005-onemkl-plugin.md).
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()

set(onemkl_sonames libmkl_sycl_blas.so.6 libmkl_intel_ilp64.so.3 libmkl_tbb_thread.so.3 libmkl_core.so.3)
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/generated/empty.cpp" "")

add_library(sycl_mat_onemkl MODULE src/plugins/onemkl.cpp)
foreach(soname IN LISTS onemkl_sonames)
  string(MAKE_C_IDENTIFIER "stand_in_${soname}" target)
  add_library(${target} SHARED EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/generated/empty.cpp")
  # NO_SONAME keeps CMake from adding one of its own.
  set_target_properties(${target} PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stand_ins"
                                             LINK_OPTIONS "-Wl,-soname,${soname}")
  target_link_libraries(sycl_mat_onemkl PRIVATE ${target})
endforeach()
target_include_directories(sycl_mat_onemkl PRIVATE include src)
target_link_libraries(sycl_mat_onemkl PRIVATE SYCLRuntime::sycl sycl_mat_options)
target_link_options(sycl_mat_onemkl PRIVATE -Wl,--no-as-needed -Wl,--unresolved-symbols=ignore-all)
# No run path: the backend loads each library by its full path first, and then they are found by name.
set_target_properties(sycl_mat_onemkl PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON SKIP_BUILD_RPATH ON
                                                 INSTALL_RPATH "" POSITION_INDEPENDENT_CODE ON)

if(SKBUILD)
  install(TARGETS sycl_mat_onemkl LIBRARY DESTINATION sycl_mat)
else()
  install(TARGETS sycl_mat_onemkl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(SOURCE src/backends/onemkl.cpp APPEND PROPERTY COMPILE_DEFINITIONS
               SYCL_MAT_PLUGIN_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}")
endif()
