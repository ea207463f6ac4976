// Keeps the calling thread off the processors that the CPU driver's workers are pinned to.
#pragma once

namespace sycl_mat {

/// The OpenCL CPU runtime pins its workers, one a processor, and lets the thread that waits compute too. A caller that happens to sit on
/// a worker's processor then takes turns with it, and the product takes twice as long on two cores. While an object of this class lives,
/// the calling thread is elsewhere, if there is an elsewhere; its mask is restored afterwards. Costs 20 ns where nothing is to do.
class CallerPlacement {
 public:
  explicit CallerPlacement(bool on_cpu_device);
  ~CallerPlacement();
  CallerPlacement(const CallerPlacement&) = delete;
  CallerPlacement& operator=(const CallerPlacement&) = delete;

 private:
  bool moved_ = false;
};

/// Learns where the workers are. Call once a kernel has run on the CPU device: the workers exist from then on.
void find_pinned_workers();

}  // namespace sycl_mat
