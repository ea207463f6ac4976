// A recorded sweep: every point of a space that was measured once, in a file, so that search strategies can be compared on real costs
// without the device.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "search.hpp"

namespace sycl_mat {

struct Sweep {
  std::string device, driver, kernel, problem, measured;  ///< what was measured, in words
  std::vector<Dimension> dimensions;
  struct Entry {
    Values values;
    double cost = 0;   ///< seconds; infinity: it failed
    double guess = 0;  ///< of the model, 0: none
  };
  std::vector<Entry> entries;
};

/// Throws Error that names the file.
Sweep read_sweep(const std::filesystem::path& file);
void write_sweep(const std::filesystem::path& file, const Sweep& sweep);

/// What a strategy would have done: the cost of each evaluation in order. `batch` points are asked for at a time, as the tuner compiles
/// that many in parallel. `use_model`: the recorded guesses lead it.
struct Replay {
  std::vector<double> costs;
  double best = 0;  ///< of the whole sweep
  /// Evaluations until the best so far was within `margin` (0.05: 5 %) of the sweep's best; 0: never.
  std::size_t evaluations_to(double margin) const;
};
Replay replay(const Sweep& sweep, std::string_view strategy, std::uint64_t seed, std::size_t batch, std::size_t most,
              bool use_model = true);

}  // namespace sycl_mat
