#include "params_pack.hpp"

#include <algorithm>

namespace sycl_mat {
namespace {

constexpr int max_rows = 14;  // the kernel has a variant for every number of rows up to mr: each costs build time
constexpr int max_vectors = 6;
constexpr int min_depth = 4, max_depth = 8192;
constexpr int max_columns = 1 << 16;
// Bytes that a last cache keeps at best: virtual machines are told the size of all the caches of a processor that they have a part of.
constexpr std::int64_t most_cached = 16 << 20;

std::int64_t or_typical(std::int64_t reported, std::int64_t typical) { return reported > 0 ? reported : typical; }
std::int64_t second_cache(const DeviceInfo& device) { return or_typical(device.l2_cache, 512 << 10); }

/// AVX-512 has 32 vector registers, everything before it 16. The narrower vectors of such a processor are asked for by nobody.
int vector_registers(const DeviceInfo& device) { return device.vector_width >= 16 ? 32 : 16; }

}  // namespace

int vector_elements(const DeviceInfo& device, DType accumulator) {
  // Four is SSE2, which every x86-64 has; the compiler splits wider vectors than the processor's, and joins no narrower ones.
  const int floats = std::clamp(device.vector_width, 4, 16);
  return size_of(accumulator) == 8 ? floats / 2 : floats;
}

int registers_of(const PackParams& p) { return p.mr * p.nv + p.nv + 1; }

std::int64_t scratch_bytes(const PackParams& p, DType accumulator) { return std::int64_t{p.kc} * p.nc * size_of(accumulator); }

std::string broken_constraint(const PackParams& p, const DeviceInfo& device, DType accumulator) {
  const auto value = [](const char* name, int v) { return std::string(name) + " = " + std::to_string(v); };
  const int columns = p.nv * vector_elements(device, accumulator);
  if (p.mr < 1 || p.mr > max_rows)
    return value("mr", p.mr) + " is not in 1 … " + std::to_string(max_rows) + ": every number of rows up to mr is a variant to compile";
  if (p.nv < 1 || p.nv > max_vectors) return value("nv", p.nv) + " is not in 1 … " + std::to_string(max_vectors);
  if (registers_of(p) > vector_registers(device))
    return value("mr", p.mr) + " and " + value("nv", p.nv) + " need " + std::to_string(registers_of(p)) +
           " vector registers (mr·nv sums, nv of B, one of A), the processor has " + std::to_string(vector_registers(device));
  if (p.kc < min_depth || p.kc > max_depth)
    return value("kc", p.kc) + " is not in " + std::to_string(min_depth) + " … " + std::to_string(max_depth);
  if (p.nc < columns || p.nc > max_columns || p.nc % columns != 0)
    return value("nc", p.nc) + " is no multiple of a panel's " + std::to_string(columns) + " columns (nv vectors), or not in " +
           std::to_string(columns) + " … " + std::to_string(max_columns);
  if (p.mc < 0 || (p.mc > 0 && p.mc < p.mr))
    return value("mc", p.mc) + " is neither 0 (all rows) nor at least mr = " + std::to_string(p.mr);
  if (p.pack < 0 || p.pack > 2) return value("pack", p.pack) + " is not 0 (B in place), 1 (packed before use) or 2 (packed on the way)";
  if (device.max_allocation > 0 && scratch_bytes(p, accumulator) > device.max_allocation)
    return value("kc", p.kc) + " and " + value("nc", p.nc) + " need " + std::to_string(scratch_bytes(p, accumulator)) +
           " bytes of scratch, the device allocates at most " + std::to_string(device.max_allocation);
  return {};
}

PackParams nearest(const PackParams& wanted, const DeviceInfo& device, DType accumulator) {
  PackParams p = wanted;
  p.nv = std::clamp(p.nv, 1, max_vectors);
  p.mr = std::clamp(p.mr, 1, max_rows);
  while (registers_of(p) > vector_registers(device) && p.mr > 1) --p.mr;
  while (registers_of(p) > vector_registers(device) && p.nv > 1) --p.nv;
  const int columns = p.nv * vector_elements(device, accumulator);
  p.kc = std::clamp(p.kc, min_depth, max_depth);
  p.nc = std::clamp((p.nc + columns / 2) / columns * columns, columns, max_columns / columns * columns);
  while (device.max_allocation > 0 && scratch_bytes(p, accumulator) > device.max_allocation && p.nc > columns) p.nc -= columns;
  if (p.mc < 0) p.mc = 0;
  if (p.mc > 0) p.mc = std::max(p.mc, p.mr);
  p.pack = std::clamp(p.pack, 0, 2);
  return p;
}

void check(const PackParams& p, const DeviceInfo& device, DType accumulator) {
  const std::string broken = broken_constraint(p, device, accumulator);
  if (!broken.empty()) throw ParamsError(broken + "; the nearest set that holds is " + to_string(nearest(p, device, accumulator)));
}

std::int64_t room_for_b(const DeviceInfo& device) {
  const std::int64_t l3 = or_typical(device.l3_cache, std::int64_t{2 << 20} * device.compute_units) / std::max(1, device.compute_units);
  return std::max(second_cache(device) / 2, l3 / 2);
}

PackParams default_pack_params(const Problem& problem, const DeviceInfo& device) {
  const DType accumulator = problem.accumulator;
  const std::int64_t size = size_of(accumulator);
  const std::int64_t l1 = or_typical(device.l1_cache, 32 << 10);
  const std::int64_t l2 = second_cache(device);
  PackParams p;
  // The register block: as many sums as fit beside a row of B and an element of A, with few loads a product. More than
  // latency × throughput (4 × 2) independent sums keep both multiply-add units busy; wide rather than high, so that A, read in place, takes
  // few rows, which may lie a power of two apart and would push each other out of the first cache.
  if (vector_registers(device) == 32) {
    p.mr = 6, p.nv = 4;  // 29 of 32 registers
  } else {
    p.mr = 6, p.nv = 2;  // 15 of 16 registers
  }
  // Short sums: writing the results is most of the work, a core does it best in tall, narrow blocks.
  if (problem.k <= 16 && vector_registers(device) == 32) p.mr = 8, p.nv = 1;
  const int columns = p.nv * vector_elements(device, accumulator);
  // kc: A's row panel (mr × kc) is read again for every panel of B, from the first cache as far as B and D, streaming past, leave it
  // there. Every block of K costs each result a visit, hence long ones; beyond 1024 nothing more was won.
  // A multiple of 64 keeps the packed panels on whole cache lines.
  p.kc = static_cast<int>(std::clamp<std::int64_t>(l1 / (p.mr * size) / 64 * 64, 128, 1024));
  // nc: B's block (kc × nc) is read again for every row panel (a micro-kernel of mr rows needs one vector of B for mr products), from a
  // cache that other programs use, too: half a core's share of it at most, and no more columns than pay. Copies of A are made anew for
  // every block, so that they pay longer.
  const bool copies_a = problem.dtype != accumulator || problem.a.transposed;
  const std::int64_t most_columns = (copies_a ? 2048 : 1024) / columns * columns;
  p.nc = static_cast<int>(std::clamp<std::int64_t>(room_for_b(device) / (p.kc * size) / columns * columns, columns, most_columns));
  // mc: without narrow results all rows; with them the sums of mc × nc results wait in scratch, which should not outgrow the caches.
  p.mc = problem.out != accumulator ? 1024 / p.mr * p.mr : 0;
  // pack: copying pays off where several row panels read the copy and B's rows do not lie in the second cache already; where no cache
  // holds them, it pays off for few row panels, too, which meet each panel of B together then: memory is read once.
  const bool in_place = problem.dtype == accumulator && !problem.b.transposed;
  const std::int64_t b_bytes = problem.k * problem.n * size;
  const bool small = b_bytes <= l2, cached = b_bytes <= std::min(most_cached, 2 * room_for_b(device));
  const bool few_rows = problem.m <= 6 * p.mr, met_together = few_rows && !cached && problem.m > p.mr, one_panel = problem.n <= columns;
  p.pack = in_place && (small || (few_rows && !met_together) || one_panel) ? 0 : 2;
  // Row panels are packed with where they have mr rows or one less: 9 rows are 5 + 4.
  if (in_place && met_together) {
    const std::int64_t panels = (problem.m + p.mr - 1) / p.mr;
    p.mr = static_cast<int>((problem.m + panels - 1) / panels);
  }
  return p;
}

std::string to_string(const PackParams& p) {
  return "mr=" + std::to_string(p.mr) + " nv=" + std::to_string(p.nv) + " kc=" + std::to_string(p.kc) + " mc=" + std::to_string(p.mc) +
         " nc=" + std::to_string(p.nc) + " pack=" + std::to_string(p.pack);
}

}  // namespace sycl_mat
