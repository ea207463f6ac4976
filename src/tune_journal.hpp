// What the tuner has tried on this machine, a line a candidate, so that it resumes, and never again tries what was wrong or killed it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sycl_mat/tuner.hpp"

namespace sycl_mat {

class Journal {
 public:
  struct Entry {
    Params params;
    CandidateState state = CandidateState::measured;
    std::string why;
    std::map<std::string, double> seconds;  ///< by problem_key()
  };

  /// `key` names everything that must be equal for old entries to count: device, driver, kernel's source, dtype, layout. Lines of other
  /// keys are kept and ignored. A file that cannot be read or written costs resuming, with a warning, nothing else.
  Journal(std::filesystem::path file, std::string key);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// By describe(params). A candidate that was begun twice and never ended counts as crashed: once may have been a kill.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  /// Before anything is done with a candidate that might end the process.
  void begin(const Params& params);
  void end(const Entry& entry);

 private:
  void append(const std::string& line);
  std::filesystem::path file_;
  std::string key_;
  std::map<std::string, Entry> entries_;
  int descriptor_ = -1;
};

/// "1024,1024,1024,1".
std::string problem_key(const TuneProblem& p);

/// Beside the tuning file.
std::filesystem::path journal_file();

}  // namespace sycl_mat
