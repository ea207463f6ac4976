// A few helpers for products that are too large for one thread and too small for a launch.
#pragma once

namespace sycl_mat::host {

/// Runs chunk(context, i) once for every i in [0, chunks), on the calling thread and on helpers that come in time, and returns when all are
/// done. Nothing waits for a helper that has not begun: alone, the calling thread does everything. One team a process: a second caller at
/// the same time works alone. Chunks must not throw.
void run_in_team(int chunks, void (*chunk)(void* context, int i), void* context);

/// As many threads as a product may use, the caller included; 0: as many as the process may run on. Also in force for a running team.
void set_threads(int count);

/// Threads that the next product may use, the caller included.
int threads();

template <class Chunk>
void run_in_team(int chunks, const Chunk& chunk) {
  run_in_team(chunks, [](void* context, int i) { (*static_cast<const Chunk*>(context))(i); }, const_cast<Chunk*>(&chunk));
}

}  // namespace sycl_mat::host
