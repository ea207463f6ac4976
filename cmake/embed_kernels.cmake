# Writes the definition of src/sources.hpp: every file of kernels/ as a string. Included, it declares the build step; run as a script
# (cmake -DFOLDER=… -DOUTPUT=… -P embed_kernels.cmake), it does it.
function(sycl_mat_embed folder output)
  file(GLOB kernel_files CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/*.hpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -DFOLDER=${folder} -DOUTPUT=${output} -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    DEPENDS ${kernel_files} "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    COMMENT "Embedding the kernels' sources" VERBATIM)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(GLOB kernel_files "${FOLDER}/*.cpp" "${FOLDER}/*.hpp")
  set(entries "")
  foreach(path IN LISTS kernel_files)
    get_filename_component(name "${path}" NAME)
    # Raw literals in pieces of 8000 characters: compilers limit the length of one.
    string(APPEND entries "    {\"${name}\",\n")
    file(READ "${path}" plain)
    string(APPEND entries "R\"kernel-text(")
    string(LENGTH "${plain}" size)
    set(begin 0)
    while(begin LESS size)
      string(SUBSTRING "${plain}" ${begin} 8000 piece)
      string(APPEND entries "${piece}")
      math(EXPR begin "${begin} + 8000")
      if(begin LESS size)
        string(APPEND entries ")kernel-text\"\nR\"kernel-text(")
      endif()
    endwhile()
    string(APPEND entries ")kernel-text\"},\n")
  endforeach()
  file(WRITE "${OUTPUT}.new" "// Generated from kernels/ by cmake/embed_kernels.cmake.
#include \"sources.hpp\"

#include <stdexcept>
#include <string>

namespace sycl_mat {
namespace {
struct Source {
  std::string_view name, text;
};
constexpr Source sources[] = {
${entries}};
}  // namespace

std::string_view source_text(std::string_view file_name) {
  for (const Source& source : sources) {
    if (source.name == file_name) return source.text;
  }
  throw std::out_of_range(\"no kernel source named \" + std::string(file_name));
}

}  // namespace sycl_mat
")
  file(RENAME "${OUTPUT}.new" "${OUTPUT}")
endif()
