// Which features of least energy a model does without.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "thresher/core/radix_sort.hpp"

namespace thresher::one_pass {

// The energy up to which features are cut: those of least energy, as long as their sum is at most
// `share` of the energy of all features or of the predictions, which is `spread`; and all but `most`
// (0: any number). The energies are positive; they are sorted.
inline double least_energy(std::vector<double>& energies, double share, double spread,
                           double most) {
  radix_sort(energies, [](double e) { return std::bit_cast<std::uint64_t>(e); });
  double all = 0.0, sum = 0.0;
  for (const double e : energies) all += e;
  const double budget = share * std::min(all, spread);
  std::size_t cut = 0;
  while (cut < energies.size() && sum + energies[cut] <= budget) sum += energies[cut++];
  while (cut > 0 && cut < energies.size() && energies[cut] == energies[cut - 1]) --cut;
  if (most > 0 && static_cast<double>(energies.size() - cut) > most)
    cut = energies.size() - static_cast<std::size_t>(most);
  return cut > 0 ? energies[cut - 1] : 0.0;
}

}  // namespace thresher::one_pass
