// Estimates the number of distinct keys to about 1% in 16 KiB: HyperLogLog (Flajolet et al. 2007)
// with the estimator of Ertl (2017), which needs no tables for small and large counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace thresher::io {

inline constexpr int sketch_bits = 14;
inline constexpr std::size_t sketch_size = std::size_t{1} << sketch_bits;
inline constexpr std::size_t sketch_padding = 4;  // readable bytes after registers of a parser

// `hash` must be well mixed in all its bits.
inline void sketch_add(std::uint8_t* registers, std::uint64_t hash) {
  const std::uint64_t rest = hash << sketch_bits | std::uint64_t{1} << (sketch_bits - 1);
  const auto rank = static_cast<std::uint8_t>(std::countl_zero(rest) + 1);
  std::uint8_t& top = registers[hash >> (64 - sketch_bits)];
  if (rank > top) [[unlikely]]
    top = rank;
}

// Hashes that may change registers, gathered so that many are added at once. Hashes with a rank of
// at most the smallest register change nothing.
struct Ranks {
  static constexpr std::size_t most = 504;
  std::uint64_t least = 0;  // the smallest register
  std::size_t count = 0;
  std::uint64_t hashes[most + 16];

  void begin(const std::uint8_t* registers) {
    least = std::memchr(registers, 0, sketch_size)
                ? 0  // usual for the first blocks, and found faster
                : *std::min_element(registers, registers + sketch_size);
  }
  void flush(std::uint8_t* registers) {
    for (std::size_t i = 0; i < count; ++i) sketch_add(registers, hashes[i]);
    count = 0;
  }
};

inline void sketch_merge(std::span<std::uint8_t> into, std::span<const std::uint8_t> other) {
  if (into.size() != sketch_size || other.size() != sketch_size)
    throw std::invalid_argument("sketch has the wrong size");
  for (std::size_t i = 0; i < sketch_size; ++i) into[i] = std::max(into[i], other[i]);
}

inline double sketch_estimate(std::span<const std::uint8_t> registers) {
  if (registers.size() != sketch_size) throw std::invalid_argument("sketch has the wrong size");
  constexpr int ranks = 64 - sketch_bits + 1;
  constexpr double m = sketch_size;
  double counts[ranks + 1] = {};
  for (const std::uint8_t r : registers) counts[std::min<int>(r, ranks)] += 1;
  if (counts[0] == m) return 0;

  // tau(1 - share of full registers), then Horner's scheme, then sigma(share of empty registers)
  double x = 1 - counts[ranks] / m, y = 1, z = 0;
  if (x > 0 && x < 1) {
    z = 1 - x;
    for (double last = -1; z != last;) {
      last = z, x = std::sqrt(x), y /= 2;
      z -= (1 - x) * (1 - x) * y;
    }
    z *= m / 3;
  }
  for (int k = ranks - 1; k >= 1; --k) z = (z + counts[k]) / 2;
  x = counts[0] / m, y = 1;
  double sigma = x;
  for (double last = -1; sigma != last;) {
    last = sigma, x *= x;
    sigma += x * y;
    y *= 2;
  }
  z += m * sigma;
  return m * m / (2 * std::log(2.0) * z);
}

}  // namespace thresher::io
