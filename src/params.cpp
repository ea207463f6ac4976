// Constants as people write them.
#include "sycl_mat/params.hpp"

namespace sycl_mat {

std::string to_string(const TileParams& p) {
  std::string out;
  for (const int value : {p.tile_m, p.tile_n, p.tile_k, p.batch_m, p.batch_n, p.chunk}) out.append(out.empty() ? "" : ",").append(std::to_string(value));
  return out;
}

std::string to_string(const TileOptions& o) {
  return "a_transposed=" + std::to_string(o.a_transposed) + " pad=" + std::to_string(o.pad) + " strided=" + std::to_string(o.strided) +
         " order=" + std::to_string(o.order) + " ahead=" + std::to_string(o.ahead) + " local=" + std::to_string(o.local) +
         " sub_group=" + std::to_string(o.sub_group) + " split_k=" + std::to_string(o.split_k) + " swizzle=" + std::to_string(o.swizzle);
}

std::string to_string(const PackParams& p) {
  return "mr=" + std::to_string(p.mr) + " nv=" + std::to_string(p.nv) + " kc=" + std::to_string(p.kc) + " mc=" + std::to_string(p.mc) +
         " nc=" + std::to_string(p.nc) + " pack=" + std::to_string(p.pack);
}

}  // namespace sycl_mat
