// The formulas of all losses, to be inlined: for code that evaluates many losses of one kind in a row.
#pragma once

#include <algorithm>
#include <cmath>

#include "thresher/loss/loss.hpp"

namespace thresher {

[[gnu::always_inline]] inline Outcome Loss::evaluate_inline(double p, double y) const {
  switch (kind_) {
    case Kind::logistic: return logistic(p, y);
    case Kind::hinge: {  // max(0, 1 - py)
      const double margin = p * y;
      return margin <= 1.0 ? Outcome{1.0 - margin, -y} : Outcome{0.0, 0.0};
    }
    case Kind::margin: {  // max(0, epsilon - py): the perceptron with a margin
      const double margin = p * y;
      return margin <= epsilon_ ? Outcome{epsilon_ - margin, -y} : Outcome{0.0, 0.0};
    }
    case Kind::squared_hinge: {  // max(0, 1 - py)^2
      const double gap = std::max(0.0, 1.0 - p * y);
      return {gap * gap, -2.0 * y * gap};
    }
    case Kind::squared: {  // (p - y)^2 / 2
      const double r = p - y;
      return {0.5 * r * r, r};
    }
    case Kind::square: {  // (p - y)^2
      const double r = p - y;
      return {r * r, 2.0 * r};
    }
    case Kind::clipped_square: {  // square on [0, 1], its tangent outside
      const double inside = std::clamp(p, 0.0, 1.0);
      const double r = inside - y;
      return {r * r + 2.0 * r * (p - inside), 2.0 * r};
    }
    case Kind::absolute:  // |p - y| (R-1.1)
      return {std::fabs(p - y), p <= y ? -1.0 : 1.0};
    case Kind::huber: {  // r^2 / 2 near 0, linear beyond epsilon
      const double r = p - y, a = std::fabs(r);
      return {a <= epsilon_ ? 0.5 * r * r : epsilon_ * a - 0.5 * epsilon_ * epsilon_,
              std::clamp(r, -epsilon_, epsilon_)};
    }
    case Kind::epsilon_insensitive: {  // max(0, |p - y| - epsilon)
      const double r = p - y, excess = std::fabs(r) - epsilon_;
      return excess > 0 ? Outcome{excess, r > 0 ? 1.0 : -1.0} : Outcome{0.0, 0.0};
    }
    case Kind::quantile:  // the pinball
      return y > p ? Outcome{quantile_ * (y - p), -quantile_}
                   : Outcome{(1.0 - quantile_) * (p - y), 1.0 - quantile_};
    case Kind::poisson: {  // exp(p) - yp, log link; the exponent is kept within +-30
      const double mean = std::exp(std::clamp(p, -30.0, 30.0));
      return {mean - y * p, mean - y, 1.0, std::max({1.0, mean, y})};
    }
  }
  return {0.0, 0.0};  // not reached: kind_of names every kind
}

}  // namespace thresher
