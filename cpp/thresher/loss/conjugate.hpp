// Convex conjugates and curvatures of the losses of bounded curvature, for solvers that certify
// their result by a duality gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "thresher/loss/losses.hpp"

namespace thresher {

// x ln x, and 0 at 0.
inline double x_log_x(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

[[gnu::always_inline]] inline double Loss::conjugate(double v, double y) const {
  switch (kind_) {
    case Kind::logistic: {  // a ln a + (1 - a) ln(1 - a), a = -v y in [0, 1]
      const double a = std::clamp(-v * y, 0.0, 1.0);
      return x_log_x(a) + x_log_x(1.0 - a);
    }
    case Kind::squared_hinge:
    case Kind::modified_huber: {  // a^2 / 4 - a, a = -v y >= 0, and at most 4 for modified_huber
      const double a = std::max(-v * y, 0.0);
      return 0.25 * a * a - a;
    }
    case Kind::squared:
    case Kind::huber: return v * y + 0.5 * v * v;  // huber: |v| <= epsilon
    case Kind::square: return v * y + 0.25 * v * v;
    default: throw std::invalid_argument("this loss has no conjugate here");
  }
}

[[gnu::always_inline]] inline double Loss::newton_curvature(double slope) const {
  if (kind_ != Kind::logistic) return curvature();
  const double a = std::fabs(slope);  // the probability of the other class
  // a (1 - a), but at most 20 as a step of z: the model is too flat where a row is far on the wrong
  // side.
  return a * std::max(1.0 - a, 0.05);
}

}  // namespace thresher
