# libsycl_mat_blas.so: the BLAS names of the product, to link or to preload (docs/blas.md).
if(WIN32 OR APPLE)
  return()
endif()

add_library(sycl_mat_blas SHARED blas/cblas.cpp blas/errors.cpp blas/fortran.cpp blas/gemm.cpp blas/runtime.cpp)
target_include_directories(sycl_mat_blas PRIVATE blas src)
target_link_libraries(sycl_mat_blas PRIVATE sycl_mat sycl_mat_options)
target_link_options(sycl_mat_blas PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/blas/exports.map")
set_target_properties(sycl_mat_blas PROPERTIES CXX_VISIBILITY_PRESET default LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/blas/exports.map")

if(SKBUILD)
  set_target_properties(sycl_mat_blas PROPERTIES INSTALL_RPATH "$ORIGIN/../../..")
  install(TARGETS sycl_mat_blas LIBRARY DESTINATION sycl_mat)
else()
  set_target_properties(sycl_mat_blas PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sycl_mat_blas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
