// Statistics of the redraws: their z, and how many of them are at least as large as a threshold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thresher::discovery {

// |z*| of features x redraws: |S*| / sqrt(V*). If D is empty, V* is the variance of the feature,
// else variance + D* / 3 (discovery/evidence.hpp). 0 if the variance is 0.
std::vector<float> redrawn_z(std::span<const float> S, std::span<const float> D,
                             std::span<const double> variance);

// For each threshold, the number of values that are at least as large. Values and thresholds are
// not negative; thresholds increase.
std::vector<std::int64_t> exceedances(std::span<const float> values,
                                      std::span<const float> thresholds);

}  // namespace thresher::discovery
