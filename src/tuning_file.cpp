// Tuning files: JSON in and out, locks, replacement in one step. The part of tuning_db.hpp that touches the disk.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "backends/onemkl.hpp"
#include "params_json.hpp"
#include "program.hpp"
#include "sycl_mat/errors.hpp"
#include "tuning_db.hpp"

#ifndef _WIN32
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace sycl_mat {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view format_name = "sycl_mat tuning";
constexpr int format_version = 1;

// A tuning file of all devices a user will ever see stays far below; anything larger is not one.
constexpr std::uintmax_t largest_file = 64u << 20;

using Key = std::tuple<std::string, std::string, DType, std::string, ShapeClass, Shape>;
Key key_of(const TunedRecord& r) { return {r.fingerprint, r.kernel, r.dtype, r.layout, r.shape_class, r.reach > 0 ? Shape{} : r.shape}; }

std::optional<DType> dtype_named(std::string_view name) {
  for (DType t : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8, DType::int32})
    if (name_of(t) == name) return t;
  return std::nullopt;
}

json to_value(const TunedRecord& r) {
  json v;
  v["fingerprint"] = r.fingerprint;
  v["kernel"] = r.kernel;
  v["dtype"] = std::string(name_of(r.dtype));
  v["layout"] = r.layout;
  v["class"] = to_string(r.shape_class);
  v["shape"] = {r.shape.m, r.shape.n, r.shape.k, r.shape.batch};
  v["params"] = params_to_json(r.params);
  v["reach"] = r.reach;
  v["gflops"] = r.gflops;
  v["default_gflops"] = r.default_gflops;
  v["spread"] = r.spread;
  v["measured"] = r.measured;
  v["architecture"] = r.architecture;
  v["device"] = r.device_name;
  v["driver"] = r.driver_version;
  v["library"] = r.library_version;
  // Later additions: files without them are as good, and earlier versions of the library skip them.
  if (!r.kernel_source.empty()) v["source"] = r.kernel_source;
  if (r.fastest) v["fastest"] = *r.fastest;
  if (!r.instead_of.empty()) v["instead_of"] = r.instead_of;
  return v;
}

/// Empty: `record` is filled. Otherwise what is wrong.
std::string from_value(const json& v, TunedRecord& record) {
  if (!v.is_object()) return "is not an object";
  const auto text = [&](const char* name, std::string& into) {
    if (!v.contains(name) || !v[name].is_string()) return false;
    into = v[name].get<std::string>();
    return true;
  };
  const auto number = [&](const char* name, double& into) {
    if (!v.contains(name) || !v[name].is_number() || !(v[name].get<double>() >= 0)) return false;
    into = v[name].get<double>();
    return true;
  };
  std::string dtype, cell;
  const std::pair<const char*, std::string*> texts[] = {{"fingerprint", &record.fingerprint},
                                                        {"kernel", &record.kernel},
                                                        {"dtype", &dtype},
                                                        {"layout", &record.layout},
                                                        {"class", &cell},
                                                        {"measured", &record.measured},
                                                        {"architecture", &record.architecture},
                                                        {"device", &record.device_name},
                                                        {"driver", &record.driver_version},
                                                        {"library", &record.library_version}};
  for (const auto& [name, into] : texts)
    if (!text(name, *into)) return std::string("has no text \"") + name + '"';
  const std::pair<const char*, double*> numbers[] = {
      {"gflops", &record.gflops}, {"default_gflops", &record.default_gflops}, {"spread", &record.spread}};
  for (const auto& [name, into] : numbers)
    if (!number(name, *into)) return std::string("has no number \"") + name + "\" of 0 or more";
  const auto type = dtype_named(dtype);
  if (!type) return "has the unknown dtype \"" + dtype + '"';
  record.dtype = *type;
  if (record.layout != "nn" && record.layout != "nt" && record.layout != "tn" && record.layout != "tt")
    return "has the unknown layout \"" + record.layout + '"';
  if (v.contains("reach") && !number("reach", record.reach)) return "has a senseless \"reach\"";
  for (const auto& [name, into] : {std::pair{"source", &record.kernel_source}, std::pair{"instead_of", &record.instead_of}})
    if (v.contains(name) && !text(name, *into)) return std::string("has a senseless \"") + name + '"';
  if (v.contains("fastest") && !v["fastest"].is_boolean()) return "has a senseless \"fastest\"";
  if (v.contains("fastest")) record.fastest = v["fastest"].get<bool>();
  const auto parsed = parse_shape_class(cell);
  if (!parsed) return "has the unknown class \"" + cell + '"';
  if (!v.contains("shape") || !v["shape"].is_array() || v["shape"].size() != 4) return "has no \"shape\" of four sizes";
  index_t sizes[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const json& size = v["shape"][i];
    if (!size.is_number_integer() || size < 0 || size > (std::int64_t{1} << 40)) return "has an impossible size in \"shape\"";
    sizes[i] = size.get<index_t>();
  }
  record.shape = {sizes[0], sizes[1], sizes[2], sizes[3]};
  // The grid may be another one in a later version: what was measured is the shape, its class follows.
  record.shape_class = shape_class(record.shape);
  const auto params = v.contains("params") ? params_from_json(v["params"]) : std::nullopt;
  if (!params) return "has no usable \"params\"";
  record.params = *params;
  return {};
}

#ifndef _WIN32
/// Holds an exclusive lock on "<file>.lock" for as long as it lives. The lock file stays: removing it would let two processes hold
/// locks on two different files of that name.
class FileLock {
 public:
  explicit FileLock(const fs::path& file) {
    const fs::path lock = file.string() + ".lock";
    descriptor_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor_ < 0) throw Error("cannot create the lock file " + lock.string());
    while (::flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      ::close(descriptor_);
      throw Error("cannot lock " + lock.string());
    }
  }
  ~FileLock() { ::close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};
#else
// Untested platform: without a lock two tuners that finish in the same instant may lose one's records; the file stays whole.
class FileLock {
 public:
  explicit FileLock(const fs::path&) {}
};
#endif

void create_folder_of(const fs::path& file) {
  std::error_code error;
  if (!file.parent_path().empty()) fs::create_directories(file.parent_path(), error);
  if (error) throw Error("cannot create the folder " + file.parent_path().string() + ": " + error.message());
}

/// Reads what is there before a change; moves a corrupt file aside rather than overwrite somebody's measurements.
TuningFile read_for_change(const fs::path& file) {
  TuningFile present = read_tuning_file(file);
  if (present.newer_format)
    throw Error(file.string() + " was written by a later version of sycl_mat; set SYCL_MAT_TUNING_FILE to another file, or upgrade");
  if (present.corrupt) {
    const fs::path aside = file.string() + ".corrupt";
    std::error_code ignored;
    fs::rename(file, aside, ignored);
  }
  return present;
}

}  // namespace

TuningFile read_tuning_file(const fs::path& file) {
  TuningFile result;
  const auto corrupt = [&](const std::string& why) {
    result.corrupt = true;
    result.warnings.push_back("the tuning file " + file.string() + " is ignored: " + why + ". Defaults are used in its place.");
    return result;
  };
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return result;
  if (!fs::is_regular_file(status)) return corrupt("it is not a regular file that can be read");
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes > largest_file) return corrupt("its size is implausible");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return corrupt("it cannot be opened");
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(stream), {});
  } catch (const std::ios_base::failure& e) {  // libstdc++ throws where the disk cannot be read
    return corrupt(std::string("it cannot be read (") + e.what() + ")");
  }
  // Invalid UTF-8, unbalanced brackets and the like come back as "discarded" without an exception.
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return corrupt("it is not valid JSON");
  if (!root.is_object() || root.value("format", json()) != std::string(format_name)) return corrupt("it is no tuning file of sycl_mat");
  if (!root.contains("version") || !root["version"].is_number_integer()) return corrupt("it has no version");
  if (root["version"] != format_version) {
    result.newer_format = true;
    result.warnings.push_back("the tuning file " + file.string() + " is ignored: its format is version " + root["version"].dump() +
                              ", this library reads version " + std::to_string(format_version) + ".");
    return result;
  }
  if (!root.contains("records") || !root["records"].is_array()) return corrupt("it has no list of records");
  std::size_t number = 0, bad = 0;
  std::string first;
  for (const json& value : root["records"]) {
    ++number;
    TunedRecord record;
    const std::string wrong = from_value(value, record);
    if (wrong.empty())
      result.records.push_back(std::move(record));
    else if (++bad == 1)
      first = "record " + std::to_string(number) + ' ' + wrong;
  }
  // One line a file, however many there are: most are of devices that are not here.
  if (bad > 0)
    result.warnings.push_back(std::to_string(bad) + " of the " + std::to_string(number) + " records of the tuning file " + file.string() +
                              " are ignored: " + first + (bad > 1 ? ", and others." : "."));
  return result;
}

std::string to_json(std::span<const TunedRecord> records) {
  std::vector<const TunedRecord*> sorted;
  for (const TunedRecord& r : records) sorted.push_back(&r);
  std::sort(sorted.begin(), sorted.end(), [](const auto* x, const auto* y) { return key_of(*x) < key_of(*y); });
  // One record a line: small differences stay small in version control.
  std::string text =
      "{\"format\": \"" + std::string(format_name) + "\", \"version\": " + std::to_string(format_version) + ",\n\"records\": [";
  bool first = true;
  for (const TunedRecord* r : sorted) {
    text += first ? "\n" : ",\n";
    // Text from a driver may be anything: what is no UTF-8 is replaced rather than refused.
    text += to_value(*r).dump(-1, ' ', false, json::error_handler_t::replace);
    first = false;
  }
  return text + "\n]}\n";
}

std::vector<TunedRecord> merged(std::vector<TunedRecord> older, std::span<const TunedRecord> newer) {
  std::map<Key, TunedRecord> by_key;
  const auto add = [&](const TunedRecord& r) {
    auto [at, inserted] = by_key.try_emplace(key_of(r), r);
    if (inserted || r.measured < at->second.measured) return;
    const TunedRecord replaced = std::exchange(at->second, r);
    // Measured alone this time, for the same shape: whether another kernel is faster was decided when they were side by side.
    if (!r.fastest && replaced.shape == r.shape) {
      at->second.fastest = replaced.fastest;
      at->second.instead_of = replaced.instead_of;
    }
  };
  for (const TunedRecord& r : older) add(r);
  for (const TunedRecord& r : newer) add(r);
  // Of one shape one kernel is the fastest: the one that was so last.
  std::map<std::tuple<std::string, DType, std::string, Shape>, TunedRecord*> fastest;
  for (auto& [key, record] : by_key) {
    if (!record.fastest.value_or(false) || record.kernel == onemkl::name) continue;
    TunedRecord*& known = fastest[{record.fingerprint, record.dtype, record.layout, record.shape}];
    if (TunedRecord* beaten = !known ? nullptr : known->measured <= record.measured ? known : &record) beaten->fastest = false;
    if (!known || !known->fastest.value_or(false)) known = &record;
  }
  std::vector<TunedRecord> result;
  for (auto& [key, record] : by_key) result.push_back(std::move(record));
  return result;
}

std::size_t merge_into(const fs::path& file, std::span<const TunedRecord> records) {
  create_folder_of(file);
  const FileLock lock(file);
  const TuningFile present = read_for_change(file);
  const std::vector<TunedRecord> before = merged(present.records, {});
  const std::vector<TunedRecord> after = merged(before, records);
  std::map<Key, std::string> known;
  for (const TunedRecord& r : before) known[key_of(r)] = to_value(r).dump(-1, ' ', false, json::error_handler_t::replace);
  std::size_t changed = 0;
  for (const TunedRecord& r : after) changed += known[key_of(r)] != to_value(r).dump(-1, ' ', false, json::error_handler_t::replace);
  if (changed > 0 || present.corrupt) write_atomically(file, to_json(after));
  return changed;
}

std::size_t remove_from(const fs::path& file, std::string_view fingerprint, std::string_view kernel) {
  std::error_code error;
  if (!fs::exists(file, error)) return 0;
  const FileLock lock(file);
  const TuningFile present = read_for_change(file);
  std::vector<TunedRecord> kept;
  for (const TunedRecord& r : present.records)
    if ((!fingerprint.empty() && r.fingerprint != fingerprint) || (!kernel.empty() && r.kernel != kernel)) kept.push_back(r);
  const std::size_t removed = present.records.size() - kept.size();
  if (removed > 0) write_atomically(file, to_json(kept));
  return removed;
}

void write_atomically(const fs::path& file, std::string_view text) {
  create_folder_of(file);
#ifndef _WIN32
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());  // mode 0600: private to the user
  if (descriptor < 0) throw Error("cannot write a temporary file beside " + file.string());
  const auto fail = [&](const char* what) {
    ::close(descriptor);
    ::unlink(temporary.c_str());
    throw Error(std::string("cannot ") + what + ' ' + file.string());
  };
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("write (disk full?)");
    done += static_cast<std::size_t>(n);
  }
  // Without this a crash of the machine may leave the new name with no content.
  if (::fsync(descriptor) != 0) fail("flush");
  if (::rename(temporary.c_str(), file.c_str()) != 0) fail("replace");
  ::close(descriptor);
  const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  if (const int entry = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); entry >= 0) {
    ::fsync(entry);
    ::close(entry);
  }
#else
  const fs::path temporary = file.string() + ".new";
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << text;
    if (!stream.flush()) throw Error("cannot write " + temporary.string());
  }
  std::error_code error;
  fs::rename(temporary, file, error);
  if (error) throw Error("cannot replace " + file.string() + ": " + error.message());
#endif
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
#ifdef _WIN32
  gmtime_s(&parts, &now);
#else
  gmtime_r(&now, &parts);
#endif
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

fs::path user_tuning_file() {
  if (const char* file = std::getenv("SYCL_MAT_TUNING_FILE"); file && *file) return file;
#ifdef _WIN32
  if (const char* folder = std::getenv("APPDATA"); folder && *folder) return fs::path(folder) / "sycl_mat" / "tuning.json";
#else
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder && *folder) return fs::path(folder) / "sycl_mat" / "tuning.json";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".config" / "sycl_mat" / "tuning.json";
#endif
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  return (error ? fs::path(".") : temporary) / "sycl_mat" / "tuning.json";
}

std::string tuning_file_name(std::string_view fingerprint) {
  std::string name;
  for (char c : fingerprint) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    name += plain ? c : '_';
  }
  return name + ".json";
}

std::vector<fs::path> shipped_tuning_files() {
  // Asked again every time, unlike data_folder(), so that a changed environment counts.
  const char* data = std::getenv("SYCL_MAT_DATA_DIR");
  const fs::path folder = (data && *data ? fs::path(data) : data_folder()) / "tuned";
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") files.push_back(at->path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace sycl_mat
