// The operators that make zeros (R-2.*).
#pragma once

#include <algorithm>
#include <cmath>

namespace thresher {

// S(v, a) = sgn(v) (|v| - a)_+ : soft threshold; |v| = a gives 0. Free of branches.
template <class Real>
inline Real soft(Real v, Real a) {
  return std::copysign(std::max(std::fabs(v) - a, Real(0)), v);
}

// T0(v, theta): v if |v| >= theta, else 0 (R-2.1; the printed indicator is inverted, A-01).
template <class Real>
inline Real round_off(Real v, Real theta) {
  return std::fabs(v) >= theta ? v : Real(0);
}

// T1(v, a, theta): the soft threshold for |v| <= theta, and v itself above.
template <class Real>
inline Real truncate(Real v, Real a, Real theta) {
  return std::fabs(v) <= theta ? soft(v, a) : v;
}

}  // namespace thresher
