// A float32 as two TF32 numbers (11 bits of mantissa each), and which ones cannot be.
//
// To be included where INLINE is known.
#pragma once

#include "ptx.hpp"

namespace sycl_mat {

inline unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }

/// x as two TF32 numbers. `big` is rounded to the nearest; the units ignore the low 13 bits of `small`.
INLINE void split(float x, unsigned& big, unsigned& small) {
  big = (bits_of(x) + 0x1000) & 0xffffe000;
  small = bits_of(x - __builtin_bit_cast(float, big));
}
/// Other than zero where x has bits below 2⁻¹³⁶: only then is x · 2⁻¹³ rounded. (By multiply-adds, because integer operations are what
/// the kernels are short of.) Larger numbers than keeps_all_bits have none, so that the least of many is looked at first.
INLINE unsigned lost_bits(float x) { return bits_of(multiply_add(x * 0x1p-13f, -0x1p13f, x)); }
constexpr float keeps_all_bits = 0x1p-112f;
INLINE float smaller(float least, float x) { return __builtin_fminf(least, __builtin_fabsf(x)); }
constexpr unsigned a_nan = 0x7fffffff;

}  // namespace sycl_mat
