#include "params_tile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sycl_mat/device.hpp"
#include "sycl_mat/errors.hpp"

namespace sycl_mat {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// Local memory holds accumulators: 16-bit elements are widened on their way in.
int accumulator_size(DType element) { return element == DType::float64 ? 8 : 4; }

struct Case {
  const TileParams& p;
  const TileOptions& o;
  const DeviceInfo& device;
  DType element;
};

struct Constraint {
  bool (*holds)(const Case&);
  std::string (*words)(const Case&);
};

std::string text(std::int64_t x) { return std::to_string(x); }
bool in_range(int x, int low, int high) { return low <= x && x <= high; }
bool is_switch(int x) { return x == 0 || x == 1; }

constexpr int most_sums = 256;     // of a work-item: no device has registers for more, and compiling takes minutes
constexpr int deepest_tile = 128;  // the loop over a tile is unrolled
constexpr int most_splits = 256;   // each leaves its sums in scratch memory
constexpr int most_sharers = 1 << 14;

/// The runtime's library for PTX lacks __spirv_GroupBroadcast (2026.2).
bool has_sub_group_broadcast(const DeviceInfo& device) { return device.backend != "cuda"; }

const Constraint constraints[] = {
    {[](const Case& c) { return std::min({c.p.tile_m, c.p.tile_n, c.p.tile_k, c.p.batch_m, c.p.batch_n}) >= 1; },
     [](const Case& c) { return "a constant is below 1 (" + to_string(c.p) + ")"; }},
    {[](const Case& c) { return in_range(c.p.chunk, 1, 16) && (c.p.chunk & (c.p.chunk - 1)) == 0; },
     [](const Case& c) { return "chunk = " + text(c.p.chunk) + " is none of 1, 2, 4, 8, 16: devices load no other vectors"; }},
    {[](const Case& c) { return c.p.tile_k <= deepest_tile; },
     [](const Case& c) {
       return "tile_k = " + text(c.p.tile_k) + " is above " + text(deepest_tile) + ": the loop over a tile is unrolled";
     }},
    {[](const Case& c) { return std::int64_t(c.p.batch_m) * c.p.batch_n <= most_sums; },
     [](const Case& c) {
       return "batch_m·batch_n = " + text(std::int64_t(c.p.batch_m) * c.p.batch_n) + " is above " + text(most_sums) +
              ": a work-item keeps its sums in registers";
     }},
    {[](const Case& c) { return c.p.tile_k % c.p.chunk == 0; },
     [](const Case& c) {
       return "tile_k = " + text(c.p.tile_k) + " is no multiple of chunk = " + text(c.p.chunk) +
              ": a row of A's tile is loaded in whole chunks";
     }},
    {[](const Case& c) { return std::int64_t(c.p.tile_n) * c.p.batch_n % c.p.chunk == 0; },
     [](const Case& c) {
       return "tile_n·batch_n = " + text(std::int64_t(c.p.tile_n) * c.p.batch_n) + " is no multiple of chunk = " + text(c.p.chunk) +
              ": a row of B's tile is loaded in whole chunks";
     }},
    {[](const Case& c) { return std::int64_t(c.p.tile_m) * c.p.tile_n <= c.device.max_work_group_size; },
     [](const Case& c) {
       return "tile_m·tile_n = " + text(std::int64_t(c.p.tile_m) * c.p.tile_n) +
              " work-items are more than the device's work-groups hold (" + text(c.device.max_work_group_size) + ")";
     }},
    {[](const Case& c) { return in_range(c.o.pad, 0, 64); }, [](const Case& c) { return "pad = " + text(c.o.pad) + " is outside 0 … 64"; }},
    {[](const Case& c) {
       return is_switch(c.o.a_transposed) && is_switch(c.o.strided) && is_switch(c.o.order) && in_range(c.o.local, 0, 2) &&
              in_range(c.o.ahead, 0, 2);
     },
     [](const Case& c) {
       return "an option is outside its range: a_transposed, strided and order are 0 or 1, local and ahead 0 … 2 (" + to_string(c.o) + ")";
     }},
    {[](const Case& c) { return c.o.ahead != 2 || c.p.tile_k % 2 == 0; },
     [](const Case& c) { return "tile_k = " + text(c.p.tile_k) + " is odd: ahead = 2 takes turns between two sets of registers"; }},
    {[](const Case& c) { return c.o.local != 2 || (c.o.sub_group > 0 && c.p.tile_n % c.o.sub_group == 0); },
     [](const Case& c) {
       return "local = 2 needs a sub_group that divides tile_n = " + text(c.p.tile_n) + ": all of its lanes must want the same rows of A";
     }},
    {[](const Case& c) { return c.o.local != 2 || has_sub_group_broadcast(c.device); },
     [](const Case&) {
       return std::string("local = 2 reads the registers of other lanes, for which the runtime has no function on CUDA devices");
     }},
    {[](const Case& c) { return in_range(c.o.split_k, 1, most_splits); },
     [](const Case& c) {
       return "split_k = " + text(c.o.split_k) + " is outside 1 … " + text(most_splits) + ": each part's sums go through memory";
     }},
    {[](const Case& c) { return in_range(c.o.share, 0, most_sharers) && (c.o.share == 0 || c.o.split_k == 1); },
     [](const Case& c) {
       return "share = " + text(c.o.share) + " is outside 0 … " + text(most_sharers) + ", or split_k = " + text(c.o.split_k) +
              " cuts the blocks already";
     }},
    {[](const Case& c) { return in_range(c.o.swizzle, 0, 64); },
     [](const Case& c) { return "swizzle = " + text(c.o.swizzle) + " is outside 0 … 64"; }},
    {[](const Case& c) {
       const auto& sizes = c.device.sub_group_sizes;
       return c.o.sub_group == 0 || std::find(sizes.begin(), sizes.end(), c.o.sub_group) != sizes.end();
     },
     [](const Case& c) { return "sub_group = " + text(c.o.sub_group) + " is none of the device's sub-group sizes"; }},
    {[](const Case& c) { return c.o.sub_group == 0 || c.p.tile_m * c.p.tile_n % c.o.sub_group == 0; },
     [](const Case& c) {
       return "tile_m·tile_n = " + text(std::int64_t(c.p.tile_m) * c.p.tile_n) + " is no multiple of sub_group = " + text(c.o.sub_group) +
              ": a sub-group would be partly empty";
     }},
    {[](const Case& c) { return local_memory_bytes(c.p, c.o, c.element) <= c.device.local_memory; },
     [](const Case& c) {
       return "two pages of both tiles take " + text(local_memory_bytes(c.p, c.o, c.element)) + " bytes of local memory, the device has " +
              text(c.device.local_memory);
     }},
};

const Constraint* first_broken(const Case& c) {
  for (const Constraint& constraint : constraints)
    if (!constraint.holds(c)) return &constraint;
  return nullptr;
}

/// Options outside their range, or that the device has not, back to what always works.
TileOptions sane(TileOptions o, const DeviceInfo& device) {
  const auto flag = [](int& x) { x = std::clamp(x, 0, 1); };
  flag(o.a_transposed), flag(o.strided), flag(o.order);
  o.local = std::clamp(o.local, 0, 2);
  o.ahead = std::clamp(o.ahead, 0, 2);
  o.pad = std::clamp(o.pad, 0, 64);
  o.split_k = std::clamp(o.split_k, 1, most_splits);
  o.swizzle = std::clamp(o.swizzle, 0, 64);
  o.share = o.split_k > 1 ? 0 : std::clamp(o.share, 0, most_sharers);
  const auto& sizes = device.sub_group_sizes;
  if (o.sub_group != 0 && std::find(sizes.begin(), sizes.end(), o.sub_group) == sizes.end()) o.sub_group = 0;
  if (o.local == 2 && (o.sub_group == 0 || !has_sub_group_broadcast(device))) o.local = 1;
  return o;
}

/// How far apart two values of a constant are: doublings, so that 16 → 8 counts as much as 4 → 2, and a little for each constant touched.
double distance(int from, int to) { return from == to ? 0 : 0.1 + std::abs(std::log2(double(std::max(from, 1)) / to)); }

}  // namespace

std::string to_string(const TileParams& p) {
  std::string out = text(p.tile_m);
  for (const int x : {p.tile_n, p.tile_k, p.batch_m, p.batch_n, p.chunk}) out += "," + text(x);
  return out;
}

std::string to_string(const TileOptions& o) {
  const std::pair<const char*, int> fields[] = {{"a_transposed", o.a_transposed},
                                                {"pad", o.pad},
                                                {"strided", o.strided},
                                                {"order", o.order},
                                                {"ahead", o.ahead},
                                                {"local", o.local},
                                                {"sub_group", o.sub_group},
                                                {"split_k", o.split_k},
                                                {"swizzle", o.swizzle},
                                                {"share", o.share}};
  std::string out;
  for (const auto& [name, value] : fields) out.append(out.empty() ? "" : " ").append(name).append("=").append(text(value));
  return out;
}

std::int64_t local_memory_bytes(const TileParams& p, const TileOptions& o, DType element) {
  constexpr std::int64_t flag = 64;  // of split_k, with its alignment
  if (!o.local) return flag;
  const auto round_up = [](std::int64_t x) { return (x + 7) / 8 * 8; };  // as Operand::SIZE in kernels/tiled.cpp
  const std::int64_t block_m = std::int64_t(p.tile_m) * p.batch_m, block_n = std::int64_t(p.tile_n) * p.batch_n;
  const std::int64_t a = o.a_transposed ? round_up(p.tile_k * (block_m + o.pad)) : round_up(block_m * (p.tile_k + o.pad));
  const std::int64_t b = round_up(p.tile_k * (block_n + o.pad));
  return 2 * (a + b) * accumulator_size(element) + flag;
}

TileCosts costs(const TileParams& p, const TileOptions& o, DType element) {
  TileCosts c;
  c.work_items = p.tile_m * p.tile_n;
  c.block_m = p.tile_m * p.batch_m;
  c.block_n = p.tile_n * p.batch_n;
  c.chunks_a = c.block_m * (p.tile_k / p.chunk);
  c.chunks_b = p.tile_k * (c.block_n / p.chunk);
  c.chunks_each_a = ceil_div(c.chunks_a, c.work_items);
  c.chunks_each_b = ceil_div(c.chunks_b, c.work_items);
  c.idle_a = std::max(0, c.work_items - c.chunks_a);
  c.idle_b = std::max(0, c.work_items - c.chunks_b);
  c.local_memory = local_memory_bytes(p, o, element);
  c.registers = registers_estimate(p, o, element);
  return c;
}

int registers_estimate(const TileParams& p, const TileOptions& o, DType element) {
  const int words = accumulator_size(element) / 4;
  const int items = p.tile_m * p.tile_n, chunk_words = std::max(1, int(p.chunk * size_of(element)) / 4);
  const int sums = p.batch_m * p.batch_n * words;
  const int of_a = o.local == 2 && o.sub_group > 0 ? ceil_div(p.batch_m, o.sub_group) : p.batch_m;
  const int fragments = (of_a + p.batch_n) * words * (o.ahead ? 2 : 1);
  const int chunks =
      o.local ? (ceil_div(p.tile_m * p.batch_m * p.tile_k / p.chunk, items) + ceil_div(p.tile_k * p.tile_n * p.batch_n / p.chunk, items)) *
                    chunk_words
              : (p.batch_m + p.batch_n) * std::max(chunk_words, 2);  // values of a few k, or addresses
  constexpr int addresses = 16;                                      // pointers, leading dimensions, counters
  return sums + fragments + chunks + addresses;
}

std::string broken_constraint(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element) {
  const Case c{p, o, device, element};
  const Constraint* broken = first_broken(c);
  return broken ? broken->words(c) : "";
}

std::optional<TiledChoice> nearest(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element) {
  const TileOptions options = sane(o, device);
  const auto candidates = [](int present, int most) {
    std::vector<int> values;
    if (in_range(present, 1, most)) values.push_back(present);
    for (int v = 1; v <= most; v *= 2)
      if (v != present) values.push_back(v);
    return values;
  };
  const std::array<std::vector<int>, 6> values{candidates(p.tile_m, 64),  candidates(p.tile_n, 64),  candidates(p.tile_k, deepest_tile),
                                               candidates(p.batch_m, 32), candidates(p.batch_n, 32), candidates(p.chunk, 16)};
  std::optional<TiledChoice> best;
  double best_distance = 1e9;
  // Depth first, dropping every branch that is already farther than the best set found.
  TileParams t;
  const std::array<int*, 6> field{&t.tile_m, &t.tile_n, &t.tile_k, &t.batch_m, &t.batch_n, &t.chunk};
  const std::array<int, 6> wanted{p.tile_m, p.tile_n, p.tile_k, p.batch_m, p.batch_n, p.chunk};
  const auto search = [&](auto&& self, std::size_t i, double so_far) -> void {
    if (so_far >= best_distance) return;
    if (i == field.size()) {
      for (const int sub_group : {options.sub_group, 0}) {
        TileOptions with = options;
        with.sub_group = sub_group;
        if (sub_group == 0) with.local = std::min(with.local, 1);
        const double d = so_far + (sub_group == options.sub_group ? 0 : 1);
        if (d < best_distance && !first_broken({t, with, device, element})) best = TiledChoice{t, with}, best_distance = d;
      }
      return;
    }
    for (const int value : values[i]) {
      *field[i] = value;
      self(self, i + 1, so_far + distance(wanted[i], value));
    }
  };
  search(search, 0, 0);
  return best;
}

void check(const TileParams& p, const TileOptions& o, const DeviceInfo& device, DType element) {
  const std::string broken = broken_constraint(p, o, device, element);
  if (broken.empty()) return;
  const auto other = nearest(p, o, device, element);
  std::string hint = "no set fits this device";
  if (other) {
    hint = "the nearest set that holds is (" + to_string(other->params) + ")";
    if (other->options != o) hint += " with " + to_string(other->options);
  }
  throw ParamsError("tile constants (" + to_string(p) + "): " + broken + "; " + hint);
}

}  // namespace sycl_mat
