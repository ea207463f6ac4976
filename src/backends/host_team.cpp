#include "host_team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if __has_include(<pthread.h>)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace sycl_mat::host {
namespace {

/// More do not come in time for products of some microseconds.
constexpr int most_helpers = 3;
/// How long a helper looks out for the next product before it sleeps. Products in a loop follow each other within microseconds; waking a
/// sleeper takes about five. Longer would take the core from others.
constexpr auto look_out = std::chrono::microseconds(40);

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#endif
}

/// The processor that the calling thread is on, −1 where the platform does not say.
int processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Keeps a thread off one processor: a helper that the system wakes where its caller runs cannot come before the caller is done.
void keep_off([[maybe_unused]] std::thread::native_handle_type thread, [[maybe_unused]] int off) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 2 || !CPU_ISSET(off, &set)) return;
  CPU_CLR(off, &set);
  pthread_setaffinity_np(thread, sizeof(set), &set);
#endif
}

struct Team {
  std::mutex owner;                       ///< held while a product uses the team
  std::atomic<int> generation{0};         ///< counts products; helpers sleep on it
  std::atomic<bool> open{false};          ///< the present product has chunks to give away
  std::atomic<int> inside{0};             ///< helpers that may be looking at the present product
  std::atomic<int> wanted{0};             ///< helpers that may take part
  alignas(64) std::atomic<int> taken{0};  ///< chunks that somebody has begun
  std::atomic<int> from_end{0};           ///< … of which helpers took so many
  alignas(64) int chunks = 0;
  void (*chunk)(void*, int) = nullptr;
  void* context = nullptr;
  std::vector<std::thread> helpers;  ///< that were started
  int owner_processor = -1;          ///< which they keep off

  bool take() { return taken.fetch_add(1, std::memory_order_relaxed) < chunks; }
  /// The caller works from the first chunk on, helpers from the last one back: when a product is repeated, each finds in its cache what it
  /// had there the last time.
  void work_from_begin() {
    for (int i = 0; take(); ++i) chunk(context, i);
  }
  void work_from_end() {
    while (take()) chunk(context, chunks - 1 - from_end.fetch_add(1, std::memory_order_relaxed));
  }

  void help(int number) {
    int seen = generation.load();
    for (;;) {
      const auto begin = std::chrono::steady_clock::now();
      while (generation.load(std::memory_order_acquire) == seen) {
        for (int i = 0; i < 32 && generation.load(std::memory_order_relaxed) == seen; ++i) pause();
        if (std::chrono::steady_clock::now() - begin > look_out) generation.wait(seen);
      }
      seen = generation.load();
      // Either the owner sees this helper inside, or the helper sees that the product is closed: both are sequentially consistent.
      inside.fetch_add(1);
      if (open.load() && number < wanted.load(std::memory_order_relaxed)) work_from_end();
      inside.fetch_sub(1);
    }
  }

  void ready(int count) {
    while (static_cast<int>(helpers.size()) < count) {
      helpers.emplace_back([this, number = static_cast<int>(helpers.size())] { help(number); });
      owner_processor = -1;
    }
    if (const int here = processor(); here != owner_processor) {
      for (std::thread& helper : helpers) keep_off(helper.native_handle(), here);
      owner_processor = here;
    }
  }
};

std::atomic<int> chosen{0};
std::atomic<bool> forked{false};

/// Never destroyed: its helpers run until the process ends.
Team& team() {
  static Team& one = *[] {
#if __has_include(<pthread.h>)
    // A child has no helpers, and must not count on any.
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
#endif
    return new Team;
  }();
  return one;
}

}  // namespace

void set_threads(int count) { chosen = std::max(0, count); }

int threads() {
  static const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int count = chosen.load(std::memory_order_relaxed);
  return count > 0 ? std::min(count, available) : available;
}

void run_in_team(int chunks, void (*chunk)(void* context, int i), void* context) {
  const int helpers = std::min({threads() - 1, most_helpers, chunks - 1});
  Team& t = team();
  std::unique_lock owner(t.owner, std::defer_lock);
  if (helpers <= 0 || forked.load(std::memory_order_relaxed) || !owner.try_lock()) {
    for (int i = 0; i < chunks; ++i) chunk(context, i);
    return;
  }
  t.ready(helpers);
  t.chunks = chunks;
  t.chunk = chunk;
  t.context = context;
  t.wanted.store(helpers, std::memory_order_relaxed);
  t.taken.store(0, std::memory_order_relaxed);
  t.from_end.store(0, std::memory_order_relaxed);
  t.open.store(true);
  t.generation.fetch_add(1);
  t.generation.notify_all();
  t.work_from_begin();
  t.open.store(false);
  while (t.inside.load() > 0) pause();
}

}  // namespace sycl_mat::host
