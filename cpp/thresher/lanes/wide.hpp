// N numbers, one per lane, in the widest vectors of the level this file is compiled for.
//
// Included only by kernels_of_level.hpp, which is compiled once per vector level (THRESHER_LEVEL, a
// namespace, and THRESHER_BYTES, the size of a vector). A Wide is an array of native vectors,
// because compilers silently split wider vectors into single numbers. Everything is inlined, so
// that the linker cannot replace code of one level by that of another. All levels are
// bit-identical: no operation mixes lanes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define THRESHER_INLINE [[gnu::always_inline]] inline

namespace thresher::lanes::THRESHER_LEVEL {

template <class T, std::size_t N>
struct Wide {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static constexpr std::size_t size = N;
  static constexpr std::size_t bytes =
      N * sizeof(T) < THRESHER_BYTES ? N * sizeof(T) : THRESHER_BYTES;
  static constexpr std::size_t width = bytes / sizeof(T), parts = N / width;
  static_assert(bytes >= 16 && width * parts == N);
  typedef T Vector __attribute__((vector_size(bytes)));
  typedef Bits BitVector __attribute__((vector_size(bytes)));

  Vector part[parts];

  template <class F>
  THRESHER_INLINE static Wide make(F&& f) {
    return make(f, std::make_index_sequence<parts>{});
  }
  THRESHER_INLINE static Wide all(T value) {
    return make([=](std::size_t) { return value - Vector{}; });
  }
  THRESHER_INLINE static Wide load(const T* from) {
    return make([=](std::size_t i) {
      Vector v;
      std::memcpy(&v, from + i * width, sizeof v);
      return v;
    });
  }
  THRESHER_INLINE void store(T* to) const {
    for (std::size_t i = 0; i < parts; ++i) std::memcpy(to + i * width, &part[i], sizeof part[i]);
  }

  THRESHER_INLINE friend Wide operator+(const Wide& a, const Wide& b) {
    return make([&](std::size_t i) { return a.part[i] + b.part[i]; });
  }
  THRESHER_INLINE friend Wide operator-(const Wide& a, const Wide& b) {
    return make([&](std::size_t i) { return a.part[i] - b.part[i]; });
  }
  THRESHER_INLINE friend Wide operator*(const Wide& a, const Wide& b) {
    return make([&](std::size_t i) { return a.part[i] * b.part[i]; });
  }
  THRESHER_INLINE friend Wide operator/(const Wide& a, const Wide& b) {
    return make([&](std::size_t i) { return a.part[i] / b.part[i]; });
  }
  THRESHER_INLINE Wide& operator+=(const Wide& other) { return *this = *this + other; }

  THRESHER_INLINE static Vector sign_bit() {
    return (Vector)((BitVector{} + 1) << (8 * sizeof(T) - 1));
  }

  // sgn(v) (|v| - a)_+ for a >= 0, as in core/pack.hpp: v minus v clipped to [-a, a].
  THRESHER_INLINE friend Wide soft(const Wide& v, const Wide& a) {
    return v - clip(v, a.make([&](std::size_t i) { return -a.part[i]; }), a);
  }
  THRESHER_INLINE friend Wide clip(const Wide& v, const Wide& low, const Wide& high) {
    return make([&](std::size_t i) {
      const Vector above = v.part[i] > low.part[i] ? v.part[i] : low.part[i];
      return above < high.part[i] ? above : high.part[i];
    });
  }
  // As in core/pack.hpp.
  THRESHER_INLINE friend Wide away_from_zero(const Wide& v, const Wide& a) {
    return make([&](std::size_t i) {
      const BitVector sign = (BitVector)v.part[i] & (BitVector)sign_bit();
      const Vector moved = v.part[i] + (Vector)((BitVector)a.part[i] | sign);
      return (Vector)((BitVector)moved & (BitVector)(v.part[i] != Vector{}));
    });
  }
  THRESHER_INLINE friend Wide absolute(const Wide& v) {
    return make(
        [&](std::size_t i) { return (Vector)((BitVector)v.part[i] & ~(BitVector)sign_bit()); });
  }
  // a where x > y, else b.
  THRESHER_INLINE friend Wide where_greater(const Wide& x, const Wide& y, const Wide& a,
                                            const Wide& b) {
    return make([&](std::size_t i) { return x.part[i] > y.part[i] ? a.part[i] : b.part[i]; });
  }
  // a where x <= y, else b; b also where x is NaN.
  THRESHER_INLINE friend Wide where_not_greater(const Wide& x, const Wide& y, const Wide& a,
                                                const Wide& b) {
    return make([&](std::size_t i) { return x.part[i] <= y.part[i] ? a.part[i] : b.part[i]; });
  }
  THRESHER_INLINE friend Wide operator|(const Wide& a, const Wide& b) {  // bitwise
    return make(
        [&](std::size_t i) { return (Vector)((BitVector)a.part[i] | (BitVector)b.part[i]); });
  }

  // For a line whose last number is a stamp: load_without_last replaces the stamp by 0, and
  // with_last sets the bits of a stamp again, where the last number is 0.
  THRESHER_INLINE static Wide load_without_last(const T* from) {
    return make([=](std::size_t i) {
      Vector v;
#if defined(__AVX512F__)
      if constexpr (bytes == 64) {  // a masked load costs nothing extra
        if (i + 1 == parts) {
          if constexpr (sizeof(T) == 4) v = (Vector)_mm512_maskz_loadu_ps(0x7FFF, from + i * width);
          else v = (Vector)_mm512_maskz_loadu_pd(0x7F, from + i * width);
          return v;
        }
      }
#endif
      std::memcpy(&v, from + i * width, sizeof v);
      if (i + 1 == parts) {
        BitVector mask = BitVector{} - 1;
        mask[width - 1] = 0;
        v = (Vector)((BitVector)v & mask);
      }
      return v;
    });
  }
  THRESHER_INLINE Wide with_last(const BitVector& bits) const {
    Wide changed = *this;
    changed.part[parts - 1] = (Vector)((BitVector)part[parts - 1] | bits);
    return changed;
  }
  THRESHER_INLINE static BitVector last_bits(std::uint64_t bits) {
    BitVector vector{};
    vector[width - 1] = static_cast<Bits>(bits);
    return vector;
  }

  THRESHER_INLINE friend Wide sqrt(const Wide& a) {
    return make([&](std::size_t i) {
#if defined(__AVX512F__)
      if constexpr (bytes == 64 && sizeof(T) == 4)
        return (Vector)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)a.part[i]);
      else if constexpr (bytes == 64) return (Vector)_mm512_maskz_sqrt_pd(0xFF, (__m512d)a.part[i]);
      else
#endif
#if defined(__AVX__)
          if constexpr (bytes == 32 && sizeof(T) == 4)
        return (Vector)_mm256_sqrt_ps((__m256)a.part[i]);
      else if constexpr (bytes == 32) return (Vector)_mm256_sqrt_pd((__m256d)a.part[i]);
      else
#endif
#if defined(__SSE2__)
          if constexpr (bytes == 16 && sizeof(T) == 4)
        return (Vector)_mm_sqrt_ps((__m128)a.part[i]);
      else return (Vector)_mm_sqrt_pd((__m128d)a.part[i]);
#else
      Vector root = a.part[i];
      for (std::size_t k = 0; k < width; ++k) root[k] = __builtin_sqrt(root[k]);
      return root;
#endif
    });
  }

 private:
  template <class F, std::size_t... I>
  THRESHER_INLINE static Wide make(F& f, std::index_sequence<I...>) {
    return {{f(I)...}};  // an expansion: a loop would leave the parts in memory
  }
};

}  // namespace thresher::lanes::THRESHER_LEVEL
