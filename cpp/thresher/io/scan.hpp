// Scans text 16 bytes at a time with SSE2.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace thresher::io {

// Loops over windows are compiled twice: once for machines with AVX2 and BMI, where one instruction
// replaces two or three, and once for all others. The functions that they call must be inlined, as
// they would otherwise be compiled only once.
#define THRESHER_INLINE [[gnu::always_inline]] inline
#define THRESHER_INLINED __attribute__((always_inline))  // for lambdas
#if defined(__x86_64__) && defined(__GNUC__)
#define THRESHER_MODERN [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
inline bool has_lzcnt() {  // clang 14 has no __builtin_cpu_supports("lzcnt")
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & bit_LZCNT);
}
inline bool is_modern() {
  static const bool modern = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                             __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
                             has_lzcnt();
  return modern;
}
#else
#define THRESHER_MODERN
inline bool is_modern() { return false; }
#endif

}  // namespace thresher::io

#if defined(__SSE2__)

#include <emmintrin.h>

#include <cstdint>
#include <utility>

#include "thresher/io/number.hpp"

namespace thresher::io {

// Position of the lowest set bit; at least one bit must be set.
THRESHER_INLINE std::size_t place(std::uint64_t bits) {
  return static_cast<unsigned>(__builtin_ctzll(bits));
}

// A bit for each of the 64 bytes at p: whether it is special. `special` tests 16 bytes at once.
template <class Special>
THRESHER_INLINE std::uint64_t window(const char* p, Special special) {
  const auto* const parts = reinterpret_cast<const __m128i*>(p);
  std::uint64_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes = special(_mm_loadu_si128(parts + i));
    bits |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(bytes))} << 16 * i;
  }
  return bits;
}

THRESHER_INLINE __m128i are_stops(__m128i bytes) {  // blanks and control characters
  return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
}

THRESHER_INLINE __m128i are(char c, __m128i bytes) {
  return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
}

// Finds which of the 16 bytes at p are not digits, and which are blanks or control characters.
inline void look(const char* p, std::uint32_t& others, std::uint32_t& stops) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const auto within = [](__m128i x, char bound) {
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(bound)), x)));
  };
  others = within(_mm_sub_epi8(bytes, _mm_set1_epi8('0')), 9) ^ 0xFFFF;
  stops = within(bytes, ' ');
}

THRESHER_INLINE __m128i are_digits(__m128i bytes) {
  const __m128i values = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
  return _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
}

THRESHER_INLINE __m128i two_words(const void* low, const void* high) {
  const __m128 half = _mm_castsi128_ps(_mm_loadl_epi64(static_cast<const __m128i*>(low)));
  return _mm_castps_si128(_mm_loadh_pi(half, static_cast<const __m64*>(high)));
}

// The numbers in the last `a_count` and `b_count` bytes of two words; all these bytes are digits.
THRESHER_INLINE std::pair<std::uint32_t, std::uint32_t> two_numbers(__m128i x, std::size_t a_count,
                                                                    std::size_t b_count) {
  x = _mm_and_si128(x, two_words(&digit_masks[a_count], &digit_masks[b_count]));
  const __m128i tens = _mm_mullo_epi16(_mm_and_si128(x, _mm_set1_epi16(0xFF)), _mm_set1_epi16(10));
  x = _mm_add_epi16(tens, _mm_srli_epi16(x, 8));
  x = _mm_madd_epi16(x, _mm_set1_epi32(1 << 16 | 100));
  x = _mm_packs_epi32(x, x);
  x = _mm_madd_epi16(x, _mm_set1_epi32(1 << 16 | 10000));
  const auto numbers = static_cast<std::uint64_t>(_mm_cvtsi128_si64(x));
  return {static_cast<std::uint32_t>(numbers), static_cast<std::uint32_t>(numbers >> 32)};
}

// The numbers in the `a_count` digits before a and the `b_count` digits before b, each at most 8.
inline std::pair<std::uint32_t, std::uint32_t> two_numbers(const char* a, std::size_t a_count,
                                                           const char* b, std::size_t b_count) {
  return two_numbers(two_words(a - 8, b - 8), a_count, b_count);
}

// The 8 bytes before p, without the point that is `behind` bytes before p; 0: there is no point.
THRESHER_INLINE std::uint64_t without_point(const char* p, std::size_t behind) {
  static constexpr std::uint64_t kept[9] = {0xFFFFFFFFFFFFFFFFu, 0,
                                            0xFF00000000000000u, 0xFFFF000000000000u,
                                            0xFFFFFF0000000000u, 0xFFFFFFFF00000000u,
                                            0xFFFFFFFFFF000000u, 0xFFFFFFFFFFFF0000u,
                                            0xFFFFFFFFFFFFFF00u};
  const auto word = load<std::uint64_t>(p - 8);
  return ((word ^ word << 8) & kept[behind]) ^ word << 8;
}

// Parses a number of up to 8 digits before the point and 8 after it, without sign or exponent, that
// ends with a blank or a control character; p moves to that byte. Reads 16 bytes.
inline bool parse_short(const char*& p, double& value) {
  std::uint32_t others, stops;
  look(p, others, stops);
  if (stops == 0) return false;
  const auto size = static_cast<std::size_t>(__builtin_ctz(stops));
  const auto point = static_cast<std::size_t>(__builtin_ctz(others));
  if (point - 1 >= 8) return false;
  if (point == size) {
    value = static_cast<double>(static_cast<std::int64_t>(digits_before(p + size, size)));
  } else {
    others &= others - 1;
    const std::size_t digits = size - point - 1;
    if (p[point] != '.' || digits - 1 >= 8 || (others ^ (others - 1)) != (stops ^ (stops - 1)))
      return false;
    const auto [whole, part] = two_numbers(p + point, point, p + size, digits);
    const std::uint64_t mantissa = whole * whole_powers_of_ten[digits] + part;
    if (mantissa >> 53) return false;
    value = static_cast<double>(static_cast<std::int64_t>(mantissa)) / powers_of_ten[digits];
  }
  p += size;
  return true;
}

}  // namespace thresher::io

#else

namespace thresher::io {

inline bool parse_short(const char*&, double&) { return false; }

}  // namespace thresher::io

#endif
