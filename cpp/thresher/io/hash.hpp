// The hash of feature names and the digest of blocks. Fixed for ever: models store keys made here.
//
// Both are built of one step: multiply two 64-bit words to 128 bits and xor the halves. Up to 16 bytes are
// two loads (which overlap) and two steps; long texts run in four lanes of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bytes.hpp"

namespace thresher::io {

namespace detail {

__extension__ using Wide = unsigned __int128;

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Fractional parts of the square roots of 2, 3, 5, 7, 11 and 13, made odd.
inline constexpr std::uint64_t salt[6] = {0x6A09E667F3BCC909u, 0xBB67AE8584CAA73Bu,
                                          0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
                                          0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu};

}  // namespace detail

inline std::uint64_t hash64(const char* p, std::size_t size) {
  using detail::fold, detail::salt;
  std::uint64_t a, b, h = salt[4];
  if (size <= 16) [[likely]] {
    if (size >= 8) {
      a = load<std::uint64_t>(p), b = load<std::uint64_t>(p + size - 8);
    } else if (size >= 4) {
      a = load<std::uint32_t>(p), b = load<std::uint32_t>(p + size - 4);
    } else if (size > 0) {
      const auto byte = [p](std::size_t i) -> std::uint64_t {
        return static_cast<unsigned char>(p[i]);
      };
      a = byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1), b = 0;
    } else {
      a = b = 0;
    }
  } else {
    std::size_t left = size;
    if (left > 64) {
      std::uint64_t lane[4] = {h, salt[1], salt[2], salt[3]};
      for (; left > 64; p += 64, left -= 64)
        for (int i = 0; i < 4; ++i)
          lane[i] = fold(load<std::uint64_t>(p + 16 * i) ^ salt[i],
                         load<std::uint64_t>(p + 16 * i + 8) ^ lane[i]);
      h = fold(lane[0] ^ salt[5], lane[1]) ^ fold(lane[2] ^ salt[5], lane[3]);
    }
    for (; left > 16; p += 16, left -= 16)
      h = fold(load<std::uint64_t>(p) ^ salt[0], load<std::uint64_t>(p + 8) ^ h);
    // the last 16 bytes, some of them for the second time
    a = load<std::uint64_t>(p + left - 16), b = load<std::uint64_t>(p + left - 8);
  }
  return fold(fold(a ^ salt[1], b ^ h) ^ salt[2], size ^ salt[3]);
}

inline std::uint64_t hash64(std::string_view bytes) { return hash64(bytes.data(), bytes.size()); }

// One key of two; the order matters.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  using detail::salt;
  const detail::Wide product = static_cast<detail::Wide>(a ^ salt[0]) * (b ^ salt[1]);
  return detail::fold(static_cast<std::uint64_t>(product) ^ salt[2],
                      static_cast<std::uint64_t>(product >> 64) ^ salt[3]);
}

}  // namespace thresher::io
