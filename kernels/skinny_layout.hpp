// How the skinny kernel lays out its scratch: read by the host, which allocates it, and by the kernel, which uses it.
//
//   | counters, one int a block of results (only where K is split) | work-group 0 | work-group 1 | … | partial sums (only where K is split)
//   | a work-group: | few × k of the small operand, each vector contiguous | few × skinny_chunk sums |
#pragma once

namespace sycl_mat {

/// Results along the long side whose sums are kept together: with 8 vectors 64 KB, at home in the second cache.
constexpr int skinny_chunk = 2048;

struct SkinnyLayout {
  long long sums;      ///< where the sums begin, in elements from the work-group's beginning
  long long elements;  ///< in all
};

/// For a work-group with at most k products; copy: the small operand cannot be read in place.
inline SkinnyLayout skinny_layout(int few, long long k, bool copy) {
  const long long copied = copy ? (few * k + 15) / 16 * 16 : 0;
  return {copied, copied + few * skinny_chunk};
}

}  // namespace sycl_mat
