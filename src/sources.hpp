// The kernels' source texts, embedded into the library when it is built (cmake/embed_kernels.cmake).
#pragma once

#include <string_view>

namespace sycl_mat {

/// The text of a file of kernels/ ("tiled.cpp", "device.hpp"). Throws std::out_of_range for a name that is not there.
std::string_view source_text(std::string_view file_name);

}  // namespace sycl_mat
