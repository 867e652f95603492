#include "thresher/core/learner.hpp"

#include <algorithm>

namespace thresher {

SparseWeights sorted_weights(std::vector<std::pair<std::uint64_t, double>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  SparseWeights sorted;
  sorted.keys.reserve(pairs.size()), sorted.values.reserve(pairs.size());
  for (const auto& [key, w] : pairs) sorted.keys.push_back(key), sorted.values.push_back(w);
  return sorted;
}

}  // namespace thresher
