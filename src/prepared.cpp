#include "prepared.hpp"

#include "plan.hpp"
#include "tuning_db.hpp"

namespace sycl_mat {
namespace {

/// Vector loads want 64 bytes; what matters to a plan is how far an address is from that, and whether rows keep it.
index_t alignment_of(const Operand& o, index_t size) {
  const auto bits = reinterpret_cast<std::uintptr_t>(o.data) | static_cast<std::uintptr_t>(o.ld * size) |
                    static_cast<std::uintptr_t>(o.inner * size) | static_cast<std::uintptr_t>(o.outer * size);
  return static_cast<index_t>(bits & 63);
}

/// A string of bytes, so that any hash map can hold it.
std::string key_of(const Problem& p, const GemmOptions& options) {
  const index_t size = size_of(p.dtype);
  const index_t words[] = {p.m,
                           p.n,
                           p.k,
                           p.batch_outer,
                           p.batch_inner,
                           p.a.ld,
                           p.b.ld,
                           p.c.ld,
                           p.d.ld,
                           p.a.inner,
                           p.b.inner,
                           p.d.inner,
                           p.a.outer,
                           p.b.outer,
                           p.d.outer,
                           alignment_of(p.a, size) | alignment_of(p.b, size) << 8 | alignment_of(p.d, size_of(p.out)) << 16,
                           index_t(p.dtype) | index_t(p.precision) << 8 | index_t(p.a.transposed) << 16 | index_t(p.b.transposed) << 17 |
                               index_t(p.epilogue.beta != 0) << 18 | index_t(p.epilogue.bias_axis) << 20 |
                               index_t(p.epilogue.activation) << 24 | index_t(p.epilogue.alpha != 1) << 32};
  std::string key(reinterpret_cast<const char*>(words), sizeof words);
  if (!options.kernel.empty()) key.append(options.kernel);
  if (options.backend != "sycl") {  // whether another backend can do it hangs on more: scalars' values, every stride, where C is
    const index_t strides[] = {p.c.inner, p.c.outer, p.c.data == p.d.data};
    const double scalars[] = {p.epilogue.alpha, p.epilogue.beta};
    key.append("|").append(options.backend).append(reinterpret_cast<const char*>(strides), sizeof strides);
    key.append(reinterpret_cast<const char*>(scalars), sizeof scalars);
  }
  if (options.params) {
    key += '|';
    if (const auto* tiled = std::get_if<TiledChoice>(&*options.params)) key += to_string(tiled->params) + " " + to_string(tiled->options);
    if (const auto* pack = std::get_if<PackParams>(&*options.params)) key += "pack " + to_string(*pack);
  }
  return key;
}

constexpr std::size_t most_remembered = 4096;  // a program of ever new shapes must not grow without end

}  // namespace

std::shared_ptr<const Prepared> PreparedCache::get(Programs& programs, const Problem& p, const DeviceInfo& device,
                                                   const GemmOptions& options) {
  // Another process may have tuned meanwhile.
  if (const std::uint64_t generation = tuning_generation();
      generation_.load() != generation && generation_.exchange(generation) != generation)
    clear();
  const std::string key = key_of(p, options);
  {
    std::shared_lock guard(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  auto fresh = std::make_shared<Prepared>();
  fresh->plan = make_plan(p, device, options);
  if (fresh->plan.kernel) fresh->program = &programs.get(*fresh->plan.kernel, fresh->plan.constants);
  std::unique_lock guard(mutex_);
  if (known_.size() >= most_remembered) known_.clear();
  return known_.emplace(key, std::move(fresh)).first->second;
}

void PreparedCache::clear() {
  std::unique_lock guard(mutex_);
  known_.clear();
}

}  // namespace sycl_mat
