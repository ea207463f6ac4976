// Search of a discrete space for the point of least cost. Knows nothing of devices, kernels or clocks: a searcher proposes points and
// is told their costs, so the same code runs on a device and on a recorded sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sycl_mat {

/// One constant and the values it may take.
struct Dimension {
  std::string name;
  std::vector<int> values;
};

/// One value a dimension.
using Values = std::vector<int>;
/// A point as a number: mixed radix over the dimensions' lists.
using PointId = std::uint64_t;

class Space {
 public:
  /// `valid` holds the constraints between constants. Every dimension has at least one value.
  Space(std::vector<Dimension> dimensions, std::function<bool(const Values&)> valid);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  PointId raw_size() const { return raw_size_; }  ///< of the product of the lists, constraints aside
  Values values(PointId id) const;
  /// The point with these values; `found` says whether each is in its list.
  PointId id_of(const Values& values, bool& found) const;
  bool valid(PointId id) const { return valid_(values(id)); }
  /// Every valid point, or a uniform sample of about `most` of them where the space is larger than can be walked.
  std::vector<PointId> points(std::size_t most, std::uint64_t seed) const;
  /// Valid points that differ in one dimension; `adjacent` only by one step in its list.
  std::vector<PointId> neighbours(PointId id, bool adjacent = false) const;

 private:
  std::vector<Dimension> dimensions_;
  std::vector<PointId> weights_;
  PointId raw_size_ = 1;
  std::function<bool(const Values&)> valid_;
};

/// A guess of a point's cost, in any unit; only the order and the ratios count.
using Model = std::function<double(const Values&)>;

class Searcher {
 public:
  virtual ~Searcher() = default;
  /// Up to `count` points, none of which was proposed before. Empty: the strategy is at its end.
  virtual std::vector<PointId> ask(std::size_t count) = 0;
  /// The cost of a point; infinity where it failed. Points that nobody asked for are welcome (earlier results, the defaults).
  virtual void tell(PointId point, double cost) = 0;
};

struct SearchOptions {
  std::vector<PointId> seeds;  ///< proposed first: the present choice, the defaults
  Model model;                 ///< may be empty
  std::uint64_t seed = 1;
  std::size_t expected = 150;  ///< evaluations there is time for: annealing cools over that many
};

/// "exhaustive", "random", "annealing" or "guided". Throws std::invalid_argument for another name.
std::unique_ptr<Searcher> make_searcher(std::string_view strategy, const Space& space, SearchOptions options);
std::span<const std::string_view> search_strategies();

/// A space up to this many valid points is walked whole when there is time for it.
inline constexpr std::size_t small_space = 60;

}  // namespace sycl_mat
