// Host copies between any two strided views of the same shape: gathers operands that no kernel can read, scatters results back.
#pragma once

#include "sycl_mat/types.hpp"

namespace sycl_mat {

/// dst ← src, element by element; same dtype, rows, cols and batch extents. The views must not overlap. Any alignment.
void copy_strided(const MatrixView& dst, const MatrixView& src);

/// The same for what is too large for any cache (see stream_copy.hpp).
void copy_past_caches(const MatrixView& dst, const MatrixView& src);

/// A dense row-major view of `like`'s shape at `data`.
MatrixView dense_like(const MatrixView& like, void* data);

/// Bytes that dense_like needs.
std::int64_t dense_bytes(const MatrixView& like);

/// Whether the elements lie without gaps in row-major order, so that one memcpy moves them.
bool is_dense(const MatrixView& v);

}  // namespace sycl_mat
