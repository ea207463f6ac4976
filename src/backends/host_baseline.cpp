// The host path for any processor: arrays of four, which compilers turn into whatever vectors their target has.
#include <cmath>
#include <cstring>

#include "host_isa.hpp"

namespace sycl_mat::host {
namespace {

template <class T>
struct Vec {
  struct Type {
    T lane[4];
  };
  using Half = void;
  using Mask = int;
  static constexpr int width = 4, max_vectors = 2;
  static constexpr int max_rows(int) { return 4; }
  static inline Mask mask(int count) { return count; }
  static inline Type splat(T x) { return {{x, x, x, x}}; }
  static inline Type load(const T* p) {
    Type x;
    std::memcpy(x.lane, p, sizeof(x.lane));
    return x;
  }
  static inline Type load_some(const T* p, Mask count) {
    Type x = splat(0);
    for (int l = 0; l < count; ++l) x.lane[l] = p[l];
    return x;
  }
  static inline void store(T* p, Type x) { std::memcpy(p, x.lane, sizeof(x.lane)); }
  static inline void stream(T* p, Type x) { store(p, x); }
  static inline void store_some(T* p, Type x, Mask count) {
    for (int l = 0; l < count; ++l) p[l] = x.lane[l];
  }
  static inline T sum(Type x) { return (x.lane[0] + x.lane[2]) + (x.lane[1] + x.lane[3]); }
  static inline Type multiply_add(Type a, Type b, Type c) {
    for (int l = 0; l < 4; ++l) {
      if constexpr (std::is_integral_v<T>)  // wraps, as on the devices
        c.lane[l] = T(std::make_unsigned_t<T>(a.lane[l]) * std::make_unsigned_t<T>(b.lane[l]) + std::make_unsigned_t<T>(c.lane[l]));
      else
        c.lane[l] += a.lane[l] * b.lane[l];
    }
    return c;
  }
};

struct Wide {
  static constexpr index_t width = 1;
  template <class In, class Acc>
  static void widen(const In* from, Acc* to) {
    *to = static_cast<Acc>(*from);
  }
  template <class Out>
  static void narrow(const float* from, Out* to) {
    *to = to_narrow<Out>(*from);
  }
};

}  // namespace
}  // namespace sycl_mat::host

#include "host_convert.hpp"
#include "host_dots.hpp"
#include "host_kernel.hpp"
#include "host_rows.hpp"

namespace sycl_mat::host {
namespace {

/// Column after column of blocks that stay in the first cache.
template <class T>
void transpose(const T* from, index_t from_ld, index_t rows, index_t cols, T* to, index_t to_ld) {
  constexpr index_t block = 16;
  for (index_t c0 = 0; c0 < cols; c0 += block)
    for (index_t r0 = 0; r0 < rows; r0 += block) {
      const index_t c1 = c0 + block < cols ? c0 + block : cols, r1 = r0 + block < rows ? r0 + block : rows;
      for (index_t c = c0; c < c1; ++c)
        for (index_t r = r0; r < r1; ++r) to[c * to_ld + r] = from[r * from_ld + c];
    }
}

}  // namespace

const Isa baseline_isa = {"baseline",
                          [] { return true; },
                          product<float>,
                          product<double>,
                          product<std::int32_t>,
                          dots<float>,
                          dots<double>,
                          scaled_rows<float>,
                          scaled_rows<double>,
                          rows_at_once,
                          [] {},
                          transpose<float>,
                          transpose<double>,
                          widen<float16_bits, float>,
                          widen<bfloat16_bits, float>,
                          widen<std::int8_t, std::int32_t>,
                          narrow<float16_bits>,
                          narrow<bfloat16_bits>};

}  // namespace sycl_mat::host
