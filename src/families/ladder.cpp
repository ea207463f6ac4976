// The lessons: naive … tiled_double_buffered, each with the constants that its step knows.
#include "../params_tile.hpp"
#include "families.hpp"
#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

/// What a step of the ladder has of TileParams; what it has not must be 1.
enum class Knows { tile, batch, chunk };

std::string why_not(const Problem& p, const DeviceInfo& device) {
  if (std::string reason = unsupported_type(p, device); !reason.empty()) return reason;
  // Batch and rows are dimensions of the launch range here; CUDA's are limited, apart from the fastest.
  if (device.backend == "cuda" && (p.batch() > 65535 || p.m > 65535 * 16))
    return "more matrices or rows than one launch has on this device";
  return "";
}

Params no_defaults(const Problem&, const DeviceInfo&) { return std::monostate{}; }
Params local_defaults(const Problem&, const DeviceInfo&) { return TiledChoice{{16, 16, 16, 1, 1, 1}, {}}; }
Params coarsened_defaults(const Problem&, const DeviceInfo&) { return TiledChoice{{16, 16, 16, 4, 4, 1}, {}}; }
Params vector_defaults(const Problem&, const DeviceInfo&) { return TiledChoice{{16, 16, 16, 4, 4, 4}, {}}; }
Params double_buffered_defaults(const Problem&, const DeviceInfo&) { return TiledChoice{{16, 16, 8, 8, 4, 8}, {}}; }

LaunchRange grid(const Problem& p, int tile_m, int tile_n, int block_m, int block_n) {
  const auto cover = [](index_t extent, int block, int tile) { return std::size_t((extent + block - 1) / block * tile); };
  return {{std::size_t(p.batch()), cover(p.m, block_m, tile_m), cover(p.n, block_n, tile_n)},
          {1, std::size_t(tile_m), std::size_t(tile_n)}};
}

Plan plan_naive(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params&) {
  constexpr int group = 16;  // as in kernels/1_naive.cpp
  if (device.max_work_group_size < group * group) throw ParamsError("naive runs work-groups of 256, the device holds fewer");
  Plan plan;
  plan.kernel = &kernel;
  plan.constants = common_constants(p);
  plan.range = grid(p, group, group, group, group);
  return plan;
}

template <Knows knows, int pages>
Plan plan_tiles(const Kernel& kernel, const Problem& p, const DeviceInfo& device, const Params& params) {
  const auto* choice = std::get_if<TiledChoice>(&params);
  const TileParams t = choice ? choice->params : std::get<TiledChoice>(kernel.defaults(p, device)).params;
  if (knows == Knows::tile && (t.batch_m != 1 || t.batch_n != 1))
    throw ParamsError(std::string(kernel.name) + " computes one result a work-item: batch_m and batch_n must be 1");
  if (knows != Knows::chunk && t.chunk != 1) throw ParamsError(std::string(kernel.name) + " loads element by element: chunk must be 1");
  TileOptions options;
  options.a_transposed = options.pad = options.strided = options.order = options.ahead = 0;
  check(t, options, device, p.dtype);

  Plan plan;
  plan.kernel = &kernel;
  plan.params = TiledChoice{t, options};
  plan.constants = common_constants(p);
  plan.constants.insert(plan.constants.end(), {{"TILE_M", t.tile_m}, {"TILE_N", t.tile_n}, {"TILE_K", t.tile_k}});
  if (knows != Knows::tile) plan.constants.insert(plan.constants.end(), {{"BATCH_M", t.batch_m}, {"BATCH_N", t.batch_n}});
  if (knows == Knows::chunk) plan.constants.emplace_back("CHUNK", t.chunk);
  plan.range = grid(p, t.tile_m, t.tile_n, t.tile_m * t.batch_m, t.tile_n * t.batch_n);
  plan.local_memory = local_memory_bytes(t, options, p.dtype) * pages / 2;
  return plan;
}

}  // namespace

std::span<const Kernel> ladder_kernels() {
  static const Kernel kernels[] = {
      {.name = "naive",
       .file = "1_naive.cpp",
       .summary = "one work-item a result, straight from global memory",
       .params = "none",
       .why_not = why_not,
       .defaults = no_defaults,
       .plan = plan_naive},
      {.name = "tiled_local",
       .file = "2_tiled_local.cpp",
       .summary = "tiles of A and B in local memory",
       .params = "tile",
       .why_not = why_not,
       .defaults = local_defaults,
       .plan = plan_tiles<Knows::tile, 1>},
      {.name = "tiled_coarsened",
       .file = "3_tiled_coarsened.cpp",
       .summary = "several results a work-item, in registers",
       .params = "tile",
       .why_not = why_not,
       .defaults = coarsened_defaults,
       .plan = plan_tiles<Knows::batch, 1>},
      {.name = "tiled_vector",
       .file = "4_tiled_vector.cpp",
       .summary = "tiles loaded in chunks by numbered work-items",
       .params = "tile",
       .why_not = why_not,
       .defaults = vector_defaults,
       .plan = plan_tiles<Knows::chunk, 1>},
      {.name = "tiled_double_buffered",
       .file = "5_tiled_double_buffered.cpp",
       .summary = "the next tiles are loaded while the present ones are multiplied",
       .params = "tile",
       .why_not = why_not,
       .defaults = double_buffered_defaults,
       .plan = plan_tiles<Knows::chunk, 2>},
  };
  return kernels;
}

}  // namespace sycl_mat
