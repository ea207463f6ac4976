// Tells one version of a kernel from another, so that what was measured with an older one is known as such.
#pragma once

#include <string>
#include <string_view>

namespace sycl_mat {

/// The text without comments and with single spaces: what decides about the program, not how it is written.
std::string code_of(std::string_view source);

/// Of a kernel of ours, and of the host path: a hash of its code, with the headers it includes, 16 hexadecimal digits. Empty for anything
/// else (oneMKL, a kernel that this version does not have).
const std::string& kernel_version(std::string_view kernel);

}  // namespace sycl_mat
