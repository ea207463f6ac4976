# Files of a Python distribution, wherever pip put it: by its own record, never by sys.prefix, because build isolation installs wheels
# under another prefix.
include_guard()

find_package(Python 3.10 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

# Sets `out` to the path of the first file of `distribution` whose path ends with `suffix`, or to "" where there is none.
function(sycl_mat_python_file out distribution suffix)
  set(found "")
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/locate.py" "${distribution}" "${suffix}"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
