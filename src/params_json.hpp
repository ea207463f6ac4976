// Constants as JSON: {"family": "tile", "tile_m": 16, …}. Reading is strict: a name that no family has, or a value that is no plausible
// integer, makes the whole set useless. A missing option has its default, so that files outlive the addition of options.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "sycl_mat/params.hpp"

namespace sycl_mat {

nlohmann::ordered_json params_to_json(const Params& params);
/// Nothing where the value is no set of constants.
std::optional<Params> params_from_json(const nlohmann::ordered_json& value);

/// One constant of a family by name, for code that walks over all of them. `family` is "tile" or "pack".
struct ParamField {
  const char* name;
  int (*get)(const Params&);
  void (*set)(Params&, int);
};
const std::vector<ParamField>& fields_of(const Params& params);

/// "none", "tile" or "pack".
const char* family_of(const Params& params);

/// A set of constants on one line, every field by name: "tile_m=16 tile_n=16 …". The key of a candidate in journals and tables.
std::string describe(const Params& params);

}  // namespace sycl_mat
