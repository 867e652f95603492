// Which features of least energy a model does without.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/core/radix_sort.hpp"

namespace thresher::one_pass {

// Removes large energies, which are not among the smallest ones whose sum exceeds `budget`. Powers
// of two divide the energies; `error` is the largest relative error of a sum.
inline void remove_large(std::vector<double>& energies, double budget, double error) {
  const auto exponent = [](double e) { return std::bit_cast<std::uint64_t>(e) >> 52; };
  std::array<double, 2048> sums{};
  for (const double e : energies) sums[exponent(e)] += e;
  std::size_t last = 0;
  double sum = sums[0];
  while (last + 1 < sums.size() && !(sum > budget * (1.0 + error))) sum += sums[++last];
  std::erase_if(energies, [&](double e) { return exponent(e) > last; });
}

// The energy up to which features are cut: those of least energy, as long as their sum is at most
// `share` of the energy of all features or of the predictions, which is `spread`; and all but `most`
// (0: any number). The energies are positive; they are sorted, and some that are larger than the
// result may be removed.
inline double least_energy(std::vector<double>& energies, double share, double spread,
                           double most) {
  const double error = 8.0 * static_cast<double>(energies.size()) * 0x1p-53;
  double all = 0.0, sum = 0.0;
  for (const double e : energies) all += e;
  const bool spread_is_less = spread < all * (1.0 - error);  // for any order of the sum
  if (spread_is_less && !(most > 0)) remove_large(energies, share * spread, error);
  radix_sort(energies, [](double e) { return std::bit_cast<std::uint64_t>(e); });
  if (!spread_is_less) {
    all = 0.0;
    for (const double e : energies) all += e;
  }
  const double budget = share * std::min(all, spread);
  std::size_t cut = 0;
  while (cut < energies.size() && sum + energies[cut] <= budget) sum += energies[cut++];
  while (cut > 0 && cut < energies.size() && energies[cut] == energies[cut - 1]) --cut;
  if (most > 0 && static_cast<double>(energies.size() - cut) > most)
    cut = energies.size() - static_cast<std::size_t>(most);
  return cut > 0 ? energies[cut - 1] : 0.0;
}

// Number of energies that are at most `least`; they are sorted.
inline std::int64_t cut_count(const std::vector<double>& energies, double least) {
  return std::upper_bound(energies.begin(), energies.end(), least) - energies.begin();
}

}  // namespace thresher::one_pass
