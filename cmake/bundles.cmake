# The shipped kernels, compiled to object bundles while the package is built, so that a user's first product need not compile them.
# Needs a device at build time (intel-opencl-rt brings one); without one the step warns and ships none.
set(SYCL_MAT_BUNDLE_FOLDER "${CMAKE_CURRENT_BINARY_DIR}/bundles")
if(SYCL_MAT_BUNDLES AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/tools/make_bundles.cpp")
  add_executable(sycl_mat_bundles src/tools/make_bundles.cpp)
  target_include_directories(sycl_mat_bundles PRIVATE src kernels)
  target_link_libraries(sycl_mat_bundles PRIVATE sycl_mat sycl_mat_options)
  add_custom_command(
    OUTPUT "${SYCL_MAT_BUNDLE_FOLDER}/made.stamp"
    COMMAND "${CMAKE_COMMAND}" -DPROGRAM=$<TARGET_FILE:sycl_mat_bundles> -DFOLDER=${SYCL_MAT_BUNDLE_FOLDER}
            -DCPU_DRIVER=${SYCLRuntime_CPU_DRIVER}
            -DDATA=${CMAKE_CURRENT_SOURCE_DIR} -P "${CMAKE_CURRENT_LIST_DIR}/run_bundles.cmake"
    DEPENDS sycl_mat_bundles
    COMMENT "Compiling the shipped kernels to object bundles" VERBATIM)
  add_custom_target(sycl_mat_shipped_bundles ALL DEPENDS "${SYCL_MAT_BUNDLE_FOLDER}/made.stamp")
endif()
