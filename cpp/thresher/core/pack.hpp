// Four coordinates at a time.
//
// The coordinates of a row are processed in packs of four. First their cells are loaded, pending
// events are applied, and the weights are multiplied by x; later the step is made and the cells are
// stored. All this happens in registers. With arrays in between it takes 1.2-1.3 times as long: a
// vector load of numbers that were just stored one by one waits for the store buffer. A pack
// consists of 16-byte vectors, which every 64-bit machine has, so sums over packs have the same
// order on all machines.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "thresher/core/cell.hpp"

namespace thresher {

constexpr std::size_t pack_size = 4;

// A whole number as wide as a Real: for a stamp beside a Real in a cell, and for masks of packs.
template <class Real>
using Whole = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;

// Four cells. They are named members, because an array would also be written to memory.
template <class T>
struct Four {
  T a{}, b{}, c{}, d{};
  [[gnu::always_inline]] const T& operator[](std::size_t i) const {
    return i == 0 ? a : i == 1 ? b : i == 2 ? c : d;
  }
  [[gnu::always_inline]] T& operator[](std::size_t i) {
    return i == 0 ? a : i == 1 ? b : i == 2 ? c : d;
  }
};

template <class Real>
struct Pack {
  using Bits = Whole<Real>;
  typedef Real Vector __attribute__((vector_size(16)));
  typedef Bits BitVector __attribute__((vector_size(16)));
  static constexpr std::size_t width = 16 / sizeof(Real), parts = pack_size / width;

  Vector part[parts];

  static Pack all(Real value) {
    return make([=](std::size_t) { return Vector{} + value; });
  }
  static Pack load(const Real* from) {
    return make([=](std::size_t i) {
      Vector v;
      std::memcpy(&v, from + i * width, sizeof v);
      return v;
    });
  }
  // The first n >= 1 numbers, then zeros; assembled in registers, like all packs.
  [[gnu::always_inline]] static Pack load(const Real* from, std::size_t n) {
    const Pack padded = of([=](std::size_t i) { return from[std::min(i, n - 1)]; });
    return make([&](std::size_t i) {
      BitVector lane;
      if constexpr (width == 4) lane = BitVector{0, 1, 2, 3};
      else lane = BitVector{0, 1} + static_cast<Bits>(2 * i);
      return (Vector)((BitVector)padded.part[i] & (lane < static_cast<Bits>(n)));
    });
  }
  void store(Real* to) const {
    for (std::size_t i = 0; i < parts; ++i) std::memcpy(to + i * width, &part[i], sizeof part[i]);
  }

  // f(0), f(1), f(2), f(3), put together in registers.
  template <class F>
  [[gnu::always_inline]] static Pack of(F&& f) {
    return make([&](std::size_t i) {
      if constexpr (width == 4) return Vector{f(0), f(1), f(2), f(3)};
      else return Vector{f(2 * i), f(2 * i + 1)};
    });
  }

  Real operator[](std::size_t k) const { return part[k / width][k % width]; }

  Pack& operator+=(const Pack& other) { return *this = *this + other; }
  friend Pack operator+(const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return a.part[i] + b.part[i]; });
  }
  friend Pack operator-(const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return a.part[i] - b.part[i]; });
  }
  friend Pack operator*(const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return a.part[i] * b.part[i]; });
  }
  friend Pack operator/(const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return a.part[i] / b.part[i]; });
  }

  friend Pack operator<<(const Pack& a, int bits)
    requires std::is_integral_v<Real>
  {
    return make([&](std::size_t i) { return a.part[i] << bits; });
  }

  // sgn(v) (|v| - a)_+ , as soft() in shrinkage/soft_threshold.hpp.
  friend Pack soft(const Pack& v, const Pack& a) {
    return make([&](std::size_t i) {
      const BitVector sign = (BitVector)v.part[i] & ((BitVector{} + 1) << (8 * sizeof(Real) - 1));
      const Vector left = (Vector)((BitVector)v.part[i] ^ sign) - a.part[i];
      return (Vector)(((BitVector)left & (left > Vector{})) | sign);
    });
  }

  // sgn(v) (|v| + a) for a >= 0, and 0 for v = 0: the inverse of soft() where that is not 0.
  friend Pack away_from_zero(const Pack& v, const Pack& a) {
    return make([&](std::size_t i) {
      const BitVector sign = (BitVector)v.part[i] & ((BitVector{} + 1) << (8 * sizeof(Real) - 1));
      const Vector moved = v.part[i] + (Vector)((BitVector)a.part[i] | sign);
      return (Vector)((BitVector)moved & (v.part[i] != Vector{}));
    });
  }

  friend Pack absolute(const Pack& v) {
    return make([&](std::size_t i) {
      return (Vector)((BitVector)v.part[i] & ~((BitVector{} + 1) << (8 * sizeof(Real) - 1)));
    });
  }

  friend Pack smaller(const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return choose(a.part[i] < b.part[i], a.part[i], b.part[i]); });
  }

  // a where x is not 0, else b.
  friend Pack where(const Pack& x, const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return choose(x.part[i] != Vector{}, a.part[i], b.part[i]); });
  }

  friend Pack sqrt(const Pack& a) {
    return make([&](std::size_t i) {
#if defined(__SSE2__)
      if constexpr (sizeof(Real) == 4) return (Vector)_mm_sqrt_ps((__m128)a.part[i]);
      else return (Vector)_mm_sqrt_pd((__m128d)a.part[i]);
#else
      Vector root = a.part[i];
      for (std::size_t k = 0; k < width; ++k) root[k] = std::sqrt(root[k]);
      return root;
#endif
    });
  }

  // v where not a <= b, else 0.
  friend Pack beyond(const Pack& a, const Pack& b, const Pack& v) {
    return make(
        [&](std::size_t i) { return (Vector)((BitVector)v.part[i] & ~(a.part[i] <= b.part[i])); });
  }

  // 1 where a is not 0, else 0.
  friend Pack<Bits> nonzero(const Pack& a) {
    return Pack<Bits>::make([&](std::size_t i) { return (a.part[i] != Vector{}) & 1; });
  }

  // Functions of whole numbers k: from() converts them; where_positive() is a where k > 0, else b;
  // if_positive() is a where k > 0, else 0; unless_negative() is a where k >= 0, else 0.
  static Pack from(const Pack<Bits>& k) {
    return make([&](std::size_t i) { return __builtin_convertvector(k.part[i], Vector); });
  }
  static Pack where_positive(const Pack<Bits>& k, const Pack& a, const Pack& b) {
    return make([&](std::size_t i) { return choose(k.part[i] > 0, a.part[i], b.part[i]); });
  }
  static Pack if_positive(const Pack<Bits>& k, const Pack& a) {
    return make([&](std::size_t i) { return (Vector)((BitVector)a.part[i] & (k.part[i] > 0)); });
  }
  static Pack unless_negative(const Pack<Bits>& k, const Pack& a) {
    return make([&](std::size_t i) { return (Vector)((BitVector)a.part[i] & (k.part[i] >= 0)); });
  }

  // The sum of the four numbers, in double precision: (0 + 2) + (1 + 3).
  double total() const {
    const auto lane = [this](std::size_t k) { return static_cast<double>((*this)[k]); };
    return (lane(0) + lane(2)) + (lane(1) + lane(3));
  }

  template <class F>
  [[gnu::always_inline]] static Pack make(F&& f) {
    if constexpr (parts == 1)
      return {{f(0)}};  // written out: a loop would leave the parts in memory
    else return {{f(0), f(1)}};
  }

 private:
  static Vector choose(BitVector mask, Vector a, Vector b) {
    return (Vector)(((BitVector)a & mask) | ((BitVector)b & ~mask));
  }
};

template <class To, class From>
[[gnu::always_inline]] inline Pack<To> converted(const Pack<From>& from) {
  if constexpr (std::is_same_v<To, From>) return from;
  else return Pack<To>::of([&](std::size_t k) { return static_cast<To>(from[k]); });
}

// The numbers of four cells with one number each, and back.
template <class Real>
[[gnu::always_inline]] inline Pack<Real> whole(const Four<Single<Real>>& cells) {
  return Pack<Real>::of([&](std::size_t k) { return cells[k].value(); });
}
template <class Real>
[[gnu::always_inline]] inline void spread(const Pack<Real>& values, Four<Single<Real>>& cells) {
  for (std::size_t k = 0; k < pack_size; ++k) cells[k] = Single<Real>(values[k]);
}

// One half of four pairs: which = 0 the first numbers, 1 the second.
template <std::size_t which, class A, class B>
[[gnu::always_inline]] inline auto half(const Four<Pair<A, B>>& cells) {
  using Real = std::conditional_t<which == 0, A, B>;
  if constexpr (sizeof(Real) == 4) {
    typedef std::int64_t Words __attribute__((vector_size(16)));
    using Vector = typename Pack<Real>::Vector;
    constexpr int w = which;
    const Words low = {cells.a.word(), cells.b.word()}, high = {cells.c.word(), cells.d.word()};
    return Pack<Real>{{__builtin_shufflevector((Vector)low, (Vector)high, w, w + 2, w + 4, w + 6)}};
  } else {
    return Pack<Real>::of([&](std::size_t k) {
      if constexpr (which == 0) return cells[k].first();
      else return cells[k].second();
    });
  }
}

// Four pairs from two packs. B has the size of A.
template <class A, class B>
[[gnu::always_inline]] inline void zip(const Pack<A>& a, const Pack<B>& b,
                                       Four<Pair<A, B>>& cells) {
  if constexpr (sizeof(A) == 4) {
    typedef std::int64_t Words __attribute__((vector_size(16)));
    using Vector = typename Pack<A>::Vector;
    const Words low = (Words)__builtin_shufflevector(a.part[0], (Vector)b.part[0], 0, 4, 1, 5);
    const Words high = (Words)__builtin_shufflevector(a.part[0], (Vector)b.part[0], 2, 6, 3, 7);
    cells.a = std::bit_cast<Pair<A, B>>(low[0]), cells.b = std::bit_cast<Pair<A, B>>(low[1]);
    cells.c = std::bit_cast<Pair<A, B>>(high[0]), cells.d = std::bit_cast<Pair<A, B>>(high[1]);
  } else {
    for (std::size_t k = 0; k < pack_size; ++k) cells[k] = Pair<A, B>(a[k], b[k]);
  }
}

}  // namespace thresher
