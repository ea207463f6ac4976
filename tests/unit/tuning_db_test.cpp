#include "tuning_db.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kernel_version.hpp"
#include "params_json.hpp"
#include "plan.hpp"
#include "sycl_mat/errors.hpp"
#include "warning.hpp"

namespace sycl_mat {
namespace {

namespace fs = std::filesystem;

TunedRecord record(std::string kernel, Shape shape, double gflops, std::string measured = "2026-11-30T10:00:00Z") {
  TunedRecord r;
  r.fingerprint = "this-cpu";
  r.kernel = std::move(kernel);
  r.shape = shape;
  r.shape_class = shape_class(shape);
  r.params = PackParams{};
  r.gflops = gflops;
  r.default_gflops = 100;
  r.measured = std::move(measured);
  r.architecture = "cpu-avx512";
  r.device_name = "This CPU";
  r.driver_version = "1";
  r.library_version = "0.1.0";
  r.kernel_source = kernel_version(r.kernel);
  return r;
}

DeviceInfo device(std::string fingerprint = "this-cpu", std::string driver = "1") {
  DeviceInfo d;
  d.fingerprint = std::move(fingerprint);
  d.architecture = "cpu-avx512";
  d.driver_version = std::move(driver);
  return d;
}

Problem problem(index_t m, index_t n, index_t k, index_t batch = 1) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.batch_inner = batch;
  return p;
}

std::vector<std::string> heard;

/// A folder of its own, the user's file and the shipped folder in it; nothing of the machine's is read.
class TuningDb : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sycl_mat_tuning_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    user = folder / "user.json";
    ::setenv("SYCL_MAT_TUNING_FILE", user.c_str(), 1);
    ::setenv("SYCL_MAT_DATA_DIR", folder.c_str(), 1);
    heard.clear();
    set_warning_listener([](const std::string& text) { heard.push_back(text); });
  }
  void TearDown() override {
    set_warning_listener(nullptr);
    fs::remove_all(folder);
  }
  void write(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }
  /// Until the database has looked at the files again.
  void look() { std::this_thread::sleep_for(std::chrono::milliseconds(550)); }

  fs::path folder, user;
};

TEST_F(TuningDb, RecordsGoToTheFileAndBack) {
  TunedRecord r = record("tiled", {512, 640, 768, 2}, 123.5);
  r.params = TiledChoice{{16, 8, 32, 8, 4, 8}, {}};
  r.dtype = DType::float64;
  r.layout = "tn";
  r.spread = 0.01;
  EXPECT_EQ(merge_into(user, std::vector{r}), 1u);
  const TuningFile file = read_tuning_file(user);
  EXPECT_TRUE(file.warnings.empty());
  ASSERT_EQ(file.records.size(), 1u);
  const TunedRecord& back = file.records[0];
  EXPECT_EQ(back.params, r.params);
  EXPECT_EQ(back.shape, r.shape);
  EXPECT_EQ(back.shape_class, r.shape_class);
  EXPECT_EQ(back.dtype, r.dtype);
  EXPECT_EQ(back.layout, "tn");
  EXPECT_EQ(back.gflops, 123.5);
  EXPECT_EQ(back.measured, r.measured);
  EXPECT_EQ(back.driver_version, "1");
}

TEST_F(TuningDb, MergePrefersTheNewerMeasurement) {
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200, "2026-11-30T10:00:00Z")});
  EXPECT_EQ(merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 300, "2026-01-01T10:00:00Z")}), 0u);
  EXPECT_EQ(read_tuning_file(user).records.at(0).gflops, 200);
  EXPECT_EQ(merge_into(user, std::vector{record("packed", {500, 500, 500, 1}, 150, "2026-12-01T10:00:00Z")}), 1u);
  ASSERT_EQ(read_tuning_file(user).records.size(), 1u);  // the same class: replaced
  EXPECT_EQ(read_tuning_file(user).records.at(0).gflops, 150);
  merge_into(user, std::vector{record("tiled", {512, 512, 512, 1}, 10)});
  EXPECT_EQ(read_tuning_file(user).records.size(), 2u);  // another kernel: beside
}

TEST_F(TuningDb, ACorruptFileIsNamedAndKeptAside) {
  for (const char* text : {"", "{", "[]", "{\"format\": 3}", "{\"format\": \"sycl_mat tuning\"}", "\xff\xfe\x01", "null",
                           "{\"format\": \"sycl_mat tuning\", \"version\": 1, \"records\": {}}"}) {
    write(user, text);
    const TuningFile file = read_tuning_file(user);
    EXPECT_TRUE(file.corrupt) << text;
    ASSERT_EQ(file.warnings.size(), 1u) << text;
    EXPECT_NE(file.warnings[0].find(user.string()), std::string::npos);
    EXPECT_EQ(merge_into(user, std::vector{record("packed", {8, 8, 8, 1}, 1)}), 1u);
    EXPECT_EQ(read_tuning_file(user).records.size(), 1u);
    EXPECT_TRUE(fs::exists(user.string() + ".corrupt"));
  }
}

TEST_F(TuningDb, EachFieldOfARecordIsChecked) {
  const std::string good = to_json(std::vector{record("packed", {512, 512, 512, 1}, 200)});
  const std::pair<const char*, const char*> damage[] = {{"\"fingerprint\":\"this-cpu\"", "\"fingerprint\":7"},
                                                        {"\"dtype\":\"float32\"", "\"dtype\":\"float33\""},
                                                        {"\"layout\":\"nn\"", "\"layout\":\"xx\""},
                                                        {"\"class\":\"m18 n18 k18 b0\"", "\"class\":\"m18\""},
                                                        {"[512,512,512,1]", "[512,512,512]"},
                                                        {"[512,512,512,1]", "[512,512,-1,1]"},
                                                        {"\"family\":\"pack\"", "\"family\":\"rack\""},
                                                        {"\"mr\":6", "\"mr\":\"6; system()\""},
                                                        {"\"mr\":6", "\"mr\":-6"},
                                                        {"\"mr\":6", "\"mr\":99999999999"},
                                                        {"\"mr\":6", "\"rm\":6"},
                                                        {"\"gflops\":200.0", "\"gflops\":-1"},
                                                        {"\"gflops\":200.0", "\"gflops\":\"fast\""}};
  for (const auto& [from, to] : damage) {
    std::string text = good;
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::string(from).size(), to);
    write(user, text);
    const TuningFile file = read_tuning_file(user);
    EXPECT_TRUE(file.records.empty()) << to;
    EXPECT_FALSE(file.corrupt);
    ASSERT_EQ(file.warnings.size(), 1u) << to;
  }
}

TEST_F(TuningDb, RecordsThatMakeNoSenseCostOneLineAFile) {
  std::string text = to_json(std::vector{record("packed", {512, 512, 512, 1}, 200), record("packed", {64, 64, 64, 1}, 200),
                                         record("tiled", {64, 64, 64, 1}, 200)});
  for (std::size_t at = text.find("\"mr\":6"); at != std::string::npos && text.find("\"mr\":6", at + 1) != std::string::npos;
       at = text.find("\"mr\":6"))
    text.replace(at, 6, "\"of_a_later_version\":6");
  write(user, text);
  const TuningFile file = read_tuning_file(user);
  EXPECT_EQ(file.records.size(), 1u);
  ASSERT_EQ(file.warnings.size(), 1u);
  EXPECT_NE(file.warnings[0].find("2 of the 3 records"), std::string::npos) << file.warnings[0];
}

TEST_F(TuningDb, ALaterFormatIsLeftAlone) {
  const std::string text = "{\"format\": \"sycl_mat tuning\", \"version\": 2, \"records\": []}";
  write(user, text);
  EXPECT_TRUE(read_tuning_file(user).newer_format);
  EXPECT_THROW(merge_into(user, std::vector{record("packed", {8, 8, 8, 1}, 1)}), Error);
  std::ifstream stream(user);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), text);
}

TEST_F(TuningDb, ManyProcessesLoseNothing) {
  constexpr int processes = 4, each = 8;
  for (int process = 0; process < processes; ++process) {
    if (fork() == 0) {
      for (int i = 0; i < each; ++i)
        merge_into(user, std::vector{record("kernel" + std::to_string(process) + "_" + std::to_string(i), {64, 64, 64, 1}, 1)});
      _exit(0);
    }
  }
  for (int process = 0; process < processes; ++process) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_tuning_file(user).records.size(), std::size_t{processes * each});
  // Nothing but the file and its lock stays behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
}

TEST_F(TuningDb, AReadOnlyFolderIsAnErrorOfTheTunerOnly) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(merge_into(user, std::vector{record("packed", {8, 8, 8, 1}, 1)}), Error);
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(TuningDb, RemovesByDeviceAndKernel) {
  TunedRecord other = record("packed", {64, 64, 64, 1}, 1);
  other.fingerprint = "other";
  merge_into(user, std::vector{record("packed", {64, 64, 64, 1}, 1), record("tiled", {64, 64, 64, 1}, 1), other});
  EXPECT_EQ(remove_from(user, "this-cpu", "tiled"), 1u);
  EXPECT_EQ(remove_from(user, "this-cpu"), 1u);
  EXPECT_EQ(remove_from(user, ""), 1u);
  EXPECT_EQ(remove_from(folder / "none.json", ""), 0u);
}

TEST_F(TuningDb, LookupPrefersExactThenNearestThenShipped) {
  fs::create_directory(folder / "tuned");
  TunedRecord sister = record("packed", {64, 64, 64, 1}, 50);
  sister.fingerprint = "sister";
  sister.device_name = "Sister CPU";
  std::vector shipped{record("packed", {4096, 4096, 4096, 1}, 210), sister};
  write(folder / "tuned" / "this-cpu.json", to_json(shipped));
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200), record("tiled", {512, 512, 512, 1}, 40)});
  look();

  auto match = lookup(problem(500, 520, 512), device());
  ASSERT_NE(match, nullptr);
  EXPECT_TRUE(match->exact);
  EXPECT_EQ(match->source, RecordSource::user);
  EXPECT_EQ(match->kernel, "packed");  // the faster of two kernels
  EXPECT_FALSE(match->other_driver);
  EXPECT_NE(match->reason.find("512x512x512"), std::string::npos) << match->reason;

  match = lookup(problem(500, 520, 512), device(), "tiled");
  ASSERT_NE(match, nullptr);
  EXPECT_EQ(match->kernel, "tiled");

  match = lookup(problem(690, 512, 512), device());
  ASSERT_NE(match, nullptr);
  EXPECT_FALSE(match->exact);
  EXPECT_NEAR(match->distance, 0.43, 0.01);
  EXPECT_EQ(lookup(problem(1024, 512, 512), device()), nullptr);  // beyond its reach

  match = lookup(problem(4500, 4500, 4500), device());
  ASSERT_NE(match, nullptr);
  EXPECT_EQ(match->source, RecordSource::shipped);

  match = lookup(problem(60, 60, 60), device());
  ASSERT_NE(match, nullptr);
  EXPECT_EQ(match->source, RecordSource::shipped_architecture);
  EXPECT_NE(match->reason.find("Sister CPU"), std::string::npos) << match->reason;

  EXPECT_EQ(lookup(problem(1, 512, 512), device()), nullptr);       // a vector
  EXPECT_EQ(lookup(problem(512, 512, 512, 4), device()), nullptr);  // a stack
  EXPECT_EQ(lookup(problem(512, 512, 65536), device()), nullptr);   // too far away
  EXPECT_EQ(lookup(problem(512, 512, 512), device(), "gemv"), nullptr);
  Problem doubles = problem(512, 512, 512);
  doubles.dtype = DType::float64;
  EXPECT_EQ(lookup(doubles, device()), nullptr);
  DeviceInfo gpu = device("gpu");
  gpu.architecture = "intel-xe-lp";
  EXPECT_EQ(lookup(problem(512, 512, 512), gpu), nullptr);
}

TEST_F(TuningDb, ARecordReachesAsFarAsItWasProven) {
  TunedRecord narrow = record("packed", {768, 768, 768, 1}, 200);
  narrow.reach = 0;
  TunedRecord wide = record("packed", {720, 720, 720, 1}, 190);
  wide.reach = sharing_radius;
  // One class, but the first is for its very shape, so both stay.
  EXPECT_EQ(merge_into(user, std::vector{narrow, wide}), 2u);
  look();
  EXPECT_EQ(lookup(problem(768, 768, 768), device())->gflops, 200);
  EXPECT_EQ(lookup(problem(767, 768, 768), device())->gflops, 190);
  EXPECT_EQ(lookup(problem(1024, 1024, 1024), device()), nullptr);
}

TEST_F(TuningDb, DefaultsCanBeTheBest) {
  TunedRecord r = record("packed", {512, 512, 512, 1}, 200);
  r.params = Params{};
  merge_into(user, std::vector{r});
  EXPECT_EQ(read_tuning_file(user).records.at(0).params, Params{});
}

TEST_F(TuningDb, LayoutsShareNothing) {
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200)});
  look();
  Problem transposed = problem(512, 512, 512);
  transposed.b.transposed = true;
  EXPECT_EQ(lookup(transposed, device()), nullptr);
}

TEST_F(TuningDb, AnotherDriverIsMarked) {
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200)});
  look();
  const auto match = lookup(problem(512, 512, 512), device("this-cpu", "2"));
  ASSERT_NE(match, nullptr);
  EXPECT_TRUE(match->other_driver);
  EXPECT_NE(match->reason.find("driver 1"), std::string::npos) << match->reason;
}

TEST_F(TuningDb, AnotherVersionOfTheKernelIsMarkedAndComesLast) {
  fs::create_directory(folder / "tuned");
  TunedRecord old = record("packed", {512, 512, 512, 1}, 300), unknown = record("packed", {2048, 2048, 2048, 1}, 250);
  old.kernel_source = "0123456789abcdef";
  unknown.kernel_source.clear();
  merge_into(user, std::vector{old, unknown});
  look();
  auto match = lookup(problem(512, 512, 512), device());
  ASSERT_NE(match, nullptr);  // better than nothing
  EXPECT_TRUE(match->other_kernel);
  EXPECT_NE(match->reason.find("another version of the kernel: tune again"), std::string::npos) << match->reason;
  match = lookup(problem(2048, 2048, 2048), device());
  ASSERT_NE(match, nullptr);
  EXPECT_TRUE(match->other_kernel);
  EXPECT_NE(match->reason.find("perhaps with another version"), std::string::npos) << match->reason;

  // A neighbour of the present version, even a shipped one, decides before it.
  write(folder / "tuned" / "this-cpu.json", to_json(std::vector{record("packed", {600, 512, 512, 1}, 200)}));
  fs::remove(user);
  merge_into(user, std::vector{old});
  look();
  match = lookup(problem(512, 512, 512), device());
  ASSERT_NE(match, nullptr);
  EXPECT_FALSE(match->other_kernel);
  EXPECT_EQ(match->source, RecordSource::shipped);
  EXPECT_EQ(match->reason.find("version"), std::string::npos) << match->reason;
}

TEST_F(TuningDb, FilesOfEarlierVersionsLoad) {
  std::string text = to_json(std::vector{record("packed", {512, 512, 512, 1}, 200)});
  const auto at = text.find(",\"source\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, text.find('}', at) - at, "");
  write(user, text);
  const TuningFile file = read_tuning_file(user);
  EXPECT_TRUE(file.warnings.empty());
  ASSERT_EQ(file.records.size(), 1u);
  EXPECT_EQ(file.records[0].kernel_source, "");
  EXPECT_FALSE(file.records[0].fastest.has_value());
}

TEST(KernelVersion, FollowsTheCodeNotItsLayout) {
  EXPECT_EQ(code_of("int a;  // why\n\n  int b;"), code_of("int a;\nint b;"));
  EXPECT_EQ(code_of("int a; /* more\nlines */ int b;"), code_of("int a; int b;"));
  EXPECT_NE(code_of("int a = 1;"), code_of("int a = 2;"));
  EXPECT_EQ(code_of("int a; //"), code_of("int a; "));
  EXPECT_EQ(code_of("int a; /* open"), code_of("int a; "));
  EXPECT_EQ(kernel_version("packed").size(), 16u);
  EXPECT_NE(kernel_version("packed"), kernel_version("skinny"));
  EXPECT_FALSE(kernel_version("host").empty());
  EXPECT_EQ(kernel_version("no such kernel"), "");
}

/// A processor on which the rule takes the host path below about 280³, and the packed kernel above.
DeviceInfo processor() {
  DeviceInfo d = device();
  d.type = "cpu";
  d.backend = "opencl";
  d.compute_units = 2;
  d.vector_width = 16;
  d.has_fp64 = true;
  d.l1_cache = 32 << 10;
  d.l2_cache = 1 << 20;
  d.l3_cache = 32 << 20;
  return d;
}

Problem product(index_t size, Activation activation = Activation::none) {
  Problem p = problem(size, size, size);
  p.a.ld = p.b.ld = p.d.ld = size;
  p.epilogue.activation = activation;
  return p;
}

TunedRecord fastest(std::string kernel, index_t size, std::string instead_of, double gflops = 200) {
  TunedRecord r = record(std::move(kernel), {size, size, size, 1}, gflops);
  r.params = Params{};
  r.fastest = true;
  r.instead_of = std::move(instead_of);
  r.reach = sharing_radius;
  return r;
}

TEST_F(TuningDb, RecordsMoveTheThresholdBetweenTheHostPathAndLaunches) {
  const DeviceInfo d = processor();
  ASSERT_TRUE(on_host(product(128), d, {}));
  ASSERT_FALSE(on_host(product(700), d, {}));
  merge_into(user, std::vector{fastest("host", 700, "packed"), fastest("packed", 128, "host"), fastest("packed", 300, "")});
  look();
  EXPECT_TRUE(on_host(product(700), d, {}));
  EXPECT_TRUE(on_host(product(740), d, {}));  // a neighbour
  EXPECT_NE(why_on_host(product(700), d, {}).find("faster than packed"), std::string::npos);
  EXPECT_FALSE(on_host(product(128), d, {}));
  EXPECT_NE(make_plan(product(128), d, {}).reason.find("faster than host"), std::string::npos);
  EXPECT_TRUE(on_host(product(16), d, {})) << "the smallest do not ask";
  EXPECT_TRUE(on_host(product(270), d, {})) << "where the rule was confirmed at 300 it holds for its neighbours, too";
  EXPECT_FALSE(on_host(product(700, Activation::gelu), d, {})) << "measured without";
  GemmOptions forced;
  forced.kernel = "packed";
  EXPECT_FALSE(on_host(product(700), d, forced));
  EXPECT_EQ(choose(product(700), d, Records::none).kernel, "packed");
  EXPECT_EQ(choose(product(700), d, Records::all).kernel, "host");
  // A record that was not measured beside the host path leaves the rule alone.
  TunedRecord alone = record("packed", {128, 128, 128, 1}, 100);
  fs::remove(user);
  merge_into(user, std::vector{alone});
  look();
  EXPECT_TRUE(on_host(product(128), d, {}));
}

TEST_F(TuningDb, ASisterDeviceHasAnotherNumberOfCores) {
  fs::create_directory(folder / "tuned");
  TunedRecord sister = fastest("host", 700, "packed");
  sister.fingerprint = "sister";
  write(folder / "tuned" / "sister.json", to_json(std::vector{sister}));
  look();
  EXPECT_FALSE(on_host(product(700), processor(), {}));
}

TEST_F(TuningDb, ARecordMeasuredAloneDoesNotChooseTheKernel) {
  const DeviceInfo d = processor();
  Problem few = problem(3, 4096, 4096);
  few.a.ld = 4096, few.b.ld = 4096, few.d.ld = 4096;
  ASSERT_EQ(choose(few, d, Records::all).kernel, "skinny");
  merge_into(user, std::vector{record("packed", {3, 4096, 4096, 1}, 500)});
  look();
  EXPECT_EQ(choose(few, d, Records::all).kernel, "skinny");
  TunedRecord rule = record("skinny", {3, 4096, 4096, 1}, 20);
  rule.params = Params{};
  merge_into(user, std::vector{rule});  // files of earlier versions hold both, and do not say which was the fastest
  look();
  EXPECT_EQ(choose(few, d, Records::all).kernel, "packed");
}

TEST_F(TuningDb, WhatLostToAnotherKernelDecidesForItselfOnly) {
  const DeviceInfo d = processor();
  TunedRecord loser = record("packed", {1, 4096, 4096, 1}, 500);
  loser.fastest = false;
  merge_into(user, std::vector{loser});
  look();
  const Problem vector = problem(1, 4096, 4096);
  EXPECT_EQ(lookup(vector, d), nullptr);
  EXPECT_NE(lookup(vector, d, "packed"), nullptr);
  // oneMKL stands beside ours.
  merge_into(user, std::vector{fastest("onemkl", 900, "packed", 1e6)});
  look();
  EXPECT_EQ(lookup(problem(900, 900, 900), d), nullptr);
  EXPECT_NE(lookup(problem(900, 900, 900), d, "onemkl"), nullptr);
}

TEST_F(TuningDb, OneKernelIsTheFastestOfAShape) {
  TunedRecord before = fastest("host", 512, "packed"), now = fastest("packed", 512, "");
  now.measured = "2026-12-01T10:00:00Z";
  merge_into(user, std::vector{before});
  merge_into(user, std::vector{now, fastest("onemkl", 512, "packed")});
  for (const TunedRecord& r : read_tuning_file(user).records) EXPECT_EQ(*r.fastest, r.kernel != "host") << r.kernel;
  // Measured again without the others: what was known of them stays.
  TunedRecord alone = record("packed", {512, 512, 512, 1}, 210, "2026-12-02T10:00:00Z");
  merge_into(user, std::vector{alone});
  for (const TunedRecord& r : read_tuning_file(user).records)
    if (r.kernel == "packed") {
      EXPECT_EQ(r.gflops, 210);
      EXPECT_EQ(r.fastest, true);
    }
}

TEST_F(TuningDb, AChangedFileIsSeen) {
  look();
  const std::uint64_t before = tuning_generation();
  EXPECT_EQ(lookup(problem(512, 512, 512), device()), nullptr);
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200)});
  look();
  EXPECT_NE(tuning_generation(), before);
  EXPECT_NE(lookup(problem(512, 512, 512), device()), nullptr);
  fs::remove(user);
  look();
  EXPECT_EQ(lookup(problem(512, 512, 512), device()), nullptr);
}

TEST_F(TuningDb, ACorruptFileWarnsOnceAndTheShippedOnesDecide) {
  write(user, "{ not json");
  look();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lookup(problem(512, 512, 512), device()), nullptr);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find(user.string()), std::string::npos);
}

TEST_F(TuningDb, ARepeatedQuestionIsCheap) {
  merge_into(user, std::vector{record("packed", {512, 512, 512, 1}, 200)});
  look();
  const DeviceInfo d = device("amd-epyc-something-of-a-realistic-length-cpu-avx512-2cu");
  const Problem p = problem(512, 512, 512);
  lookup(p, d);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) lookup(p, d);
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 1000);
  }
  RecordProperty("nanoseconds", static_cast<int>(best));
  EXPECT_LT(best, 1000) << "a map from memory, not a file, must answer";
}

TEST(TuningFileName, IsSafe) { EXPECT_EQ(tuning_file_name("amd-epyc/../x y"), "amd-epyc_.._x_y.json"); }

TEST(ParamsJson, EveryFieldSurvives) {
  Params tile = TiledChoice{};
  int value = 100;
  for (const ParamField& field : fields_of(tile)) field.set(tile, value++);
  EXPECT_EQ(params_from_json(params_to_json(tile)), tile);
  EXPECT_EQ(fields_of(tile).size() * sizeof(int), sizeof(TiledChoice)) << "a member without a name would be lost";
  Params pack = PackParams{};
  for (const ParamField& field : fields_of(pack)) field.set(pack, value++);
  EXPECT_EQ(params_from_json(params_to_json(pack)), pack);
  EXPECT_EQ(fields_of(pack).size() * sizeof(int), sizeof(PackParams));
  EXPECT_EQ(params_from_json(params_to_json(Params{})), Params{});
}

}  // namespace
}  // namespace sycl_mat
