// Every loss: its name, its curvature, its value and its derivative (R-1.*). Only loops over rows
// include this file.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "thresher/loss/loss.hpp"

namespace thresher {

enum class Loss::Kind : int {
  logistic,
  hinge,
  margin,
  squared_hinge,
  modified_huber,
  squared,
  square,
  clipped_square,
  absolute,
  huber,
  epsilon_insensitive,
  quantile,
  poisson
};

// In the order of the kinds.
struct LossEntry {
  const char* name;
  double curvature;
  double idle_above = std::numeric_limits<double>::infinity();  // no slope for larger margins
};
inline constexpr LossEntry loss_table[] = {
    {"logistic", 0.25},
    {"hinge", 0.0, 1.0},
    {"margin", 0.0},
    {"squared_hinge", 2.0, 1.0},
    {"modified_huber", 2.0, 1.0},
    {"squared", 1.0},
    {"square", 2.0},
    {"clipped_square", 2.0},
    {"absolute", 0.0},
    {"huber", 1.0},
    {"epsilon_insensitive", 0.0},
    {"quantile", 0.0},
    {"poisson", 2.718281828459045},  // e, for predictions of order 1
};

[[gnu::always_inline]] inline Outcome Loss::operator()(double p, double y) const {
  switch (kind_) {
    case Kind::logistic: {  // ln(1 + exp(-py)); exp of negative numbers only
      const double margin = p * y;
      const double e = std::exp(-std::fabs(margin));
      return {std::max(0.0, -margin), -y * (margin > 0 ? e : 1.0) / (1.0 + e), 1.0 + e};
    }
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
    case Kind::modified_huber: {  // max(0, 1 - py)^2, its tangent -4py below py = -1
      const double margin = p * y, gap = std::max(0.0, 1.0 - margin);
      return margin >= -1.0 ? Outcome{gap * gap, -2.0 * y * gap} : Outcome{-4.0 * margin, -4.0 * y};
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
    case Kind::quantile:  // the pinball loss
      return y > p ? Outcome{quantile_ * (y - p), -quantile_}
                   : Outcome{(1.0 - quantile_) * (p - y), 1.0 - quantile_};
    case Kind::poisson: {  // exp(p) - yp, log link; the exponent is kept within +-30
      const double mean = std::exp(std::clamp(p, -30.0, 30.0));
      return {mean - y * p, mean - y, 1.0, std::max({1.0, mean, y})};
    }
  }
  return {0.0, 0.0};  // never reached: the switch has every kind
}

}  // namespace thresher
