#include "thresher/core/learner.hpp"

#include "thresher/core/radix_sort.hpp"

namespace thresher {

SparseWeights sorted_weights(std::vector<std::pair<std::uint64_t, double>> pairs) {
  radix_sort(pairs, [](const auto& pair) { return pair.first; });  // keys are distinct
  SparseWeights sorted;
  sorted.keys.reserve(pairs.size()), sorted.values.reserve(pairs.size());
  for (const auto& [key, w] : pairs) sorted.keys.push_back(key), sorted.values.push_back(w);
  return sorted;
}

}  // namespace thresher
