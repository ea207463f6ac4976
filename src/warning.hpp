// Warnings: what went wrong without making a result wrong (a corrupt cache file, a read-only home).
#pragma once

#include <string>

namespace sycl_mat {

/// Hands a warning to whoever listens (Python's `warnings`), or prints it to stderr. Never throws.
void warn(const std::string& message) noexcept;

/// Replaces the listener; null: stderr. The listener is called on any thread, without locks held by the library.
void set_warning_listener(void (*listener)(const std::string&)) noexcept;

}  // namespace sycl_mat
