#include "tune_space.hpp"

#include <algorithm>

#include "params_fields.hpp"
#include "params_pack.hpp"
#include "params_tile.hpp"
#include "shape_class.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

Params empty_set(std::string_view family) {
  if (family == "tile") return TiledChoice{};
  if (family == "pack") return PackParams{};
  return {};
}

Params make_params(std::string_view family, const Values& values) {
  Params params = empty_set(family);
  const auto& fields = fields_of(params);
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i].set(params, values[i]);
  return params;
}

/// What is worth trying for a constant. Powers of two where the hardware works in them; more in between where it does not.
std::vector<int> values_worth_trying(std::string_view family, std::string_view name, std::span<const Problem> problems,
                                     const DeviceInfo& device) {
  if (family == "tile") {
    if (name == "tile_m" || name == "tile_n") return {1, 2, 4, 8, 16, 32};
    if (name == "tile_k") return {4, 8, 16, 32};
    if (name == "batch_m" || name == "batch_n") return {1, 2, 4, 8, 16};
    if (name == "chunk") return {1, 2, 4, 8};
    if (name == "pad") return {0, 1, 4, 8};
    if (name == "ahead" || name == "local") return {0, 1, 2};
    if (name == "swizzle") return {0, 4, 8, 16};
    if (name == "split_k") return {1, 2, 4, 8, 16};
    if (name == "share") {
      // One, two, … groups a multiprocessor, where a multiprocessor has room for several.
      std::vector<int> groups{0};
      if (device.architecture.starts_with("nvidia"))
        for (const int each : {1, 2, 3, 4, 6}) groups.push_back(each * int(device.compute_units));
      return groups;
    }
    if (name == "sub_group") {
      // NVIDIA has one size. Elsewhere it decides how many registers a work-item gets.
      std::vector<int> sizes{0};
      if (device.sub_group_sizes.size() > 1)
        for (const int size : device.sub_group_sizes)
          if (size >= 8 && size <= 32) sizes.push_back(size);
      return sizes;
    }
    return {0, 1};
  }
  if (name == "mr") return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14};
  if (name == "nv") return {1, 2, 3, 4, 5, 6};
  if (name == "kc") return {64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 2048};
  if (name == "mc") return {0, 48, 96, 192, 384, 768};
  if (name == "nc") {
    // Multiples of every panel width: nv vectors of 1 … 6, so that no set is lost to the constraint alone.
    std::vector<int> columns;
    const int width = vector_elements(device, problems[0].accumulator);
    for (const int vectors : {12, 24, 36, 60, 120, 240}) columns.push_back(vectors * width);
    return columns;
  }
  return {0, 1, 2};  // pack
}

/// The largest sizes among problems.
Shape largest_sizes(std::span<const Problem> problems) {
  Shape most;
  for (const Problem& p : problems) {
    most.m = std::max(most.m, p.m);
    most.n = std::max(most.n, p.n);
    most.k = std::max(most.k, p.k);
  }
  return most;
}

/// The set that stands for all that mean the same for these problems: of blocks that hold a whole size, the smallest that does.
Params canonical(Params params, const Shape& most, const std::vector<Dimension>& dimensions) {
  const auto smallest = [&](std::size_t dimension, int& value, index_t size) {
    for (const int other : dimensions[dimension].values)  // ascending
      if (other > 0 && other < value && other >= size) {
        value = other;
        return;
      }
  };
  if (auto* pack = std::get_if<PackParams>(&params)) {
    smallest(0, pack->mr, most.m);
    smallest(2, pack->kc, most.k);
    smallest(4, pack->nc, most.n);
    if (pack->mc >= most.m) pack->mc = 0;
  } else if (auto* tiled = std::get_if<TiledChoice>(&params); tiled && !tiled->options.local) {
    // Without local memory its layout is of no consequence.
    const TileOptions standard;
    tiled->options.pad = standard.pad;
    tiled->options.a_transposed = standard.a_transposed;
  }
  return params;
}

/// Splits of K so fine that a part is hardly a tile.
bool pointless(const Params& params, const Shape& most) {
  const auto* tiled = std::get_if<TiledChoice>(&params);
  return tiled && tiled->options.split_k > 1 && most.k / tiled->options.split_k < 2 * tiled->params.tile_k;
}

bool fits_registers(const TiledChoice& c, const DeviceInfo& device, DType dtype) {
  if (!device.is_gpu()) return true;
  const int estimate = registers_estimate(c.params, c.options, dtype);
  if (estimate > 280) return false;
  // Compilers take up to 1.6 times the estimate (addresses, and loads begun early), at most the 255 of a work-item; a group must fit the
  // 64 K registers that a multiprocessor of any vendor has had so far. On an H200 every fifth set failed to launch without this.
  const std::int64_t items = std::int64_t{c.params.tile_m} * c.params.tile_n;
  return items * std::min(255.0, 1.6 * estimate) <= 65536;
}

Space make_space(const Kernel& kernel, std::span<const Problem> problems_, const DeviceInfo& device, std::span<const Params> include,
                 std::span<const TuneSpace::Restriction> restrictions) {
  const std::string_view family = kernel.params;
  std::vector<Dimension> dimensions;
  const Params empty = empty_set(family);
  for (const ParamField& field : fields_of(empty)) {
    Dimension d{field.name, values_worth_trying(family, field.name, problems_, device)};
    for (const Params& params : include)
      if (family_of(params) == family) d.values.push_back(field.get(params));
    for (const auto& [name, values] : restrictions)
      if (name == field.name) d.values = values;
    std::sort(d.values.begin(), d.values.end());
    d.values.erase(std::unique(d.values.begin(), d.values.end()), d.values.end());
    dimensions.push_back(std::move(d));
  }
  for (const auto& [name, values] : restrictions)
    if (values.empty() || std::none_of(dimensions.begin(), dimensions.end(), [&](const Dimension& d) { return d.name == name; }))
      throw InputError("the kernel \"" + std::string(kernel.name) + "\" has no constant \"" + name + "\", or no value was given for it");
  // A kernel without constants has one point; so that the space is not of dimension zero it gets a name.
  if (dimensions.empty()) dimensions.push_back({"none", {0}});
  const std::vector<Problem> problems(problems_.begin(), problems_.end());
  const Shape most = largest_sizes(problems);
  const auto valid = [family, problems, device, dimensions, most](const Values& values) {
    const Params params = make_params(family, values);
    const Problem& p = problems.front();
    if (const auto* pack = std::get_if<PackParams>(&params)) {
      if (!broken_constraint(*pack, device, p.accumulator).empty()) return false;
      const bool must_pack = p.dtype != p.accumulator || p.b.transposed;
      if (must_pack && pack->pack == 0) return false;
    } else if (const auto* tiled = std::get_if<TiledChoice>(&params)) {
      // The cheap reasons first: spaces of millions are sampled through this.
      if (tiled->params.tile_m * tiled->params.tile_n < 16 || !fits_registers(*tiled, device, p.dtype)) return false;
      if (!broken_constraint(tiled->params, tiled->options, device, p.dtype).empty()) return false;
    }
    return !pointless(params, most) && canonical(params, most, dimensions) == params;
  };
  return Space(dimensions, valid);
}

}  // namespace

TuneSpace::TuneSpace(const Kernel& kernel, std::span<const Problem> problems, const DeviceInfo& device, std::span<const Params> include,
                     std::span<const Restriction> restrictions)
    : family_(kernel.params),
      problems_(problems.begin(), problems.end()),
      space_(make_space(kernel, problems, device, include, restrictions)) {}

Params TuneSpace::params(const Values& values) const { return make_params(family_, values); }

std::optional<PointId> TuneSpace::point(const Params& params) const {
  if (family_of(params) != family_) return std::nullopt;
  Values values;
  const Params same = canonical(params, largest_sizes(problems_), space_.dimensions());
  for (const ParamField& field : fields_of(same)) values.push_back(field.get(same));
  if (values.empty()) values.push_back(0);
  bool found = false;
  const PointId id = space_.id_of(values, found);
  if (!found || !space_.valid(id)) return std::nullopt;
  return id;
}

}  // namespace sycl_mat
