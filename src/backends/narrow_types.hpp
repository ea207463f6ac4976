// float16 and bfloat16 on the host, by their bits: no compiler extension is needed.
#pragma once

#include <bit>
#include <cstdint>

namespace sycl_mat {

struct bfloat16_bits {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

struct float16_bits {
  std::uint16_t bits;
  explicit operator float() const {
    const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    // Subnormal: mantissa · 2^-24, which a float holds as a normal number.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
};

/// To nearest, ties to even.
inline bfloat16_bits to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// To nearest, ties to even; beyond the largest: infinity.
inline float16_bits to_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<std::uint16_t>(sign | 0x7c00)};  // 65520 rounds to infinity
  if (magnitude < 0x38800000) {
    // Subnormal result: adding 0.5 puts its last bit where a float rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000))};
  }
  const std::uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
  return {static_cast<std::uint16_t>(sign | rounded >> 13)};
}

template <class Out>
Out to_narrow(float x);
template <>
inline float16_bits to_narrow(float x) {
  return to_float16(x);
}
template <>
inline bfloat16_bits to_narrow(float x) {
  return to_bfloat16(x);
}

}  // namespace sycl_mat
