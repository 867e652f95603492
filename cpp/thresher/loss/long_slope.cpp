// The slope of a long step: N. Karampatziakis, J. Langford, "Online Importance Weight Aware
// Updates", UAI 2011 (R-3.7).
//
// A step of weight h is replaced by infinitely many tiny steps. Each moves the prediction p by
// -q L'(p) times its weight, so p follows dp/ds = -q L'(p) from s = 0 to h, and the slope of the
// whole step is the integral of L'(p(s)), which is (p(0) - p(h)) / q. It has a closed form for every
// loss; p approaches the minimum of the loss, and never goes beyond it.
#include <algorithm>
#include <cmath>

#include "thresher/loss/losses.hpp"

namespace thresher {
namespace {

// A constant slope, until p has moved by `distance`.
double linear(double slope, double distance, double h, double q) {
  return std::copysign(std::min(std::fabs(slope) * h, distance / q), slope);
}

// The slope `curvature` * r, where r is the distance of p from the minimum: r falls exponentially.
double quadratic(double r, double curvature, double h, double q) {
  return -r * std::expm1(-curvature * q * h) / q;
}

// A constant slope until p has moved by `distance`, to the distance r from the minimum; quadratic
// from there.
double linear_then_quadratic(double slope, double distance, double r, double curvature, double h,
                             double q) {
  if (slope == 0.0) return 0.0;
  const double end = distance / (q * std::fabs(slope));  // of the linear piece
  if (end >= h) return slope * h;
  return slope * end + quadratic(r, curvature, h - end, q);
}

// The margin m grows by d, where d + e^m (e^d - 1) = q h: divided by 1 + e^m, this is
// s d + (1 - s) (e^d - 1) = q h s, with the slope s at m. Newton's method on this convex function,
// started above the root, decreases to the root.
double logistic_growth(double m, double h, double q) {
  const double e = std::exp(-std::fabs(m));
  const double s = (m > 0 ? e : 1.0) / (1.0 + e), rest = (m > 0 ? 1.0 : e) / (1.0 + e);
  const double target = q * h * s;
  const bool far = m < -30.0;  // e^m may underflow, but e^(m + d) does not
  double d = std::min(target, far ? std::log1p(target) - m : std::log1p(target / rest));
  for (int i = 0; i < 50; ++i) {
    const double grown = far ? std::exp(m + d) / (1.0 + e) : rest * std::exp(d);
    const double growth = far ? grown - rest : rest * std::expm1(d);
    const double next = d - (s * d + growth - target) / (s + grown);
    if (!(next < d)) break;
    d = std::max(next, 0.0);
  }
  return d;
}

// u = e^-p follows du/ds = q (1 - y u).
double poisson(double p, double y, double h, double q) {
  const double mean = std::exp(std::clamp(p, -30.0, 30.0));
  if (p > 30.0 || p < -30.0) {  // the slope is constant there
    const double slope = mean - y;
    const bool returns = p > 0 ? slope > 0 : slope < 0;
    const double distance = std::fabs(p) - 30.0;
    if (!returns || std::fabs(slope) * q * h <= distance) return slope * h;
    const double end = distance / (q * std::fabs(slope));
    return slope * end + poisson(std::copysign(30.0, p), y, h - end, q);
  }
  if (y == 0.0) return std::log1p(mean * q * h) / q;
  const double ratio = mean / y, fall = y * q * h;
  if (fall < 0.5) return std::log1p((1.0 - ratio) * std::expm1(-fall)) / q;
  return std::log(ratio + (1.0 - ratio) * std::exp(-fall)) / q;
}

}  // namespace

double Loss::long_slope(double p, double y, double weight, double reach) const {
  const double h = weight, q = reach;
  const double slope = (*this)(p, y).slope;
  if (slope == 0.0 || !(q > 0.0)) return h * slope;
  switch (kind_) {
    case Kind::logistic: return -y * logistic_growth(p * y, h, q) / q;
    case Kind::hinge: return linear(slope, 1.0 - p * y, h, q);
    case Kind::margin: return linear(slope, epsilon_ - p * y, h, q);
    case Kind::squared_hinge: return quadratic(p - y, 2.0, h, q);
    case Kind::modified_huber: {
      const double below = -1.0 - p * y;  // how far the margin is below -1
      return below > 0 ? linear_then_quadratic(slope, below, -2.0 * y, 2.0, h, q)
                       : quadratic(p - y, 2.0, h, q);
    }
    case Kind::squared: return quadratic(p - y, 1.0, h, q);
    case Kind::square: return quadratic(p - y, 2.0, h, q);
    case Kind::clipped_square: {
      const double inside = std::clamp(p, 0.0, 1.0);
      return linear_then_quadratic(slope, std::fabs(p - inside), inside - y, 2.0, h, q);
    }
    case Kind::absolute: return linear(slope, std::fabs(p - y), h, q);
    case Kind::huber: {
      const double far = std::max(0.0, std::fabs(p - y) - epsilon_);
      return linear_then_quadratic(slope, far, slope, 1.0, h, q);
    }
    case Kind::epsilon_insensitive: return linear(slope, std::fabs(p - y) - epsilon_, h, q);
    case Kind::quantile: return linear(slope, std::fabs(p - y), h, q);
    case Kind::poisson: return poisson(p, y, h, q);
  }
  return h * slope;  // never reached: the switch has every kind
}

}  // namespace thresher
