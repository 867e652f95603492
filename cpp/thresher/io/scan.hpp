// 16 bytes of a text at a time, where the machine has SSE2.
#pragma once

#if defined(__SSE2__)

#include <emmintrin.h>

#include <cstdint>
#include <utility>

#include "number.hpp"

namespace thresher::io {

// Texts can be looked at in windows.
inline constexpr bool windows = true;
inline constexpr std::size_t window_size = 64;

// For each byte of the window at p whether it is special, as `special` says of 16 of them.
template <class Special>
inline std::uint64_t window(const char* p, Special special) {
  const auto part = [&](int i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    return std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(special(bytes)))} << 16 * i;
  };
  return part(0) | part(1) | part(2) | part(3);
}

inline __m128i are_stops(__m128i bytes) {  // blanks and control characters
  return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
}

inline __m128i are(char c, __m128i bytes) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); }

// The 16 bytes at p: which are no digits, and which are blanks or control characters.
inline void look(const char* p, std::uint32_t& others, std::uint32_t& stops) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const auto within = [](__m128i x, char bound) {
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(bound)), x)));
  };
  others = within(_mm_sub_epi8(bytes, _mm_set1_epi8('0')), 9) ^ 0xFFFF;
  stops = within(bytes, ' ');
}

// The numbers of `a_count` digits before a and of `b_count` before b, both at most 8.
inline std::pair<std::uint32_t, std::uint32_t> two_numbers(const char* a, std::size_t a_count,
                                                           const char* b, std::size_t b_count) {
  const auto both = [](const void* low, const void* high) {
    const __m128 half = _mm_castsi128_ps(_mm_loadl_epi64(static_cast<const __m128i*>(low)));
    return _mm_castps_si128(_mm_loadh_pi(half, static_cast<const __m64*>(high)));
  };
  __m128i x = both(a - 8, b - 8);
  x = _mm_and_si128(x, both(&digit_masks[a_count], &digit_masks[b_count]));
  const __m128i tens = _mm_mullo_epi16(_mm_and_si128(x, _mm_set1_epi16(0xFF)), _mm_set1_epi16(10));
  x = _mm_add_epi16(tens, _mm_srli_epi16(x, 8));
  x = _mm_madd_epi16(x, _mm_set1_epi32(1 << 16 | 100));
  x = _mm_packs_epi32(x, x);
  x = _mm_madd_epi16(x, _mm_set1_epi32(1 << 16 | 10000));
  const auto numbers = static_cast<std::uint64_t>(_mm_cvtsi128_si64(x));
  return {static_cast<std::uint32_t>(numbers), static_cast<std::uint32_t>(numbers >> 32)};
}

// A number of up to 8 digits before the point and 8 behind it, without sign or exponent, which ends with a
// blank or a control character; p moves there. Reads 16 bytes.
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
