// Step 1, naive: the definition of the product, one work-item a result.
//
//             k                    j                       j
//        ┌─────────┐          ┌────┬────┐             ┌────┬────┐
//        │         │          │    │    │             │    │    │
//      i ├─────────┤   ·    k │    │    │    =      i ├────■    │     ■ = Σ row i of A · column j of B
//        ├─────────┤          │    │    │             │         │
//        └─────────┘          └────┴────┘             └─────────┘
//
// Every result reads a whole row of A and a whole column of B from global memory: 2·k loads for 2·k operations. Neighbouring
// work-items read the same row or neighbouring columns, so caches help, but nothing here makes sure of it. Step 2 does.
#include "device.hpp"

namespace sycl_mat {

KERNEL(3) naive(const in_t* a, const in_t* b, const out_t* c, out_t* d, const acc_t* bias, void*, Args g) {
  constexpr int GROUP = 16;  // work-groups of 16 × 16
  const auto [a0, b0, c0, d0] = matrices(a, b, c, d, g, group_id(2));
  const index i = index(group_id(1)) * GROUP + local_id(1);
  const index j = index(group_id(0)) * GROUP + local_id(0);
  if (i >= g.m || j >= g.n) return;  // the grid of work-groups hangs over the edges

  acc_t sum = 0;
  for (index p = 0; p < g.k; ++p) sum = multiply_add(widen(a0[at_a(g, i, p)]), widen(b0[at_b(g, p, j)]), sum);
  d0[i * g.ldd + j] = epilogue(sum, i, j, c0, bias, g);
}

}  // namespace sycl_mat
