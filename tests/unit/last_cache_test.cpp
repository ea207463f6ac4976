// What Linux says of a processor's caches, read from folders that look like its own.
#include "last_cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace sycl_mat {
namespace {

class LastCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sycl_mat_last_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void cache(int index, const char* level, const char* size, const char* sharers) {
    const auto at = folder_ / "cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(at);
    std::ofstream(at / "level") << level << '\n';
    std::ofstream(at / "size") << size << '\n';
    std::ofstream(at / "shared_cpu_list") << sharers << '\n';
  }
  std::filesystem::path folder_;
};

TEST_F(LastCache, IsTheThirdLevelOfAllProcessorsTogether) {
  cache(0, "1", "32K", "0");
  cache(2, "2", "1024K", "0");
  EXPECT_EQ(last_cache_bytes(folder_, 2), 0) << "no third level";
  cache(3, "3", "32768K", "0-1");
  EXPECT_EQ(last_cache_bytes(folder_, 2), 32 << 20);
  EXPECT_EQ(last_cache_bytes(folder_, 1), 32 << 20);
  cache(3, "3", "32M", "0-7,64-71");
  EXPECT_EQ(last_cache_bytes(folder_, 64), 128 << 20);
  EXPECT_EQ(last_cache_bytes(folder_, 65), 160 << 20);
}

TEST_F(LastCache, NonsenseIsNoCache) {
  EXPECT_EQ(last_cache_bytes(folder_ / "nowhere", 4), 0);
  for (const char* size : {"", "K", "32Q", "-1K"}) {
    cache(3, "3", size, "0-1");
    EXPECT_EQ(last_cache_bytes(folder_, 2), 0) << size;
  }
  for (const char* sharers : {"", "x", "3-1", "0-", "-1", "0;1"}) {
    cache(3, "3", "8M", sharers);
    EXPECT_EQ(last_cache_bytes(folder_, 64), 8 << 20) << "'" << sharers << "': as if all shared one";
  }
}

}  // namespace
}  // namespace sycl_mat
