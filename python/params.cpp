// TileParams, TileOptions, PackParams as immutable Python values.
#include <nanobind/stl/string.h>

#include <array>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {
namespace {

template <class T>
struct Field {
  const char* name;
  int T::* member;
  const char* doc;
};

constexpr std::array<Field<TileParams>, 6> tile_params_fields{{
    {"tile_m", &TileParams::tile_m, "work-items of a group along M"},
    {"tile_n", &TileParams::tile_n, "work-items of a group along N"},
    {"tile_k", &TileParams::tile_k, "depth of a tile"},
    {"batch_m", &TileParams::batch_m, "rows a work-item computes"},
    {"batch_n", &TileParams::batch_n, "columns a work-item computes"},
    {"chunk", &TileParams::chunk, "elements a load moves"},
}};
constexpr std::array<Field<TileOptions>, 10> tile_options_fields{{
    {"a_transposed", &TileOptions::a_transposed, "local copy of A stored [k][m]"},
    {"pad", &TileOptions::pad, "elements added to a row of local memory"},
    {"strided", &TileOptions::strided, "rows and columns of a work-item: 0 contiguous, 1 strided in chunks of 4"},
    {"order", &TileOptions::order, "products of a k: 0 row by row, 1 serpentine"},
    {"ahead", &TileOptions::ahead,
     "when the next k's fragments are read: 0 as needed, 1 before the present products, 2 also across the barrier"},
    {"local", &TileOptions::local, "operands: 0 straight from global memory, 1 through local memory, 2 with A's read once a sub-group"},
    {"sub_group", &TileOptions::sub_group, "required sub-group size, 0: the compiler's choice"},
    {"split_k", &TileOptions::split_k, "groups that share one block of C along K"},
    {"swizzle", &TileOptions::swizzle, "block rows walked together, 0: row by row"},
    {"share", &TileOptions::share, "groups among which blocks that do not come out even are shared out along K, 0: none"},
}};
constexpr std::array<Field<PackParams>, 6> pack_params_fields{{
    {"mr", &PackParams::mr, "rows of the micro-kernel"},
    {"nv", &PackParams::nv, "vectors of the micro-kernel's row"},
    {"kc", &PackParams::kc, "depth of a packed block of B"},
    {"mc", &PackParams::mc, "rows of A a core walks before the next block of B, 0: all of its rows"},
    {"nc", &PackParams::nc, "columns of a packed block of B"},
    {"pack", &PackParams::pack, "0: B read in place, 1: packed before use, 2: packed on the way"},
}};

template <class T, std::size_t N>
nb::dict as_dict(const T& value, const std::array<Field<T>, N>& fields) {
  nb::dict result;
  for (const Field<T>& field : fields) result[field.name] = value.*field.member;
  return result;
}

/// int as the constructor's argument type: nanobind needs one parameter a field.
template <std::size_t>
using IntOf = int;

template <class T, std::size_t N, std::size_t... I>
nb::class_<T> bind_values(nb::module_& m, const char* name, const char* doc, const std::array<Field<T>, N>& fields,
                          std::index_sequence<I...>) {
  nb::class_<T> type(m, name, doc);
  const T defaults;
  type.def(
      "__init__",
      [&fields](T* self, IntOf<I>... values) {
        new (self) T;
        ((self->*fields[I].member = values), ...);
      },
      (nb::arg(fields[I].name) = defaults.*fields[I].member)...);
  for (const Field<T>& field : fields) {
    int T::* member = field.member;
    type.def_prop_ro(field.name, [member](const T& self) { return self.*member; }, field.doc);
  }
  type.def(
      "asdict", [&fields](const T& self) { return as_dict(self, fields); }, "The constants by name.",
      nb::sig("def asdict(self) -> dict[str, int]"));
  type.def(
      "replace",
      [type, &fields](const T& self, nb::kwargs changes) {
        nb::dict values = as_dict(self, fields);
        for (auto [key, value] : changes) values[key] = value;
        return type(**values);
      },
      "A copy with some constants changed.", nb::sig(("def replace(self, **changes: int) -> " + std::string(name)).c_str()));
  type.def("__repr__", [name, &fields](const T& self) {
    std::string text = std::string(name) + "(";
    for (const Field<T>& field : fields) {
      if (text.back() != '(') text += ", ";
      text += std::string(field.name) + "=" + std::to_string(self.*field.member);
    }
    return text + ")";
  });
  type.def(
      "__eq__", [](const T& self, nb::handle other) { return nb::isinstance<T>(other) && nb::cast<const T&>(other) == self; },
      nb::sig("def __eq__(self, other: object, /) -> bool"));
  type.def("__hash__", [&fields](const T& self) {
    Py_hash_t hash = 0x345678;
    for (const Field<T>& field : fields) hash = hash * 1000003 ^ (self.*field.member + 97531);
    return hash == -1 ? -2 : hash;
  });
  type.def(
      "__reduce__",
      [type, &fields](const T& self) {
        nb::list values;
        for (const Field<T>& field : fields) values.append(self.*field.member);
        return nb::make_tuple(type, nb::tuple(values));
      },
      nb::sig(("def __reduce__(self) -> tuple[type[" + std::string(name) + "], tuple[int, ...]]").c_str()));
  return type;
}

}  // namespace

void bind_params(nb::module_& m) {
  bind_values(m, "TileParams",
              "The six constants of the tiled kernels. A work-group of tile_m × tile_n work-items computes a block of\n"
              "(tile_m·batch_m) × (tile_n·batch_n) results, walking K in steps of tile_k; every load moves `chunk` elements.",
              tile_params_fields, std::make_index_sequence<tile_params_fields.size()>());
  bind_values(m, "TileOptions", "The other choices inside the tiled kernel; pass `params=(TileParams(...), TileOptions(...))`.",
              tile_options_fields, std::make_index_sequence<tile_options_fields.size()>());
  bind_values(m, "PackParams", "The constants of the packed (CPU) kernel.", pack_params_fields,
              std::make_index_sequence<pack_params_fields.size()>());
}

Params params_from(nb::handle value) {
  if (value.is_none()) return std::monostate{};
  if (nb::isinstance<TileParams>(value)) return TiledChoice{nb::cast<TileParams>(value), {}};
  if (nb::isinstance<PackParams>(value)) return nb::cast<PackParams>(value);
  if (nb::isinstance<nb::tuple>(value) && nb::len(value) == 2 && nb::isinstance<TileParams>(value[0]) &&
      nb::isinstance<TileOptions>(value[1])) {
    return TiledChoice{nb::cast<TileParams>(value[0]), nb::cast<TileOptions>(value[1])};
  }
  throw nb::type_error("params: TileParams, PackParams, or a tuple (TileParams, TileOptions) is wanted");
}

}  // namespace sycl_mat::python
