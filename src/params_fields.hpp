// The constants of the families by name, for code that walks over all of them: search spaces, files, tables.
#pragma once

#include <string>
#include <vector>

#include "sycl_mat/params.hpp"

namespace sycl_mat {

/// One constant of a family.
struct ParamField {
  const char* name;
  int (*get)(const Params&);
  void (*set)(Params&, int);
};
/// Those of the family that `params` belongs to.
const std::vector<ParamField>& fields_of(const Params& params);

/// "none", "tile" or "pack".
const char* family_of(const Params& params);

/// A set of constants on one line, every field by name: "tile_m=16 tile_n=16 …". The key of a candidate in journals and tables.
std::string describe(const Params& params);

}  // namespace sycl_mat
