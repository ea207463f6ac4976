#include "sweep.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "sycl_mat/errors.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {
namespace {
using json = nlohmann::ordered_json;
constexpr double failed = std::numeric_limits<double>::infinity();
}  // namespace

Sweep read_sweep(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error("cannot read the sweep " + file.string());
  try {
    const json root = json::parse(stream);
    if (root.at("format") != "sycl_mat sweep" || root.at("version") != 1) throw Error("not a sweep of this version");
    Sweep s;
    s.device = root.at("device");
    s.driver = root.at("driver");
    s.kernel = root.at("kernel");
    s.problem = root.at("problem");
    s.measured = root.at("measured");
    for (const auto& [name, values] : root.at("dimensions").items()) s.dimensions.push_back({name, values.get<std::vector<int>>()});
    for (const json& point : root.at("points")) {
      Sweep::Entry entry;
      entry.values = point.at(0).get<Values>();
      if (entry.values.size() != s.dimensions.size()) throw Error("a point has not one value a dimension");
      entry.cost = point.at(1).is_null() ? failed : point.at(1).get<double>() * 1e-6;
      entry.guess = point.at(2).get<double>() * 1e-6;
      s.entries.push_back(std::move(entry));
    }
    return s;
  } catch (const std::exception& e) {
    throw Error("cannot read the sweep " + file.string() + ": " + e.what());
  }
}

void write_sweep(const std::filesystem::path& file, const Sweep& sweep) {
  json head;
  head["format"] = "sycl_mat sweep";
  head["version"] = 1;
  head["device"] = sweep.device;
  head["driver"] = sweep.driver;
  head["kernel"] = sweep.kernel;
  head["problem"] = sweep.problem;
  head["measured"] = sweep.measured;
  head["unit"] = "points: [values, microseconds or null where it failed, the model's guess]";
  json dimensions = json::object();
  for (const Dimension& d : sweep.dimensions) dimensions[d.name] = d.values;
  head["dimensions"] = dimensions;
  std::string text = head.dump();
  text.pop_back();
  text += ",\n\"points\": [";
  bool first = true;
  for (const Sweep::Entry& entry : sweep.entries) {
    const auto microseconds = [](double seconds) { return std::round(seconds * 1e8) / 100; };
    json point = {entry.values, nullptr, microseconds(entry.guess)};
    if (std::isfinite(entry.cost)) point[1] = microseconds(entry.cost);
    text += (first ? "\n" : ",\n") + point.dump();
    first = false;
  }
  write_atomically(file, text + "\n]}\n");
}

std::size_t Replay::evaluations_to(double margin) const {
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (costs[i] <= best * (1 + margin)) return i + 1;
  return 0;
}

Replay replay(const Sweep& sweep, std::string_view strategy, std::uint64_t seed, std::size_t batch, std::size_t most, bool use_model) {
  std::map<Values, const Sweep::Entry*> known;
  Replay result;
  result.best = failed;
  for (const Sweep::Entry& entry : sweep.entries) {
    known[entry.values] = &entry;
    result.best = std::min(result.best, entry.cost);
  }
  const Space space(sweep.dimensions, [&](const Values& values) { return known.contains(values); });
  SearchOptions options;
  options.seed = seed;
  options.expected = most;
  if (use_model && std::any_of(sweep.entries.begin(), sweep.entries.end(), [](const auto& e) { return e.guess > 0; }))
    options.model = [&](const Values& values) { return known.at(values)->guess; };
  const auto searcher = make_searcher(strategy, space, options);
  while (result.costs.size() < most) {
    const std::vector<PointId> points = searcher->ask(std::min(batch, most - result.costs.size()));
    if (points.empty()) break;
    for (const PointId point : points) {
      const double cost = known.at(space.values(point))->cost;
      result.costs.push_back(cost);
      searcher->tell(point, cost);
    }
  }
  return result;
}

}  // namespace sycl_mat
