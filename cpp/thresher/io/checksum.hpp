// A checksum of 64 bits, to find damage: not a hash for tables, and no defence against malice.
//
// Eight lanes take every eighth word each, so that the processor multiplies for one while it waits for the others.
// Each step is a bijection of the lane for a given word, and of the word for a given lane, and so is every
// step that joins the lanes: whatever is changed within one word, a flipped bit for one, changes the sum.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace thresher::io {

static_assert(std::endian::native == std::endian::little, "caches are little-endian");

inline std::uint64_t checksum(const void* data, std::size_t size, std::uint64_t seed = 0) {
  constexpr std::size_t lanes = 8, stripe = lanes * sizeof(std::uint64_t);
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
  std::uint64_t lane[lanes];
  for (std::size_t i = 0; i < lanes; ++i) lane[i] = seed + (i + 1) * 0xD6E8FEB86659FD93u;

  const auto take = [&lane](const unsigned char* from) {
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint64_t word;
      std::memcpy(&word, from + i * sizeof word, sizeof word);
      lane[i] = std::rotl(lane[i] ^ word, 29) * odd;
    }
  };
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::size_t left = size;
  for (; left >= stripe; left -= stripe, bytes += stripe) take(bytes);
  if (left > 0) {
    unsigned char last[stripe] = {};
    std::memcpy(last, bytes, left);
    take(last);
  }

  std::uint64_t sum = seed ^ size;
  for (const std::uint64_t part : lane) {
    sum = (sum ^ part) * odd;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace thresher::io
