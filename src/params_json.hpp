// Constants as JSON: {"family": "tile", "tile_m": 16, …}. Reading is strict: a name that no family has, or a value that is no plausible
// integer, makes the whole set useless. A missing option has its default, so that files outlive the addition of options.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "params_fields.hpp"

namespace sycl_mat {

nlohmann::ordered_json params_to_json(const Params& params);
/// Nothing where the value is no set of constants.
std::optional<Params> params_from_json(const nlohmann::ordered_json& value);

}  // namespace sycl_mat
