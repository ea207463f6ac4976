#include "params_fields.hpp"

namespace sycl_mat {
namespace {

// The structs stay plain; here their members get names, once.
template <auto Member>
ParamField pack_field(const char* name) {
  return {name, [](const Params& p) { return std::get<PackParams>(p).*Member; },
          [](Params& p, int v) { std::get<PackParams>(p).*Member = v; }};
}
template <auto Member>
ParamField tile_field(const char* name) {
  return {name, [](const Params& p) { return std::get<TiledChoice>(p).params.*Member; },
          [](Params& p, int v) { std::get<TiledChoice>(p).params.*Member = v; }};
}
template <auto Member>
ParamField option_field(const char* name) {
  return {name, [](const Params& p) { return std::get<TiledChoice>(p).options.*Member; },
          [](Params& p, int v) { std::get<TiledChoice>(p).options.*Member = v; }};
}

const std::vector<ParamField>& tile_fields() {
  static const std::vector<ParamField> fields = {
      tile_field<&TileParams::tile_m>("tile_m"),
      tile_field<&TileParams::tile_n>("tile_n"),
      tile_field<&TileParams::tile_k>("tile_k"),
      tile_field<&TileParams::batch_m>("batch_m"),
      tile_field<&TileParams::batch_n>("batch_n"),
      tile_field<&TileParams::chunk>("chunk"),
      option_field<&TileOptions::a_transposed>("a_transposed"),
      option_field<&TileOptions::pad>("pad"),
      option_field<&TileOptions::strided>("strided"),
      option_field<&TileOptions::order>("order"),
      option_field<&TileOptions::ahead>("ahead"),
      option_field<&TileOptions::local>("local"),
      option_field<&TileOptions::sub_group>("sub_group"),
      option_field<&TileOptions::split_k>("split_k"),
      option_field<&TileOptions::swizzle>("swizzle"),
      option_field<&TileOptions::share>("share"),
  };
  return fields;
}
const std::vector<ParamField>& pack_fields() {
  static const std::vector<ParamField> fields = {
      pack_field<&PackParams::mr>("mr"), pack_field<&PackParams::nv>("nv"), pack_field<&PackParams::kc>("kc"),
      pack_field<&PackParams::mc>("mc"), pack_field<&PackParams::nc>("nc"), pack_field<&PackParams::pack>("pack"),
  };
  return fields;
}

}  // namespace

const std::vector<ParamField>& fields_of(const Params& params) {
  if (std::holds_alternative<TiledChoice>(params)) return tile_fields();
  if (std::holds_alternative<PackParams>(params)) return pack_fields();
  static const std::vector<ParamField> none;
  return none;
}

const char* family_of(const Params& params) {
  if (std::holds_alternative<TiledChoice>(params)) return "tile";
  if (std::holds_alternative<PackParams>(params)) return "pack";
  return "none";
}

std::string describe(const Params& params) {
  std::string text;
  for (const ParamField& field : fields_of(params)) {
    if (!text.empty()) text += ' ';
    text += field.name;
    text += '=';
    text += std::to_string(field.get(params));
  }
  return text.empty() ? "none" : text;
}

}  // namespace sycl_mat
