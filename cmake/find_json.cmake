# nlohmann/json is needed to build, not to use the library: from the system, else from the PyPI wheel nlohmann-json (headers only).
include(find_python_package)

find_package(nlohmann_json 3.10 CONFIG QUIET)
if(nlohmann_json_FOUND)
  get_target_property(SYCL_MAT_JSON_INCLUDE_DIR nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
else()
  sycl_mat_python_file(_json nlohmann-json include/nlohmann/json.hpp)
  if(NOT _json)
    message(FATAL_ERROR "nlohmann/json was not found: install Debian's nlohmann-json3-dev, or `pip install nlohmann-json`")
  endif()
  cmake_path(GET _json PARENT_PATH _json)
  cmake_path(GET _json PARENT_PATH SYCL_MAT_JSON_INCLUDE_DIR)
endif()
