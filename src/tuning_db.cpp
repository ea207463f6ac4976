// Which record decides for a problem: the part of tuning_db.hpp that answers, from memory.
#include "tuning_db.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "backends/onemkl.hpp"
#include "kernel_version.hpp"
#include "warning.hpp"

namespace sycl_mat {
namespace {

namespace fs = std::filesystem;
using Match = std::shared_ptr<const TunedMatch>;

struct Question {
  std::string fingerprint;
  std::string kernel;
  DType dtype;
  std::string_view layout;  // one of four literals
  Shape shape;
  bool operator==(const Question&) const = default;
};

// A question as it is asked: no strings are copied to look an answer up.
struct QuestionView {
  std::string_view fingerprint, kernel;
  DType dtype;
  std::string_view layout;
  Shape shape;
};

struct QuestionHash {
  using is_transparent = void;
  static std::size_t mix(std::size_t h, std::size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }
  std::size_t operator()(const QuestionView& q) const {
    std::size_t h = std::hash<std::string_view>{}(q.fingerprint);
    if (!q.kernel.empty()) h = mix(h, std::hash<std::string_view>{}(q.kernel));
    h = mix(h, static_cast<std::size_t>(q.dtype) * 65536u + static_cast<unsigned char>(q.layout[0]) * 256u +
                   static_cast<unsigned char>(q.layout[1]));
    for (index_t size : {q.shape.m, q.shape.n, q.shape.k, q.shape.batch}) h = mix(h, static_cast<std::size_t>(size));
    return h;
  }
  std::size_t operator()(const Question& q) const { return (*this)(QuestionView{q.fingerprint, q.kernel, q.dtype, q.layout, q.shape}); }
};
struct QuestionEqual {
  using is_transparent = void;
  bool operator()(const Question& x, const Question& y) const { return x == y; }
  bool operator()(const QuestionView& x, const Question& y) const {
    return x.shape == y.shape && x.dtype == y.dtype && x.layout == y.layout && x.kernel == y.kernel && x.fingerprint == y.fingerprint;
  }
  bool operator()(const Question& x, const QuestionView& y) const { return (*this)(y, x); }
};

/// Time and size of a file: when they change it is read again. Zero for a file that is not there.
struct Stamp {
  std::int64_t time = 0;
  std::uintmax_t size = 0;
  bool operator==(const Stamp&) const = default;
};
Stamp stamp_of(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (error) return {};
  const auto size = fs::file_size(file, error);
  return {time.time_since_epoch().count(), error ? 0 : size};
}

// A program may ask about millions of different shapes: the answers are forgotten rather than let memory grow.
constexpr std::size_t most_answers = 16384;
constexpr std::int64_t look_every_ns = 500'000'000;

/// Everything in memory. Leaked on purpose: threads may still ask while the process ends.
class Database {
 public:
  static Database& instance() {
    static Database* const database = new Database;
    return *database;
  }

  std::uint64_t generation() {
    refresh();
    return generation_.load(std::memory_order_acquire);
  }

  Match find(const QuestionView& q, const DeviceInfo& device) {
    refresh();
    {
      const std::shared_lock lock(mutex_);
      if (const auto at = answers_.find(q); at != answers_.end()) return at->second;
    }
    const std::unique_lock lock(mutex_);
    if (answers_.size() >= most_answers) answers_.clear();
    Match answer = decide(q, device);
    answers_.emplace(Question{std::string(q.fingerprint), std::string(q.kernel), q.dtype, q.layout, q.shape}, answer);
    return answer;
  }

  Match find_shipped(const QuestionView& q, const DeviceInfo& device) {
    refresh();
    const std::shared_lock lock(mutex_);
    return decide(q, device, false);
  }

 private:
  void refresh() {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::int64_t next = next_look_.load(std::memory_order_relaxed);
    if (now < next) return;
    std::vector<std::string> warnings;
    {
      const std::unique_lock lock(mutex_);
      if (next_look_.load(std::memory_order_relaxed) != next) return;  // another thread looked meanwhile
      look(warnings);
      next_look_.store(now + look_every_ns, std::memory_order_release);
    }
    // Without the lock: whoever listens may ask this database in turn.
    for (const std::string& warning : warnings) warn(warning);
  }

  void look(std::vector<std::string>& warnings) {
    const fs::path user = user_tuning_file();
    const Stamp stamp = stamp_of(user);
    if (loaded_ && user == user_file_ && stamp == user_stamp_) return;
    user_file_ = user;
    user_stamp_ = stamp;
    user_ = load(user, warnings);
    shipped_.clear();
    for (const fs::path& file : shipped_tuning_files())
      for (TunedRecord& r : load(file, warnings)) shipped_.push_back(std::move(r));
    loaded_ = true;
    answers_.clear();
    generation_.fetch_add(1, std::memory_order_release);
  }

  std::vector<TunedRecord> load(const fs::path& file, std::vector<std::string>& warnings) {
    TuningFile content = read_tuning_file(file);
    for (const std::string& warning : content.warnings)
      if (warned_.insert(warning).second) warnings.push_back(warning);
    return std::move(content.records);
  }

  Match decide(const QuestionView& q, const DeviceInfo& device, bool with_user = true) const {
    const auto same_device = [&](const TunedRecord& r) { return r.fingerprint == q.fingerprint; };
    // Constants of a sister model are a better guess than formulas, as long as it is of the same architecture.
    const auto same_family = [&](const TunedRecord& r) { return r.fingerprint != q.fingerprint && r.architecture == device.architecture; };
    // What was measured with the present kernel comes first, even if others measured it: another version may want other constants.
    for (const bool present : {true, false}) {
      if (with_user)
        if (Match m = best(user_, present, q, device, RecordSource::user, same_device)) return m;
      if (Match m = best(shipped_, present, q, device, RecordSource::shipped, same_device)) return m;
    }
    for (const bool present : {true, false})
      if (Match m = best(shipped_, present, q, device, RecordSource::shipped_architecture, same_family)) return m;
    return nullptr;
  }

  static bool of_present_kernel(const TunedRecord& r) { return r.kernel_source == kernel_version(r.kernel); }

  template <class Wanted>
  static Match best(const std::vector<TunedRecord>& records, bool present, const QuestionView& q, const DeviceInfo& device,
                    RecordSource source, Wanted wanted) {
    const TunedRecord* chosen = nullptr;
    double chosen_distance = 0;
    const ShapeClass cell = shape_class(q.shape);
    bool chosen_exact = false;
    for (const TunedRecord& r : records) {
      if (r.dtype != q.dtype || r.layout != q.layout || !wanted(r) || of_present_kernel(r) != present) continue;
      if (q.kernel.empty() ? r.kernel == onemkl::name || !r.fastest.value_or(true) : r.kernel != q.kernel) continue;
      const bool exact = r.shape_class == cell;
      const double distance = shape_distance(r.shape, q.shape);
      if (!(distance <= std::min(r.reach, sharing_radius))) continue;
      // The own class first; then the nearest shape; among the kernels measured for one shape the fastest, as far as that is known.
      const auto worse = [&] {
        if (exact != chosen_exact) return !exact;
        if (r.shape != chosen->shape && distance != chosen_distance) return distance > chosen_distance;
        if (r.fastest.has_value() != chosen->fastest.has_value()) return !r.fastest.has_value();
        return r.gflops <= chosen->gflops;
      };
      if (chosen != nullptr && worse()) continue;
      chosen = &r;
      chosen_distance = distance;
      chosen_exact = exact;
    }
    if (chosen == nullptr) return nullptr;
    auto match = std::make_shared<TunedMatch>();
    static_cast<TunedRecord&>(*match) = *chosen;
    match->source = source;
    match->exact = chosen_exact;
    match->distance = chosen_distance;
    match->other_driver = chosen->driver_version != device.driver_version;
    match->other_kernel = !present;
    match->reason = reason(*match);
    return match;
  }

  static std::string reason(const TunedMatch& m) {
    std::string text = m.source == RecordSource::user ? "your tuning file"
                       : m.source == RecordSource::shipped
                           ? "constants shipped for this device"
                           : "constants shipped for " + m.architecture + " (measured on " + m.device_name + ")";
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, ", %.4g GFLOP/s", m.gflops);
    std::string shape = std::to_string(m.shape.m) + "x" + std::to_string(m.shape.n) + "x" + std::to_string(m.shape.k);
    if (m.shape.batch > 1) shape = std::to_string(m.shape.batch) + " of " + shape;
    text += m.exact ? ": this class of problems, measured at " : ": the nearest measured problem, ";
    text += shape + " " + m.layout + " on " + m.measured.substr(0, 10) + numbers;
    if (m.default_gflops > 0) {
      std::snprintf(numbers, sizeof numbers, " (defaults %.4g)", m.default_gflops);
      text += numbers;
    }
    if (m.fastest.value_or(false) && !m.instead_of.empty()) text += ", faster than " + m.instead_of;
    if (m.other_kernel)
      text += m.kernel_source.empty() ? ", perhaps with another version of the kernel" : ", with another version of the kernel";
    if (m.other_driver) text += ", with driver " + m.driver_version;
    if (m.other_kernel || m.other_driver) text += ": tune again";
    return text;
  }

  std::shared_mutex mutex_;
  bool loaded_ = false;
  fs::path user_file_;
  Stamp user_stamp_;
  std::vector<TunedRecord> user_, shipped_;
  std::set<std::string> warned_;
  std::unordered_map<Question, Match, QuestionHash, QuestionEqual> answers_;
  std::atomic<std::int64_t> next_look_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace

std::shared_ptr<const TunedMatch> lookup(const Problem& problem, const DeviceInfo& device, std::string_view kernel) {
  return Database::instance().find({device.fingerprint, kernel, problem.dtype, layout_of(problem), shape_of(problem)}, device);
}

std::shared_ptr<const TunedMatch> lookup_shipped(const Problem& problem, const DeviceInfo& device, std::string_view kernel) {
  return Database::instance().find_shipped({device.fingerprint, kernel, problem.dtype, layout_of(problem), shape_of(problem)}, device);
}

std::uint64_t tuning_generation() { return Database::instance().generation(); }

}  // namespace sycl_mat
