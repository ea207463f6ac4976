// Runs products for the tuner: operands on the device, times of launches, proofs against the oracle.
#pragma once

#include <span>

#include "context.hpp"
#include "kernel.hpp"
#include "sycl_mat/tuner.hpp"

namespace sycl_mat {

/// A problem as the tuner's public interface describes it, with operands at no address yet and the least leading dimensions.
Problem make_problem(const TuneProblem& p);

/// Operands for a set of problems of one element type: one allocation an operand, as large as the largest problem needs, filled with
/// numbers of ordinary size. Problems are measured one after the other, so they share it.
class Workbench {
 public:
  /// Throws OutOfMemoryError.
  Workbench(Context::State& context, std::span<const TuneProblem> problems);
  ~Workbench();
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;

  /// The problem with its operands' addresses.
  Problem problem(const TuneProblem& p) const;

  /// Seconds of one launch, from `launches` launched back to back. Throws DeviceError.
  double time(const Plan& plan, const Program& program, const Problem& p, int launches);

 private:
  /// Where an operand begins in its block. What malloc and NumPy return, and a processor's kernels read in place, is aligned to 16 bytes
  /// and no more: vectors then straddle cache lines, which costs sets that read B in place up to 5 % (they would win here, and lose there).
  std::size_t shift() const;
  void* data(int operand) const;

  Context::State& context_;
  void* operands_[3] = {nullptr, nullptr, nullptr};
};

/// The time of a candidate: warm-up, then the least of some rounds; ends early where it cannot come near `best` any more.
///
/// Why the least: on a shared machine whatever disturbs (another process, an interrupt, a cold cache, a clock that has not risen) makes a
/// run longer, never shorter, so the least is the estimate with the smallest error of what the constants can do; a mean measures the
/// neighbours. Which of the best few is really better is decided later, in turns, see FinalRounds in tuner.cpp.
double least_time(Workbench& bench, const Plan& plan, const Program& program, const Problem& p, double best, int rounds = 5);

/// How many launches take about `seconds` when one takes `one`.
int launches_for(double seconds, double one);

/// Runs the kernel with these constants on small problems of this layout and dtype whose sizes leave remainders against every block, and on
/// K = 1, with guard cells around D; integers small enough for exact sums are compared bit for bit with the host's products. Returns what
/// is wrong, empty: nothing. Throws CompileError, DeviceError.
std::string prove(Context::State& context, const Kernel& kernel, const Params& params, const TuneProblem& like);

}  // namespace sycl_mat
