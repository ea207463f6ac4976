// How much last-level cache the processors of this machine have.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sycl_mat {

/// Bytes of third-level cache that so many processors have together, 0 where nothing is known: what Linux says of the first one's, times as
/// many as there are of it. (sysconf counts those of the whole package, also where a virtual machine has but a part of it.)
/// `processor`: the folder of the first processor, for example /sys/devices/system/cpu/cpu0.
std::int64_t last_cache_bytes(const std::filesystem::path& processor, int processors);

}  // namespace sycl_mat
