// What was measured on which device: records in JSON files, one file of the user's and any number that are shipped.
//
// The planner asks lookup(); the tuner writes with merge_into(). A file that cannot be read, or records in it that make no sense,
// cost a warning that names the file, never a product.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shape_class.hpp"
#include "sycl_mat/device.hpp"

namespace sycl_mat {

/// The best constants of one kernel for one class of problems on one model of device. Key: the first five members, and the shape itself
/// where the record reaches no further.
struct TunedRecord {
  std::string fingerprint;  ///< DeviceInfo::fingerprint
  std::string kernel;
  DType dtype = DType::float32;
  std::string layout = "nn";
  ShapeClass shape_class;

  Shape shape;    ///< the problem that was measured
  Params params;  ///< none: the kernel's defaults, computed for the problem at hand, were the best
  /// Up to this distance (see shape_distance()) the constants were proven to be no worse than the defaults; 0: for this shape only.
  double reach = 0.5;
  double gflops = 0;          ///< with `params`
  double default_gflops = 0;  ///< with the family's defaults in the same rounds, 0: those were not measured
  double spread = 0;          ///< relative half width of the measurement's noise
  std::string measured;       ///< UTC, "2026-11-30T10:00:00Z": compares as text

  std::string architecture;  ///< DeviceInfo::architecture
  std::string device_name;
  std::string driver_version;
  std::string library_version;
  std::string kernel_source;  ///< kernel_version() of what was measured, empty: not recorded (by an earlier version of the library)

  /// Whether this kernel was the fastest of all that could be chosen, in the same rounds; for oneMKL: faster than all of ours. Not set:
  /// the others were not measured beside it.
  std::optional<bool> fastest;
  /// Where `fastest`: the kernel that the planner takes here without a measurement, and that this one has beaten; empty: it is that one.
  std::string instead_of;
};

/// From which file a record came.
enum class RecordSource { user, shipped, shipped_architecture };

/// A record as the answer to a problem.
struct TunedMatch : TunedRecord {
  RecordSource source = RecordSource::user;
  bool exact = false;         ///< the problem's own class; otherwise the nearest measured shape of its layout
  double distance = 0;        ///< in doublings, see shape_distance()
  bool other_driver = false;  ///< measured with another version of the driver: used, but worth tuning again
  bool other_kernel = false;  ///< measured with another version of the kernel: used where there is none of the present one
  std::string reason;         ///< one line for explain()
};

/// The record that decides for a problem, or null. Exact entry of the user's file, nearest of the user's, then the same of the shipped
/// files for this device; then these with records of other versions of the kernels, and at last, in the same order, the shipped files for
/// devices of its architecture. A `kernel` restricts the answer to that one. Without it, records of which kernel is the fastest are
/// asked for: those that lost to another kernel do not answer, nor does oneMKL, which stands beside ours (ask for it by name). Where
/// several kernels have unbeaten records for the same problem the fastest wins. Answers are kept in memory: a repeated question costs
/// less than 100 ns. The constants are not checked against the kernel's constraints for this problem: the caller must expect ParamsError
/// from them. Never throws because of a file.
std::shared_ptr<const TunedMatch> lookup(const Problem& problem, const DeviceInfo& device, std::string_view kernel = {});

/// The same from the shipped files alone, for comparisons. Not kept in memory.
std::shared_ptr<const TunedMatch> lookup_shipped(const Problem& problem, const DeviceInfo& device, std::string_view kernel = {});

/// Changes whenever a file changed on disk, that is when lookup() may answer differently: whoever keeps plans compares this number.
/// Looks at the files at most twice a second, otherwise costs about 20 ns.
std::uint64_t tuning_generation();

/// $SYCL_MAT_TUNING_FILE, else tuning.json in the user's configuration folder for sycl_mat. May not exist.
/// (Configuration rather than cache: a minute of measuring is not something to lose to a cleaner.)
std::filesystem::path user_tuning_file();
/// The shipped files: *.json in $SYCL_MAT_DATA_DIR/tuned, else in the `tuned` folder installed with the library.
std::vector<std::filesystem::path> shipped_tuning_files();
/// The name of a device's shipped file: its fingerprint with everything but letters, digits, '.', '_' and '-' as '_', and ".json".
std::string tuning_file_name(std::string_view fingerprint);

/// One file's content. `warnings` are complete sentences that name the file.
struct TuningFile {
  std::vector<TunedRecord> records;
  std::vector<std::string> warnings;
  bool newer_format = false;  ///< written by a later version of the library: left alone
  bool corrupt = false;       ///< not JSON, or not a tuning file
};
/// A missing file is an empty one. Never throws.
TuningFile read_tuning_file(const std::filesystem::path& file);

/// Adds records; of two with the same key the newer measurement stays. Safe with several processes (a lock file beside it); the file is
/// replaced in one step. A corrupt file is kept beside it under another name. Returns how many records changed.
/// Throws Error where the file cannot be written, or was written by a later version of the library.
std::size_t merge_into(const std::filesystem::path& file, std::span<const TunedRecord> records);

/// Removes the records of a fingerprint (empty: all), optionally of one kernel. Returns how many. Throws Error as merge_into().
std::size_t remove_from(const std::filesystem::path& file, std::string_view fingerprint, std::string_view kernel = {});

/// Records as the text of a tuning file, sorted by key, so that exported files compare well.
std::string to_json(std::span<const TunedRecord> records);

/// The same of two sets of records as of two files. Of one shape only the newest `fastest` of ours stays the fastest; a record that does
/// not say whether it is takes that over from the one it replaces.
std::vector<TunedRecord> merged(std::vector<TunedRecord> older, std::span<const TunedRecord> newer);

/// Text of now, as records carry it.
std::string utc_now();

/// Replaces a file in one step: a temporary file beside it, flushed to the disk, then renamed. Creates the folder. Throws Error.
void write_atomically(const std::filesystem::path& file, std::string_view text);

}  // namespace sycl_mat
