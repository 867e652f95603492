// Finds names and numbers in VW text.
#pragma once

#include <bit>
#include <cstdint>

#include "thresher/io/number.hpp"
#include "thresher/io/parser.hpp"
#include "thresher/io/scan.hpp"

namespace thresher::io::vw {

// Whether a name or a number ends at p.
inline bool ends(const char* p) { return is_blank(*p) || *p == '|' || at_end(p); }

// The first blank, control character, colon or bar at or after p.
inline const char* find_special(const char* p) {
#if defined(__SSE2__)
  for (;; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
    const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(':')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('|')));
    const auto found = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(low, marks)));
    if (found) return p + std::countr_zero(found);
  }
#else
  while (static_cast<unsigned char>(*p) > ' ' && *p != ':' && *p != '|') ++p;
  return p;
#endif
}

// The end of a name. A name may contain control characters other than tab, NUL and line ends.
inline const char* end_of_name(const char* p) {
  for (;; ++p) {
    p = find_special(p);
    if (ends(p) || *p == ':' || *p == '\0') [[likely]]
      return p;
  }
}

// Whether [p, end) is a decimal integer below 2^64 without sign or leading zeros.
inline bool is_plain(const char* p, const char* end, std::uint64_t& number) {
  if (!is_digit(*p) || (*p == '0' && end - p > 1) || end - p > 20) return false;
  return parse_whole(p, number) == Number::ok && p == end;
}

// Parses a number of any form that ends at `stop`. Not inlined, because it is rare.
[[gnu::noinline]] inline bool parse_other(const char* p, const char* stop, double& number) {
  const bool negative = *p == '-';
  const char* q = p + negative;
  if (parse_short(q, number)) {
    if (negative) number = -number;
    return q == stop;
  }
  q = p;
  return parse_double(q, number) == Number::ok && q == stop;
}

}  // namespace thresher::io::vw
