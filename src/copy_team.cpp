#include "copy_team.hpp"

#include <algorithm>
#include <system_error>

namespace sycl_mat {

unsigned CopyTeam::threads() {
  constexpr unsigned most = 14, others = 2;
  const unsigned cores = std::thread::hardware_concurrency();
  return std::clamp(cores > others ? cores - others : 1, 1u, most);
}

CopyTeam::CopyTeam() {
  const unsigned count = threads();
  // Some look after results first, so that both directions of the bus are used while there is work for both.
  for (unsigned i = 0; i < count; ++i) try {
      workers_.emplace_back([this, first = i % 4 == (count < 4 ? 1 : 3)] { work(first); });
    } catch (const std::system_error&) {  // no more threads are to be had: fewer do as well
      if (workers_.empty()) throw;
      break;
    }
}

CopyTeam::~CopyTeam() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void CopyTeam::add(Kind kind, std::function<void()> task) {
  {
    const std::lock_guard guard(mutex_);
    tasks_[kind].push_back(std::move(task));
  }
  changed_.notify_one();
}

void CopyTeam::work(bool results_first) {
  const Kind order[] = {now, results_first ? out : in, results_first ? in : out};
  std::unique_lock guard(mutex_);
  while (true) {
    const auto kind = std::find_if(std::begin(order), std::end(order), [&](Kind k) { return !tasks_[k].empty(); });
    if (ending_) return;
    if (kind == std::end(order)) {
      changed_.wait(guard);
      continue;
    }
    const std::function<void()> task = std::move(tasks_[*kind].front());
    tasks_[*kind].pop_front();
    guard.unlock();
    task();
    guard.lock();
  }
}

}  // namespace sycl_mat
