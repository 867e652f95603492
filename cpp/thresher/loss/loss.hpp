// Losses as functions of the raw prediction p and the label y (R-1.*).
//
// A loss is computed once per row, so it is chosen at run time. Its value has two parts, value +
// ln(factor) with 1 <= factor <= 2: the logistic loss would need a logarithm per row, while a
// product of factors needs one per thousand rows (Tally in core/tally.hpp).
#pragma once

#include <cmath>
#include <string>

namespace thresher {

struct Outcome {
  double value;  // the loss is value + ln(factor)
  double slope;  // d loss / d p
  double factor = 1.0;
  // The curvature here divided by the curvature for predictions of order 1; for relative rates.
  double steepness = 1.0;

  double loss() const { return value + std::log(factor); }
};

class Loss {
 public:
  Loss(const std::string& name, double epsilon, double quantile);

  Outcome operator()(double p, double y) const;  // inline, in loss/losses.hpp

  // The slope of a step of weight > 1, which replaces weight * slope: the sum over infinitely many
  // tiny steps, each from the prediction that the steps before it leave (loss/long_slope.cpp).
  // `reach` is how far a slope of 1 moves the prediction; with 0 it is weight * slope.
  double long_slope(double p, double y, double weight, double reach) const;

  // clipped_square predicts w.x / sqrt(|x|_0); every other loss w.x.
  bool normalises() const { return normalises_; }

  // Largest second derivative in p; 0 for losses with a bounded slope, which cannot diverge.
  double curvature() const;

  // The margin above which the slope is 0; infinite for losses without one.
  double idle_above() const;

  // Whether curvature() bounds the second derivative everywhere. Solvers that must never overshoot
  // need such a loss.
  bool has_bounded_curvature() const;

  // Inline, in loss/conjugate.hpp, for losses of bounded curvature. The convex conjugate
  // L*(v) = sup_p (p v - L(p, y)); v outside its domain by a rounding error counts as its end.
  double conjugate(double v, double y) const;
  // A curvature for Newton's method at a prediction with this slope: the second derivative where it
  // varies smoothly, else curvature(), which makes every full step a descent.
  double newton_curvature(double slope) const;

 private:
  enum class Kind : int;  // all are in loss/losses.hpp

  Kind kind_;
  bool normalises_;
  double epsilon_, quantile_;
};

}  // namespace thresher
