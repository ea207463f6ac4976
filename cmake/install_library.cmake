# `cmake --install`: headers, library and package files for find_package(sycl_mat). The wheel carries none of it.
include(CMakePackageConfigHelpers)

if(NOT SKBUILD)
  set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sycl_mat")
  install(TARGETS sycl_mat EXPORT sycl_mat_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY include/sycl_mat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY tuned/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sycl_mat/tuned FILES_MATCHING PATTERN "*.json")
  install(DIRECTORY "${SYCL_MAT_BUNDLE_FOLDER}/" DESTINATION ${CMAKE_INSTALL_DATADIR}/sycl_mat/bundles OPTIONAL PATTERN "*.stamp" EXCLUDE)
  install(EXPORT sycl_mat_targets NAMESPACE sycl_mat:: DESTINATION ${config_folder})
  configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/sycl_mat-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/sycl_mat-config.cmake"
                                INSTALL_DESTINATION ${config_folder})
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sycl_mat-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sycl_mat-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/sycl_mat-config-version.cmake"
                "${CMAKE_CURRENT_LIST_DIR}/FindSYCLRuntime.cmake" "${CMAKE_CURRENT_LIST_DIR}/find_python_package.cmake"
                "${CMAKE_CURRENT_LIST_DIR}/locate.py" DESTINATION ${config_folder})
endif()
