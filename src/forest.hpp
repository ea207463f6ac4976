// A small random forest for regression: what the tuner's search predicts times of unmeasured constants with. Trees suit the task: the
// constants are a few integers, their effects are steps and interactions (registers spill, a tile stops fitting), and there are only
// tens to hundreds of measurements.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace sycl_mat {

class Forest {
 public:
  struct Prediction {
    double mean = 0;
    double deviation = 0;  ///< between the trees: how little is known there
  };

  /// `rows` are feature vectors of equal length, `targets` one number each. Deterministic for a seed.
  void fit(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets, std::uint64_t seed, int trees = 30);
  Prediction predict(const std::vector<double>& row) const;
  bool empty() const { return roots_.empty(); }

 private:
  struct Node {
    int feature = -1;  ///< -1: a leaf
    double threshold = 0, value = 0;
    int left = 0, right = 0;
  };
  int grow(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets, std::vector<int>& members, int begin, int end,
           std::mt19937_64& random);

  std::vector<Node> nodes_;
  std::vector<int> roots_;
};

}  // namespace sycl_mat
