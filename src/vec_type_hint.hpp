// Keeps the OpenCL CPU driver's vectoriser off a hand-vectorised kernel.
#pragma once

#include <vector>

namespace sycl_mat {

/// Adds `OpExecutionMode <entry> VecTypeHint float16` to every entry point of the SPIR-V module inside a serialised object bundle. The
/// driver then leaves the kernel's vectors as they are: building takes a tenth of the time and the code is as fast. No attribute in the
/// source makes the front end emit it. The bundle's size stays: the four words a kernel needs are won by shortening OpName strings, which
/// are debug information. Returns false, with the bundle unchanged, where no module is found or no room is.
bool add_vec_type_hint(std::vector<char>& bundle);

}  // namespace sycl_mat
