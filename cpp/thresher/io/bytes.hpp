// Loads of a few bytes at any address, the first byte least significant.
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

// What may be read before and behind a text that is parsed. Behind it stands first of all a newline.
inline constexpr std::size_t padding = 64;

}  // namespace thresher::io
