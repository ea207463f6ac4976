#include "tune_journal.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "params_json.hpp"
#include "tuning_db.hpp"
#include "warning.hpp"

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

namespace sycl_mat {
namespace {

using json = nlohmann::ordered_json;

constexpr std::pair<CandidateState, const char*> names[] = {{CandidateState::measured, "measured"},
                                                            {CandidateState::wrong, "wrong result"},
                                                            {CandidateState::compile_error, "does not compile"},
                                                            {CandidateState::device_error, "device error"},
                                                            {CandidateState::crashed, "crashed"},
                                                            {CandidateState::pruned, "spills"}};

CandidateState state_named(const std::string& text) {
  for (const auto& [state, name] : names)
    if (text == name) return state;
  return CandidateState::device_error;
}

}  // namespace

std::string to_string(CandidateState state) {
  for (const auto& [known, name] : names)
    if (known == state) return name;
  return "";
}

std::string problem_key(const TuneProblem& p) {
  return std::to_string(p.m) + "," + std::to_string(p.n) + "," + std::to_string(p.k) + "," + std::to_string(p.batch);
}

std::filesystem::path journal_file() {
  std::filesystem::path file = user_tuning_file();
  return file.replace_extension(".journal");
}

Journal::Journal(std::filesystem::path file, std::string key) : file_(std::move(file)), key_(std::move(key)) {
  std::map<std::string, Entry> begun;  // whose last line is a beginning
  std::map<std::string, int> deaths;
  std::ifstream stream(file_);
  for (std::string line; std::getline(stream, line);) {
    // A torn or foreign line is skipped: the journal only saves work.
    const json value = json::parse(line, nullptr, false);
    if (!value.is_object() || value.value("key", json()) != key_) continue;
    const auto params = value.contains("params") ? params_from_json(value["params"]) : std::nullopt;
    if (!params) continue;
    const std::string name = describe(*params);
    if (value.value("begin", false)) {
      begun[name].params = *params;
      ++deaths[name];
      continue;
    }
    if (!value.contains("state") || !value["state"].is_string()) continue;
    begun.erase(name);
    deaths.erase(name);
    Entry& entry = entries_[name];
    entry.params = *params;
    entry.state = state_named(value["state"].get<std::string>());
    if (value.contains("why") && value["why"].is_string()) entry.why = value["why"].get<std::string>();
    if (value.contains("seconds") && value["seconds"].is_object())
      for (const auto& [problem, seconds] : value["seconds"].items())
        if (seconds.is_number() && seconds > 0) entry.seconds[problem] = seconds.get<double>();
  }
  for (auto& [name, entry] : begun) {
    if (deaths[name] < 2) continue;
    entry.state = CandidateState::crashed;
    entry.why = "the process ended twice while this set was being built or run";
    entries_[name] = std::move(entry);
  }
#ifndef _WIN32
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) warn("the tuner cannot write its journal " + file_.string() + ": it will not resume where it ended.");
#endif
}

Journal::~Journal() {
#ifndef _WIN32
  if (descriptor_ >= 0) ::close(descriptor_);
#endif
}

void Journal::append([[maybe_unused]] const std::string& line) {
#ifndef _WIN32
  // One write with O_APPEND: lines of several processes do not mix.
  if (descriptor_ >= 0 && ::write(descriptor_, line.data(), line.size()) < 0) {
    warn("the tuner cannot write its journal " + file_.string() + ".");
    ::close(std::exchange(descriptor_, -1));
  }
#endif
}

void Journal::begin(const Params& params) {
  json line;
  line["key"] = key_;
  line["params"] = params_to_json(params);
  line["begin"] = true;
  append(line.dump() + "\n");
}

void Journal::end(const Entry& entry) {
  json line;
  line["key"] = key_;
  line["params"] = params_to_json(entry.params);
  line["state"] = to_string(entry.state);
  if (!entry.why.empty()) line["why"] = entry.why.substr(0, 500);
  json seconds = json::object();
  for (const auto& [problem, value] : entry.seconds)
    if (std::isfinite(value)) seconds[problem] = value;
  line["seconds"] = seconds;
  append(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  entries_[describe(entry.params)] = entry;
}

}  // namespace sycl_mat
