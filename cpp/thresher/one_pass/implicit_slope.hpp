// Implicit steps: the slope g = L'(m - q g) that a step of size q has where it ends, and the
// curvature there. One scalar equation; every loss here is convex, so it has one solution.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "thresher/loss/loss.hpp"

namespace thresher::one_pass {

struct Landing {
  double slope;      // g
  double curvature;  // of the loss at m - q g; where it has none, a positive number in its place
};

class ImplicitLoss {
 public:
  enum class Kind { logistic, squared, huber, quantile, poisson };

  ImplicitLoss(const std::string& name, double quantile) : kind_(kind(name)), quantile_(quantile) {}

  bool logistic() const { return kind_ == Kind::logistic; }
  bool poisson() const { return kind_ == Kind::poisson; }
  bool regression() const { return !logistic() && !poisson(); }  // its targets are standardised
  bool squares() const { return kind_ != Kind::quantile; }  // the loss is in squared units of y

  Outcome outcome(double m, double y, double epsilon) const {
    const double r = m - y, size = std::fabs(r);
    switch (kind_) {
      case Kind::logistic: {
        const double v = y * m;
        return {std::max(0.0, -v), 0.0, 1.0 + std::exp(-std::fabs(v))};
      }
      case Kind::squared: return {0.5 * r * r, 0.0};
      case Kind::huber:
        return {size <= epsilon ? 0.5 * r * r : epsilon * size - 0.5 * epsilon * epsilon, 0.0};
      case Kind::quantile: return {r < 0 ? -quantile_ * r : (1.0 - quantile_) * r, 0.0};
      case Kind::poisson: return {std::exp(std::clamp(m, -30.0, 30.0)) - y * m, 0.0};
    }
    return {0.0, 0.0};
  }
  double loss(double m, double y, double epsilon) const { return outcome(m, y, epsilon).loss(); }
  // To compare two predictions: the loss, or for logistic the Brier score, which needs no logarithm.
  double score(double m, double y, double epsilon) const {
    if (!logistic()) return loss(m, y, epsilon);
    const double rest = 1.0 / (1.0 + std::exp(std::clamp(y * m, -700.0, 700.0)));
    return rest * rest;
  }

  Landing land(double m, double y, double q, double epsilon) const {
    switch (kind_) {
      case Kind::logistic: return logistic_landing(m, y, q);
      case Kind::squared: return {(m - y) / (1.0 + q), 1.0};
      case Kind::huber: {
        // Beyond epsilon the curvature is that of the parabola through 0 with the same slope.
        const double g = std::clamp((m - y) / (1.0 + q), -epsilon, epsilon);
        const double r = std::fabs(m - q * g - y);
        return {g, r <= epsilon ? 1.0 : epsilon / r};
      }
      case Kind::quantile: {
        // The step ends at y if it reaches it. The square of the slope stands for the curvature.
        const double g = q > 0 ? std::clamp((m - y) / q, -quantile_, 1.0 - quantile_)
                               : (m < y ? -quantile_ : 1.0 - quantile_);
        return {g, g * g};
      }
      case Kind::poisson: return poisson_landing(m, y, q);
    }
    return {0.0, 0.0};
  }

 private:
  static Kind kind(const std::string& name) {
    if (name == "logistic") return Kind::logistic;
    if (name == "squared") return Kind::squared;
    if (name == "huber") return Kind::huber;
    if (name == "quantile") return Kind::quantile;
    if (name == "poisson") return Kind::poisson;
    throw std::invalid_argument("the rule one_pass has no loss '" + name + "'");
  }

  // Finds the root of an increasing function in [low, high] by Newton's method with bisection.
  template <class F>
  static double root(double low, double high, double at, const F& value_and_slope) {
    for (int i = 0; i < 60; ++i) {
      const auto [f, df] = value_and_slope(at);
      (f > 0 ? high : low) = at;
      double next = at - f / df;
      if (!(next >= low && next <= high)) next = 0.5 * (low + high);
      if (std::fabs(next - at) <= 1e-14 * (1.0 + std::fabs(at))) return next;
      at = next;
    }
    return at;
  }

  // The margin u after the step: u = v + q / (1 + e^u), between v and v + q.
  static Landing logistic_landing(double m, double y, double q) {
    const double v = y * m;
    const auto rest = [](double u) {  // 1 / (1 + e^u)
      const double e = std::exp(-std::fabs(u));
      return (u > 0 ? e : 1.0) / (1.0 + e);
    };
    double u = v;
    if (q > 0)
      u = root(v, v + q, v + q * rest(v) / (1.0 + 0.25 * q), [&](double at) {
        const double s = rest(at);
        return std::pair{at - v - q * s, 1.0 + q * s * (1.0 - s)};
      });
    const double s = rest(u);
    return {-y * s, s * (1.0 - s)};
  }

  // The prediction p after the step: p + q (e^p - y) = m. With v = q e^p: v + ln v = ln q + m + q y.
  static Landing poisson_landing(double m, double y, double q) {
    if (!(q > 0)) {
      const double mean = std::exp(std::clamp(m, -30.0, 30.0));
      return {mean - y, mean};
    }
    const double L = std::log(q) + m + q * y;
    double v = L > 1.0 ? L - std::log(L) : std::exp(std::max(std::min(L, 0.0), -700.0));
    if (L < -36.0) return {v / q - y, v / q};  // v is e^L
    for (int i = 0; i < 20; ++i) {             // Newton's method in v; quadratic from this start
      const double next = v * (1.0 + L - std::log(v)) / (1.0 + v);
      const bool done = std::fabs(next - v) <= 1e-15 * v;
      v = next;
      if (done) break;
    }
    // g = (m - p) / q is more accurate if the step is long.
    const double slope = q * y > std::fabs(m) ? (m + std::log(q) - std::log(v)) / q : v / q - y;
    return {slope, v / q};
  }

  Kind kind_;
  double quantile_;
};

}  // namespace thresher::one_pass
