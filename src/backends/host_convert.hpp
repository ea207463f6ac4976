// Runs of stored numbers to the accumulator's type and back, Wide::width at a time. Included, like host_kernel.hpp, after the instruction
// set was switched on.

namespace sycl_mat::host {
namespace {

template <class In, class Acc>
void widen(const In* from, index_t count, Acc* to) {
  index_t i = 0;
  for (; i + Wide::width <= count; i += Wide::width) Wide::widen(from + i, to + i);
  for (; i < count; ++i) to[i] = static_cast<Acc>(from[i]);
}
template <class Out>
void narrow(const float* from, index_t count, Out* to) {
  index_t i = 0;
  for (; i + Wide::width <= count; i += Wide::width) Wide::narrow(from + i, to + i);
  for (; i < count; ++i) to[i] = to_narrow<Out>(from[i]);
}

}  // namespace
}  // namespace sycl_mat::host
