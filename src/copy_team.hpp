// Threads that copy between the host's own memory and pinned memory, for as long as one product takes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sycl_mat {

/// Tasks are begun in the order of their kinds (by a quarter of the threads results before operands), and of one kind in the order in which
/// they were added. They must not throw.
class CopyTeam {
 public:
  enum Kind { now, in, out };  ///< what the compute waits for; what it will; its results
  CopyTeam();
  /// Tasks that have not begun are dropped.
  ~CopyTeam();
  void add(Kind kind, std::function<void()> task);

  /// One core each, but for what submits to the device and waits for it; no more than it takes to keep the bus busy.
  static unsigned threads();

 private:
  void work(bool results_first);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_[3];
  bool ending_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace sycl_mat
