// The constraints and the defaults of PackParams, each written once with its reason: asked by the planner, the tuner, explain() and the
// error messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "problem.hpp"
#include "sycl_mat/params.hpp"

namespace sycl_mat {

/// Accumulators of this type in the device's native vector: 16 floats or 8 doubles with AVX-512, half of that with AVX2.
int vector_elements(const DeviceInfo& device, DType accumulator);

/// Registers of the micro-kernel: its sums, a row of B, one element of A.
int registers_of(const PackParams& p);

/// Bytes of scratch a work-group needs for its panels of B, at most.
std::int64_t scratch_bytes(const PackParams& p, DType accumulator);

/// The first constraint that a set breaks, in words; empty: it holds all.
std::string broken_constraint(const PackParams& p, const DeviceInfo& device, DType accumulator = DType::float32);

/// The set with the smallest change of constants that holds every constraint.
PackParams nearest(const PackParams& p, const DeviceInfo& device, DType accumulator = DType::float32);

/// Throws ParamsError that names the broken constraint and the nearest set that holds it.
void check(const PackParams& p, const DeviceInfo& device, DType accumulator = DType::float32);

/// Bytes of B's block: the last cache's share of one core feeds it fast enough; half of that share, or half of the second cache where that
/// is larger. Typical sizes where the system hides its caches.
std::int64_t room_for_b(const DeviceInfo& device);

/// From the vector width and the caches, after T. M. Low et al., "Analytical Modeling Is Enough for High-Performance BLIS" (2016).
PackParams default_pack_params(const Problem& p, const DeviceInfo& device);

}  // namespace sycl_mat
