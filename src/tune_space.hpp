// The constants of a kernel family as a search space, and a guess of how long a set would take.
#pragma once

#include <span>
#include <utility>

#include "kernel.hpp"
#include "search.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// The dimensions are the family's own, named as in JSON; constraints come from params_tile.hpp and params_pack.hpp alone.
class TuneSpace {
 public:
  using Restriction = std::pair<std::string, std::vector<int>>;
  /// `include`: sets whose values must be in the lists (the defaults, the present choice). Sets that mean the same for all `problems`
  /// (a block deeper than K) are one point. Throws InputError where `restrictions` name no constant of the family.
  TuneSpace(const Kernel& kernel, std::span<const Problem> problems, const DeviceInfo& device, std::span<const Params> include,
            std::span<const Restriction> restrictions);

  const Space& space() const { return space_; }
  Params params(const Values& values) const;
  /// The point of a set, or of the one that means the same for these problems; none where a value is not in its list.
  std::optional<PointId> point(const Params& params) const;

 private:
  std::string_view family_;
  std::vector<Problem> problems_;
  Space space_;
};

/// Relative time of a set of constants, from operation counts; see tune_model.cpp for what it considers.
double guess_seconds(const Params& params, const Problem& problem, const DeviceInfo& device);

}  // namespace sycl_mat
