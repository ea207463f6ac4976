# Warnings and sanitizers, for everything that is built here and for nothing that uses it.
add_library(sycl_mat_options INTERFACE)
if(MSVC)
  target_compile_options(sycl_mat_options INTERFACE /W4 $<$<BOOL:${SYCL_MAT_WERROR}>:/WX> /utf-8 /bigobj)
else()
  target_compile_options(sycl_mat_options INTERFACE -Wall -Wextra $<$<BOOL:${SYCL_MAT_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(sycl_mat_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)  # false alarms, GCC bugs 105651, 80635
  endif()
endif()
if(SYCL_MAT_SANITIZE)
  target_compile_options(sycl_mat_options INTERFACE -fsanitize=${SYCL_MAT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(sycl_mat_options INTERFACE -fsanitize=${SYCL_MAT_SANITIZE})
endif()
