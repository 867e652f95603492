// Random numbers and permutations that are the same on every machine: SplitMix64 (Steele, Lea,
// Flood 2014).
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace thresher {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15u); }

  // One of 0 .. n - 1; the error against uniform probabilities is less than n / 2^64.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }

  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t state_;
};

// A random order of the rows: a different one for each seed, path and pass.
inline std::vector<std::int64_t> permutation(std::uint64_t seed, std::uint64_t path,
                                             std::uint64_t pass, std::int64_t rows) {
  Random random(Random::mixed(Random::mixed(Random::mixed(seed) + path) + pass));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace thresher
