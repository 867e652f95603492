// The rejection rate and the burst size of the published rule, as functions of d, the share of
// features that are stable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace thresher {

// phi of: beta0 at d = 1, 0 at d = 0; below the straight line for gamma > 0, above it for
// gamma < 0.
inline double rejection_rate(double d, double beta0, double gamma) {
  if (gamma >= 0) return beta0 * (std::exp(-gamma * (1 - d)) - (1 - d) * std::exp(-gamma));
  return beta0 * std::log1p(-gamma * d) / std::log1p(-gamma);
}

// K_s of.
inline std::int64_t burst_size(std::int64_t K0, double alpha, double d) {
  const double K = static_cast<double>(K0) * std::log(1.0 / (alpha * std::max(d, 1e-12)));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(K)));
}

}  // namespace thresher
