#include "params_json.hpp"

#include <string>

namespace sycl_mat {

nlohmann::ordered_json params_to_json(const Params& params) {
  nlohmann::ordered_json value;
  value["family"] = family_of(params);
  for (const ParamField& field : fields_of(params)) value[field.name] = field.get(params);
  return value;
}

std::optional<Params> params_from_json(const nlohmann::ordered_json& value) {
  if (!value.is_object() || !value.contains("family") || !value["family"].is_string()) return std::nullopt;
  const std::string family = value["family"];
  Params params;
  if (family == "tile")
    params = TiledChoice{};
  else if (family == "pack")
    params = PackParams{};
  else if (family != "none")
    return std::nullopt;
  for (const auto& [name, number] : value.items()) {
    if (name == "family") continue;
    const ParamField* found = nullptr;
    for (const ParamField& field : fields_of(params))
      if (name == field.name) found = &field;
    // The bound is far above any sensible constant and keeps products of a few of them inside 64 bits.
    if (found == nullptr || !number.is_number_integer() || number < 0 || number > (1 << 20)) return std::nullopt;
    found->set(params, number.get<int>());
  }
  return params;
}

}  // namespace sycl_mat
