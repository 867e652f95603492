// Unaligned little-endian loads.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace thresher::io {

template <class Word>
inline Word load(const char* p) {
  Word word;
  std::memcpy(&word, p, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    else word = __builtin_bswap32(word);
  }
  return word;
}

// Number of readable bytes before and after a text that is parsed. The first byte after the text is
// a newline.
inline constexpr std::size_t padding = 64;

}  // namespace thresher::io
