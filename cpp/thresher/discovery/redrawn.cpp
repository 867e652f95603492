#include "thresher/discovery/redrawn.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace thresher::discovery {
namespace {

// Sorts floats that are not negative: their bits have the same order. A radix sort is several times
// as fast as a comparison sort of so many numbers.
std::vector<std::uint32_t> sorted_bits(std::span<const float> values) {
  constexpr int digit = 11;
  constexpr std::size_t buckets = std::size_t{1} << digit;
  std::vector<std::uint32_t> bits(values.size()), moved(values.size());
  std::transform(values.begin(), values.end(), bits.begin(),
                 [](float value) { return std::bit_cast<std::uint32_t>(value); });
  for (int shift = 0; shift < 32; shift += digit) {
    std::array<std::size_t, buckets + 1> starts{};
    for (const std::uint32_t key : bits) ++starts[((key >> shift) & (buckets - 1)) + 1];
    for (std::size_t b = 0; b < buckets; ++b) starts[b + 1] += starts[b];
    for (const std::uint32_t key : bits) moved[starts[(key >> shift) & (buckets - 1)]++] = key;
    bits.swap(moved);
  }
  return bits;
}

}  // namespace

std::vector<float> redrawn_z(std::span<const float> S, std::span<const float> D,
                             std::span<const double> variance) {
  const std::size_t redraws = variance.empty() ? 0 : S.size() / variance.size();
  if (S.size() != redraws * variance.size() || (!D.empty() && D.size() != S.size()))
    throw std::invalid_argument("redraws: one number for each feature and redraw");
  std::vector<float> z(S.size());
  for (std::size_t j = 0; j < variance.size(); ++j) {
    const double own = variance[j];
    if (!(own > 0)) continue;
    const double unit = 1.0 / std::sqrt(own);
    for (std::size_t i = j * redraws; i < (j + 1) * redraws; ++i) {
      const double S_in_units = std::fabs(static_cast<double>(S[i])) * unit;
      if (D.empty()) {
        z[i] = static_cast<float>(S_in_units);
        continue;
      }
      const double V = 1.0 + static_cast<double>(D[i]) / (3.0 * own);
      z[i] = static_cast<float>(S_in_units / std::sqrt(std::max(V, 1e-9)));
    }
  }
  return z;
}

std::vector<std::int64_t> exceedances(std::span<const float> values,
                                      std::span<const float> thresholds) {
  const auto negative = [](float value) { return !(value >= 0); };
  if (std::any_of(values.begin(), values.end(), negative) ||
      std::any_of(thresholds.begin(), thresholds.end(), negative) ||
      !std::is_sorted(thresholds.begin(), thresholds.end()))
    throw std::invalid_argument("values must not be negative, and thresholds must increase");
  // In parts, which need little memory and stay in the cache.
  constexpr std::size_t part = std::size_t{1} << 20;
  std::vector<std::int64_t> counts(thresholds.size());
  for (std::size_t from = 0; from < values.size(); from += part) {
    const std::vector<std::uint32_t> bits =
        sorted_bits(values.subspan(from, std::min(part, values.size() - from)));
    std::size_t at = 0;
    for (std::size_t t = 0; t < thresholds.size(); ++t) {
      const auto least = std::bit_cast<std::uint32_t>(thresholds[t] + 0.0F);  // -0 becomes 0
      while (at < bits.size() && bits[at] < least) ++at;
      counts[t] += static_cast<std::int64_t>(bits.size() - at);
    }
  }
  return counts;
}

}  // namespace thresher::discovery
