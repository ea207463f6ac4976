#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sycl_mat {

void Forest::fit(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets, std::uint64_t seed, int trees) {
  nodes_.clear();
  roots_.clear();
  if (rows.empty()) return;
  std::mt19937_64 random(seed);
  std::vector<int> members(rows.size());
  for (int tree = 0; tree < trees; ++tree) {
    for (int& member : members) member = static_cast<int>(random() % rows.size());  // bootstrap: with replacement
    roots_.push_back(grow(rows, targets, members, 0, static_cast<int>(members.size()), random));
  }
}

int Forest::grow(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets, std::vector<int>& members, int begin,
                 int end, std::mt19937_64& random) {
  const int count = end - begin;
  double sum = 0, squares = 0;
  for (int i = begin; i < end; ++i) {
    const double target = targets[static_cast<std::size_t>(members[static_cast<std::size_t>(i)])];
    sum += target;
    squares += target * target;
  }
  const int self = static_cast<int>(nodes_.size());
  nodes_.push_back({-1, 0, sum / count, 0, 0});
  const double error = squares - sum * sum / count;
  if (count < 3 || error < 1e-12) return self;

  const std::size_t features = rows[0].size();
  int best_feature = -1;
  double best_threshold = 0, best_error = error;
  std::vector<std::pair<double, double>> sorted(static_cast<std::size_t>(count));
  for (std::size_t feature = 0; feature < features; ++feature) {
    // Two thirds of the features a split: enough for a small number of them, and the trees still differ.
    if (random() % 3 == 0) continue;
    for (int i = 0; i < count; ++i) {
      const auto member = static_cast<std::size_t>(members[static_cast<std::size_t>(begin + i)]);
      sorted[static_cast<std::size_t>(i)] = {rows[member][feature], targets[member]};
    }
    std::sort(sorted.begin(), sorted.end());
    double left_sum = 0, left_squares = 0;
    for (int i = 0; i + 1 < count; ++i) {
      const auto [value, target] = sorted[static_cast<std::size_t>(i)];
      left_sum += target;
      left_squares += target * target;
      const double next = sorted[static_cast<std::size_t>(i) + 1].first;
      if (next == value) continue;
      const double right_sum = sum - left_sum, right_squares = squares - left_squares;
      const int left = i + 1, right = count - left;
      const double split_error = left_squares - left_sum * left_sum / left + right_squares - right_sum * right_sum / right;
      if (split_error < best_error - 1e-15) {
        best_error = split_error;
        best_feature = static_cast<int>(feature);
        best_threshold = (value + next) / 2;
      }
    }
  }
  if (best_feature < 0) return self;
  const auto middle = std::partition(members.begin() + begin, members.begin() + end, [&](int member) {
    return rows[static_cast<std::size_t>(member)][static_cast<std::size_t>(best_feature)] < best_threshold;
  });
  const int cut = static_cast<int>(middle - members.begin());
  const int left = grow(rows, targets, members, begin, cut, random);
  const int right = grow(rows, targets, members, cut, end, random);
  nodes_[static_cast<std::size_t>(self)] = {best_feature, best_threshold, sum / count, left, right};
  return self;
}

Forest::Prediction Forest::predict(const std::vector<double>& row) const {
  double sum = 0, squares = 0;
  for (const int root : roots_) {
    int at = root;
    while (true) {
      const Node& node = nodes_[static_cast<std::size_t>(at)];
      if (node.feature < 0) {
        sum += node.value;
        squares += node.value * node.value;
        break;
      }
      at = row[static_cast<std::size_t>(node.feature)] < node.threshold ? node.left : node.right;
    }
  }
  const double count = static_cast<double>(roots_.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace sycl_mat
