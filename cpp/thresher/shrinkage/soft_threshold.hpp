// The operator that makes zeros. T0 and T1 are in rules/truncated_gradient.hpp, applied to
// many events at once.
#pragma once

#include <algorithm>
#include <cmath>

namespace thresher {

// S(v, a) = sgn(v) (|v| - a)_+ : soft threshold; |v| = a gives 0. Free of branches.
template <class Real>
inline Real soft(Real v, Real a) {
  return std::copysign(std::max(std::fabs(v) - a, Real(0)), v);
}

}  // namespace thresher
