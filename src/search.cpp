#include "search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "forest.hpp"

namespace sycl_mat {

Space::Space(std::vector<Dimension> dimensions, std::function<bool(const Values&)> valid)
    : dimensions_(std::move(dimensions)), valid_(std::move(valid)) {
  for (const Dimension& d : dimensions_) {
    if (d.values.empty()) throw std::invalid_argument("the dimension " + d.name + " of a search space has no values");
    weights_.push_back(raw_size_);
    raw_size_ *= d.values.size();
  }
}

Values Space::values(PointId id) const {
  Values result;
  result.reserve(dimensions_.size());
  for (const Dimension& d : dimensions_) {
    result.push_back(d.values[id % d.values.size()]);
    id /= d.values.size();
  }
  return result;
}

PointId Space::id_of(const Values& values, bool& found) const {
  PointId id = 0;
  found = values.size() == dimensions_.size();
  for (std::size_t i = 0; found && i < values.size(); ++i) {
    const auto& list = dimensions_[i].values;
    const auto at = std::find(list.begin(), list.end(), values[i]);
    if (at == list.end()) found = false;
    id += static_cast<PointId>(at - list.begin()) * weights_[i];
  }
  return found ? id : 0;
}

std::vector<PointId> Space::points(std::size_t most, std::uint64_t seed) const {
  std::vector<PointId> result;
  // A few million validity checks take a second: beyond that a sample does.
  constexpr PointId walkable = 3'000'000;
  std::mt19937_64 random(seed);
  if (raw_size_ <= walkable) {
    for (PointId id = 0; id < raw_size_; ++id)
      if (valid(id)) result.push_back(id);
    if (result.size() > most) {
      std::shuffle(result.begin(), result.end(), random);
      result.resize(most);
    }
    return result;
  }
  std::unordered_set<PointId> seen;
  for (std::size_t tries = 0; tries < 40 * most && result.size() < most; ++tries) {
    const PointId id = random() % raw_size_;
    if (seen.insert(id).second && valid(id)) result.push_back(id);
  }
  return result;
}

std::vector<PointId> Space::neighbours(PointId id, bool adjacent) const {
  std::vector<PointId> result;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const PointId count = dimensions_[i].values.size();
    const PointId own = id / weights_[i] % count;
    for (PointId other = 0; other < count; ++other) {
      if (other == own || (adjacent && other + 1 != own && own + 1 != other)) continue;
      const PointId neighbour = id - own * weights_[i] + other * weights_[i];
      if (valid(neighbour)) result.push_back(neighbour);
    }
  }
  return result;
}

namespace {

/// What every strategy keeps: which points were proposed, the seeds, a source of random numbers.
class Base : public Searcher {
 public:
  Base(const Space& space, SearchOptions options) : space_(space), options_(std::move(options)), random_(options_.seed) {}

  void tell(PointId point, double cost) override {
    (void)cost;
    proposed_.insert(point);
  }

 protected:
  bool propose(std::vector<PointId>& into, PointId point) {
    if (!proposed_.insert(point).second) return false;
    into.push_back(point);
    return true;
  }
  void propose_seeds(std::vector<PointId>& into, std::size_t count) {
    while (into.size() < count && next_seed_ < options_.seeds.size()) propose(into, options_.seeds[next_seed_++]);
  }
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  const Space& space_;
  SearchOptions options_;
  std::mt19937_64 random_;
  std::unordered_set<PointId> proposed_;
  std::size_t next_seed_ = 0;
};

/// All points in the order of the lists, or in a random one.
class Walk final : public Base {
 public:
  Walk(const Space& space, SearchOptions options, bool shuffled) : Base(space, std::move(options)) {
    points_ = space.points(std::numeric_limits<std::size_t>::max() / 64, options_.seed);
    if (shuffled) std::shuffle(points_.begin(), points_.end(), random_);
  }
  std::vector<PointId> ask(std::size_t count) override {
    std::vector<PointId> result;
    propose_seeds(result, count);
    while (result.size() < count && next_ < points_.size()) propose(result, points_[next_++]);
    return result;
  }

 private:
  std::vector<PointId> points_;
  std::size_t next_ = 0;
};

/// Simulated annealing over one-constant moves, in the logarithm of the cost; cools from 30 % to 1 % over the expected evaluations.
class Annealing final : public Base {
 public:
  using Base::Base;

  std::vector<PointId> ask(std::size_t count) override {
    std::vector<PointId> result;
    propose_seeds(result, count);
    while (result.size() < count) {
      std::vector<PointId> moves;
      if (started_)
        for (const PointId p : space_.neighbours(current_))
          if (!proposed_.contains(p)) moves.push_back(p);
      if (moves.empty()) {  // not started, or every neighbour is known: jump
        if (restarts_.empty()) restarts_ = space_.points(20000, options_.seed + 7);
        for (const PointId p : restarts_)
          if (!proposed_.contains(p)) moves.push_back(p);
        started_ = false;
      }
      if (moves.empty()) break;
      propose(result, moves[random_() % moves.size()]);
    }
    return result;
  }

  void tell(PointId point, double cost) override {
    Base::tell(point, cost);
    ++told_;
    if (!std::isfinite(cost)) return;
    const double temperature =
        0.3 * std::pow(0.01 / 0.3, std::min(1.0, static_cast<double>(told_) / static_cast<double>(options_.expected)));
    const double worse = std::log(cost / current_cost_);
    if (started_ && worse > 0 && uniform() >= std::exp(-worse / temperature)) return;
    started_ = true;
    current_ = point;
    current_cost_ = cost;
  }

 private:
  bool started_ = false;
  PointId current_ = 0;
  double current_cost_ = 1;
  std::size_t told_ = 0;
  std::vector<PointId> restarts_;
};

/// Ours. It starts with the seeds and with points that the model thinks good and that differ from each other; then a forest learns from
/// what was measured (with the model's guess among its features) and the point of the largest expected improvement is next, taken
/// from the neighbourhoods of the best points, from what the model likes, and from anywhere.
class Guided final : public Base {
 public:
  Guided(const Space& space, SearchOptions options) : Base(space, std::move(options)) {
    pool_ = space.points(20000, options_.seed);
    std::shuffle(pool_.begin(), pool_.end(), random_);
    if (!options_.model) return;
    std::vector<std::pair<double, PointId>> ranked;
    for (const PointId p : pool_) ranked.emplace_back(guess(p), p);
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = ranked[i].second;
  }

  std::vector<PointId> ask(std::size_t count) override {
    std::vector<PointId> result;
    propose_seeds(result, count);
    // As many starts as there are constants that vary: a forest of fewer points cannot tell them apart.
    const auto varying =
        std::count_if(space_.dimensions().begin(), space_.dimensions().end(), [](const Dimension& d) { return d.values.size() > 1; });
    const std::size_t first = std::max<std::size_t>(6, static_cast<std::size_t>(varying));
    while (result.size() < count && started_ < first && propose_start(result)) ++started_;
    if (result.size() < count) propose_by_forest(result, count);
    return result;
  }

  void tell(PointId point, double cost) override {
    Base::tell(point, cost);
    costs_[point] = cost;
  }

 private:
  double guess(PointId p) const {
    if (!options_.model) return 0;
    const double cost = options_.model(space_.values(p));
    return cost > 0 && std::isfinite(cost) ? std::log(cost) : 50;
  }

  std::size_t difference(PointId x, PointId y) const {
    const Values a = space_.values(x), b = space_.values(y);
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
    return count;
  }

  /// The model's next favourite that differs in two constants from everything proposed so far; every third start is a random point.
  bool propose_start(std::vector<PointId>& into) {
    if (started_ % 3 == 2) {
      for (int tries = 0; tries < 50 && !pool_.empty(); ++tries)
        if (propose(into, pool_[random_() % pool_.size()])) return true;
    }
    for (const std::size_t apart : {2, 1})
      for (const PointId p : pool_) {
        if (proposed_.contains(p)) continue;
        if (std::any_of(proposed_.begin(), proposed_.end(), [&](PointId q) { return difference(p, q) < apart; })) continue;
        return propose(into, p);
      }
    return false;
  }

  const std::vector<double>& features(PointId p) {
    std::vector<double>& row = features_[p];  // asked again in every round
    if (!row.empty()) return row;
    double product = 0;
    for (const int value : space_.values(p)) {
      row.push_back(std::log2(value + 1.0));
      product += row.back();
    }
    row.push_back(product);
    row.push_back(guess(p));
    return row;
  }

  void propose_by_forest(std::vector<PointId>& into, std::size_t count) {
    std::vector<std::pair<double, PointId>> measured;
    double worst = -std::numeric_limits<double>::infinity();
    for (const auto& [point, cost] : costs_)
      if (std::isfinite(cost) && cost > 0) {
        measured.emplace_back(std::log(cost), point);
        worst = std::max(worst, measured.back().first);
      }
    std::sort(measured.begin(), measured.end());
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    for (const auto& [cost, point] : measured) {
      rows.push_back(features(point));
      // Beyond five times the best all are equally uninteresting: the trees should spend their splits on the good region.
      targets.push_back(std::min(cost, measured.front().first + 1.6));
    }
    // A failure is as bad as anything seen, so that its surroundings are avoided, not forbidden.
    for (const auto& [point, cost] : costs_)
      if (!std::isfinite(cost) && !measured.empty()) {
        rows.push_back(features(point));
        targets.push_back(std::min(worst, measured.front().first + 1.6));
      }
    Forest forest;
    forest.fit(rows, targets, options_.seed + costs_.size());

    std::unordered_set<PointId> candidates;
    const auto add = [&](PointId p) {
      if (!proposed_.contains(p)) candidates.insert(p);
    };
    for (std::size_t i = 0; i < std::min<std::size_t>(5, measured.size()); ++i) {
      for (const PointId p : space_.neighbours(measured[i].second)) {
        add(p);
        if (i < 2)
          for (const PointId q : space_.neighbours(p, true)) add(q);
      }
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(200, pool_.size()); ++i) add(pool_[i]);
    for (int i = 0; i < 400 && !pool_.empty(); ++i) add(pool_[random_() % pool_.size()]);
    if (candidates.empty())
      for (const PointId p : pool_) add(p);

    const double best = measured.empty() ? 0 : measured.front().first;
    std::vector<std::pair<double, PointId>> ranked;
    for (const PointId p : candidates) ranked.emplace_back(forest.empty() ? -guess(p) : improvement(forest.predict(features(p)), best), p);
    std::sort(ranked.begin(), ranked.end(),
              [](const auto& x, const auto& y) { return x.first > y.first || (x.first == y.first && x.second < y.second); });
    for (const auto& [gain, point] : ranked) {
      if (into.size() >= count) break;
      propose(into, point);
    }
  }

  /// Expected improvement of a normal distribution, in the logarithm of the cost. The deviation has a floor: trees that agree may err.
  static double improvement(Forest::Prediction p, double best) {
    const double deviation = std::max(p.deviation, 0.02);
    const double z = (best - p.mean) / deviation;
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * 3.14159265358979323846);
    const double below = 0.5 * std::erfc(-z / std::sqrt(2.0));
    return deviation * (z * below + density);
  }

  std::vector<PointId> pool_;  ///< best guesses first
  std::size_t started_ = 0;
  std::unordered_map<PointId, double> costs_;
  std::unordered_map<PointId, std::vector<double>> features_;
};

constexpr std::array<std::string_view, 4> names{"guided", "exhaustive", "random", "annealing"};

}  // namespace

std::span<const std::string_view> search_strategies() { return names; }

std::unique_ptr<Searcher> make_searcher(std::string_view strategy, const Space& space, SearchOptions options) {
  if (strategy == "guided") return std::make_unique<Guided>(space, std::move(options));
  if (strategy == "exhaustive") return std::make_unique<Walk>(space, std::move(options), false);
  if (strategy == "random") return std::make_unique<Walk>(space, std::move(options), true);
  if (strategy == "annealing") return std::make_unique<Annealing>(space, std::move(options));
  throw std::invalid_argument("there is no search strategy \"" + std::string(strategy) +
                              "\"; there are guided, exhaustive, random, annealing");
}

}  // namespace sycl_mat
