// The soft threshold, which makes exact zeros. T0 and T1, applied for many events at once,
// are in shrinkage/settlement.hpp.
#pragma once

#include <algorithm>
#include <cmath>

namespace thresher {

// S(v, a) = sgn(v) (|v| - a)_+; |v| = a gives 0. Without branches.
template <class Real>
inline Real soft(Real v, Real a) {
  return std::copysign(std::max(std::fabs(v) - a, Real(0)), v);
}

}  // namespace thresher
