#include "prepared.hpp"

#include "plan.hpp"
#include "rearrange.hpp"
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
  if (options.max_device_memory > 0) key.append("<").append(std::to_string(options.max_device_memory));  // or there is no room for copies
  if (options.params) {
    key += '|';
    if (const auto* tiled = std::get_if<TiledChoice>(&*options.params)) key += to_string(tiled->params) + " " + to_string(tiled->options);
    if (const auto* pack = std::get_if<PackParams>(&*options.params)) key += "pack " + to_string(*pack);
  }
  return key;
}

constexpr std::size_t most_remembered = 4096;  // a program of ever new shapes must not grow without end
constexpr std::chrono::seconds short_of_memory{
    3};  // so long nobody asks again for memory that was not to be had: asking waits for the queue

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
    if (const auto found = known_.find(key); found != known_.end()) {
      const auto& known = found->second;
      if (!known->instead_of || std::chrono::steady_clock::now() < known->try_again) return known;
      return known->instead_of;
    }
  }
  auto fresh = std::make_shared<Prepared>();
  fresh->plan = make_plan(p, device, options);
  if (options.max_device_memory > 0 && bytes_of_operands(p) + bytes_of_copies(fresh->plan, p) > options.max_device_memory)
    fresh->plan = in_place(std::move(fresh->plan), p, "max_device_memory leaves no room for copies");
  if (fresh->plan.kernel) {
    fresh->program = &programs.get(*fresh->plan.kernel, fresh->plan.constants);
    fresh->copies = programs_of_copies(programs, fresh->plan, p);
  }
  std::unique_lock guard(mutex_);
  if (known_.size() >= most_remembered) known_.clear();
  return known_.emplace(key, std::move(fresh)).first->second;
}

std::shared_ptr<const Prepared> PreparedCache::without_copies(Programs& programs, const Problem& p, const GemmOptions& options,
                                                              std::shared_ptr<const Prepared> with_copies) {
  auto plain = std::make_shared<Prepared>();
  plain->plan = in_place(with_copies->plan, p, "no memory for copies");
  plain->program = &programs.get(*plain->plan.kernel, plain->plan.constants);
  plain->instead_of = std::move(with_copies);
  plain->try_again = std::chrono::steady_clock::now() + short_of_memory;
  std::unique_lock guard(mutex_);
  // Unless everything was forgotten meanwhile: what was planned before then must not come back.
  if (const auto found = known_.find(key_of(p, options)); found != known_.end()) found->second = plain;
  return plain;
}

void PreparedCache::clear() {
  std::unique_lock guard(mutex_);
  known_.clear();
}

}  // namespace sycl_mat
