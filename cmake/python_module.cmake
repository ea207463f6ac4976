# The Python module sycl_mat._core.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT
                COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import numpy; print(numpy.get_include())" OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE numpy_include COMMAND_ERROR_IS_FATAL ANY)

file(GLOB binding_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/python/*.cpp")
nanobind_add_module(_core NB_STATIC NOMINSIZE ${binding_sources})
target_include_directories(_core PRIVATE python src)
target_include_directories(_core SYSTEM PRIVATE "${numpy_include}")
target_compile_definitions(_core PRIVATE SYCL_MAT_VERSION="${PROJECT_VERSION}")
target_link_libraries(_core PRIVATE sycl_mat sycl_mat_options)
# From <site-packages>/sycl_mat to the <prefix>/lib that holds the runtime's libraries, in a venv and in a user's folder alike. Where
# that does not hold (--target), sycl_mat/_runtime.py has loaded the library before this module is.
set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN/../../.." BUILD_RPATH_USE_ORIGIN ON)

if(SKBUILD)
  install(TARGETS _core LIBRARY DESTINATION sycl_mat)
  install(DIRECTORY tuned/ DESTINATION sycl_mat/tuned FILES_MATCHING PATTERN "*.json")
  install(DIRECTORY "${SYCL_MAT_BUNDLE_FOLDER}/" DESTINATION sycl_mat/bundles OPTIONAL PATTERN "*.stamp" EXCLUDE)
endif()

# Without pip: PYTHONPATH=<build>/python runs the package from the source folder with the module just built.
if(NOT SKBUILD)
  set(package_folder "${CMAKE_CURRENT_BINARY_DIR}/python/sycl_mat")
  file(GLOB package_files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/python/sycl_mat/*")
  file(MAKE_DIRECTORY "${package_folder}")
  foreach(path IN ITEMS ${package_files} "${CMAKE_CURRENT_SOURCE_DIR}/tuned" "${SYCL_MAT_BUNDLE_FOLDER}")
    get_filename_component(name "${path}" NAME)
    if(NOT name MATCHES "__pycache__|\\.so$")
      file(CREATE_LINK "${path}" "${package_folder}/${name}" SYMBOLIC RESULT ignored)
    endif()
  endforeach()
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${package_folder}")
endif()
