// What fits on a device at a time while a product is computed in blocks.
#pragma once

#include <algorithm>

#include "blocked.hpp"
#include "families/families.hpp"

namespace sycl_mat {

constexpr index_t least_results = 3;  // blocks of C: computed, on its way back, emptied by the host

inline index_t pieces(index_t size, index_t piece) { return std::max<index_t>(1, ceil_div(size, piece)); }

/// Bytes of device memory that the product may take.
std::int64_t limit_of(const Context::State& context, const GemmOptions& options);

/// What is on the device at a time.
struct Room {
  bool all_panels = false;  ///< otherwise two of A and two of B
  index_t results = least_results;
};
/// Panels along K, and where panel x begins.
index_t depths(const Operands& o, const BlockSizes& s);
index_t depth_before(const Operands& o, const BlockSizes& s, index_t x);
index_t block_count(const Operands& o, const BlockSizes& s);
std::int64_t bytes_needed(const Operands& o, const BlockSizes& s, const Room& room);
/// All panels if they fit, and then as many results as do: the host need not hurry to fetch them.
Room room_for(const Operands& o, const BlockSizes& s, std::int64_t limit);

}  // namespace sycl_mat
