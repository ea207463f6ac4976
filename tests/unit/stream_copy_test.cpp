// Copies past the caches, and the threads that make them.
#include "stream_copy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <vector>

#include "copy_team.hpp"
#include "strided_copy.hpp"

namespace sycl_mat {
namespace {

TEST(StreamCopy, EveryBeginningAndLengthAndNothingElse) {
  std::mt19937 random(5);
  std::vector<unsigned char> from(20000);
  for (auto& x : from) x = static_cast<unsigned char>(random());
  for (const std::size_t length : {0, 1, 63, 2047, 2048, 2049, 2303, 4096, 4097, 9999, 16384})
    for (const std::size_t to_shift : {0, 1, 4, 63, 64, 255})
      for (const std::size_t from_shift : {0, 1, 4, 64, 100}) {
        std::vector<unsigned char> to(20000, 0xa5);
        stream_copy(to.data() + 256 + to_shift, 0, from.data() + from_shift, 0, length);
        const std::size_t begin = 256 + to_shift, end = begin + length;
        ASSERT_EQ(std::memcmp(to.data() + begin, from.data() + from_shift, length), 0) << length << " " << to_shift << " " << from_shift;
        for (std::size_t i = 0; i < to.size(); ++i)
          if (i < begin || i >= end) {
            ASSERT_EQ(to[i], 0xa5) << i << " of " << length << " at " << to_shift;
          }
      }
}

TEST(StreamCopy, LinesOfAView) {
  std::vector<float> from(700 * 900), to(700 * 900, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = float(i);
  MatrixView source = row_major(from.data() + 3, 600, 800), target = row_major(to.data() + 7, 600, 800);
  source.row_stride = target.row_stride = 900;
  copy_past_caches(target, source);
  for (std::int64_t i = 0; i < 700; ++i)
    for (std::int64_t j = 0; j < 900; ++j) {
      const bool inside = i < 600 && j >= 7 && j < 807;
      ASSERT_EQ(to[std::size_t(i * 900 + j)], inside ? from[std::size_t(i * 900 + j - 4)] : -1) << i << ", " << j;
    }
  target = row_major(to.data(), 600, 800).transposed();  // element by element
  source = source.transposed();
  source.row_stride = 900, source.col_stride = 1, source.rows = 300, source.cols = 600;
  target.rows = 300, target.cols = 600, target.row_stride = 1, target.col_stride = 900;
  copy_past_caches(target, source);
  for (std::int64_t i = 0; i < 300; ++i)
    for (std::int64_t j = 0; j < 600; ++j) ASSERT_EQ(to[std::size_t(i + j * 900)], from[std::size_t(3 + i * 900 + j)]);
}

TEST(CopyTeam, RunsEverythingOnceAndDropsWhatHasNotBegun) {
  std::atomic<int> done{0};
  {
    CopyTeam team;
    for (int i = 0; i < 3000; ++i) team.add(CopyTeam::Kind(i % 3), [&] { ++done; });
    while (done < 3000) std::this_thread::yield();
  }
  EXPECT_EQ(done, 3000);
  std::atomic<bool> go{false};
  std::atomic<int> begun{0};
  {
    CopyTeam team;
    for (unsigned i = 0; i < CopyTeam::threads() + 5; ++i)
      team.add(CopyTeam::in, [&] {
        ++begun;
        while (!go) std::this_thread::yield();
      });
    while (begun < int(CopyTeam::threads())) std::this_thread::yield();
    std::thread([&] { std::this_thread::sleep_for(std::chrono::milliseconds(20)), go = true; }).detach();
  }
  EXPECT_GE(begun, int(CopyTeam::threads()));
}

}  // namespace
}  // namespace sycl_mat
