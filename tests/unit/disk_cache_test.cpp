// The cache folder: whole entries or none, damage noticed, nobody let in, and a folder that cannot be used only costs time.
#include "disk_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "warning.hpp"

namespace sycl_mat {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> warnings;

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "sycl_mat_cache_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    warnings.clear();
    set_warning_listener([](const std::string& text) { warnings.push_back(text); });
  }
  void TearDown() override {
    set_warning_listener(nullptr);
    fs::remove_all(root_);
  }
  fs::path root_;
  const std::vector<char> payload_{'a', 'b', '\0', 'c'};
};

TEST_F(DiskCacheTest, ReadsWhatWasWritten) {
  DiskCache cache(root_ / "made" / "on demand");
  EXPECT_EQ(cache.read("key"), std::nullopt);
  EXPECT_TRUE(cache.write("key", payload_));
  EXPECT_EQ(cache.read("key"), payload_);
  EXPECT_EQ(cache.read("other key"), std::nullopt);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(DiskCacheTest, IsPrivate) {
  DiskCache cache(root_ / "folder");
  cache.write("key", payload_);
  struct stat info{};
  ASSERT_EQ(stat((root_ / "folder").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
  ASSERT_EQ(stat(cache.path_of("key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
}

TEST_F(DiskCacheTest, EveryDamagedByteIsNoticed) {
  DiskCache cache(root_);
  ASSERT_TRUE(cache.write("key", payload_));
  const auto size = fs::file_size(cache.path_of("key"));
  for (std::uintmax_t at = 0; at < size; ++at) {
    ASSERT_TRUE(cache.write("key", payload_));
    {
      std::fstream file(cache.path_of("key"), std::ios::binary | std::ios::in | std::ios::out);
      file.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(file.get());
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 0x41));
    }
    EXPECT_EQ(cache.read("key"), std::nullopt) << "byte " << at;
    EXPECT_FALSE(fs::exists(cache.path_of("key"))) << "byte " << at;
  }
  EXPECT_EQ(warnings.size(), size);
}

TEST_F(DiskCacheTest, TruncatedAndForeignFiles) {
  DiskCache cache(root_);
  for (const std::string& content :
       {std::string(), std::string("x"), std::string(1000, '\0'), std::string("syclmat1") + std::string(16, '\xff')}) {
    std::ofstream(cache.path_of("key"), std::ios::binary) << content;
    EXPECT_EQ(cache.read("key"), std::nullopt);
  }
  EXPECT_EQ(warnings.size(), 4u);
}

TEST_F(DiskCacheTest, SameFileNameOfAnotherKeyIsNotServed) {
  DiskCache cache(root_);
  ASSERT_TRUE(cache.write("first", payload_));
  fs::rename(cache.path_of("first"), cache.path_of("second"));  // as if the two keys had the same hash
  EXPECT_EQ(cache.read("second"), std::nullopt);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(DiskCacheTest, EntriesThatAreNoFiles) {
  DiskCache cache(root_);
  ASSERT_EQ(mkfifo(cache.path_of("pipe").c_str(), 0600), 0);  // opening it would wait for ever
  EXPECT_EQ(cache.read("pipe"), std::nullopt);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(cache.write("pipe", payload_));
  EXPECT_EQ(cache.read("pipe"), payload_);
  fs::create_directory(cache.path_of("folder"));
  EXPECT_EQ(cache.read("folder"), std::nullopt);
}

TEST_F(DiskCacheTest, UnusableFoldersCostOnlyTime) {
  std::ofstream(root_ / "file") << "not a folder";
  DiskCache cache(root_ / "file" / "folder");
  EXPECT_FALSE(cache.write("key", payload_));
  EXPECT_FALSE(cache.write("key", payload_));
  EXPECT_EQ(cache.read("key"), std::nullopt);
  EXPECT_EQ(warnings.size(), 1u) << "one warning, not one a product";
  DiskCache nowhere{fs::path()};
  EXPECT_FALSE(nowhere.write("key", payload_));
  EXPECT_EQ(nowhere.read("key"), std::nullopt);
  DiskCache::Lock lock(nowhere, "key");
}

TEST_F(DiskCacheTest, FailedWritesLeaveNoPart) {
  DiskCache cache(root_);
  // A rename onto a folder fails as late as a write can.
  fs::create_directory(cache.path_of("key"));
  EXPECT_FALSE(cache.write("key", payload_));
  for (const auto& entry : fs::directory_iterator(root_)) EXPECT_NE(entry.path().extension(), ".tmp");
}

TEST_F(DiskCacheTest, ConcurrentWritersLeaveOneWholeEntry) {
  DiskCache cache(root_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        cache.write("key", std::vector<char>(10000, static_cast<char>('a' + t)));
        const auto read = cache.read("key");
        ASSERT_TRUE(read.has_value());
        for (char c : *read) ASSERT_EQ(c, read->front());
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(warnings.empty());
}

TEST_F(DiskCacheTest, AHolderThatStoppedIsNotWaitedForForEver) {
  DiskCache cache(root_);
  DiskCache::Lock first(cache, "key");
  ASSERT_TRUE(first.held());
  EXPECT_TRUE(DiskCache::Lock(cache, "other key").held());
  DiskCache::Lock second(cache, "key", std::chrono::milliseconds(30));
  EXPECT_FALSE(second.held());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("another process"), std::string::npos);
  std::optional<DiskCache::Lock> third;
  third.emplace(cache, "third key");
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    third.reset();
  });
  EXPECT_TRUE(DiskCache::Lock(cache, "third key").held()) << "one that is released in time is waited for";
  releases.join();
}

TEST_F(DiskCacheTest, SharedFoldersAreOnlyRead) {
  DiskCache(root_).write("key", payload_);
  DiskCache shared(root_, DiskCache::Kind::shared);
  EXPECT_EQ(shared.read("key"), payload_);
  std::ofstream(shared.path_of("key"), std::ios::binary) << "damaged";
  EXPECT_EQ(shared.read("key"), std::nullopt);
  EXPECT_TRUE(fs::exists(shared.path_of("key")));
}

}  // namespace
}  // namespace sycl_mat
