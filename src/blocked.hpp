// Large products of host arrays on a device with memory of its own: C in blocks, copies in both directions beside the compute.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "context.hpp"
#include "view.hpp"

namespace sycl_mat {

/// How a product is cut: sizes of a block of C and depth of its panels (the last of each may be smaller). With more `rounds` than one, all
/// blocks are computed to a part of K first, then to four times that, …, at last to its end (`depth`): much less then has to arrive before
/// the device has enough to do.
struct BlockSizes {
  index_t rows, columns, depth;
  int rounds = 1;
};

/// The cut of this product, or none where it is computed in one piece: the device reads the operands where they are or shares the host's
/// memory, they are small, or some of them live on the device already. Depends on sizes and the memory limit alone, so that the same call
/// gives the same bits.
std::optional<BlockSizes> block_sizes(const Context::State& context, const Operands& o, const GemmOptions& options);

/// Whether a stack of host arrays must be multiplied in parts, along its outermost axis, because the whole does not fit.
bool stack_exceeds_memory(const Context::State& context, const Operands& o, const GemmOptions& options);

/// The order in which blocks (row, column) are computed. Where all panels fit on the device, every step brings one panel of A and one of
/// B and computes all blocks that have become possible: an L around the finished square, so that compute can begin after two panels.
std::vector<std::pair<index_t, index_t>> block_order(index_t rows, index_t columns, bool all_panels_fit);

/// Computes the product and waits for it. Throws OutOfMemoryError, DeviceError.
void multiply_in_blocks(Context::State& context, const Operands& o, const GemmOptions& options, const BlockSizes& sizes);

}  // namespace sycl_mat
