// Losses as functions of the raw prediction p and the label y (R-1.*).
//
// A loss runs once a row, so it is chosen at run time. The value comes in two parts,
// value + ln(factor) with 1 <= factor <= 2: the logistic loss needs a logarithm a row, and a product
// of factors needs one a thousand rows (Tally in core/tally.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

namespace thresher {

struct Outcome {
  double value;  // the loss is value + ln(factor)
  double slope;  // d loss / d p
  double factor = 1.0;
  double steepness = 1.0;  // how much the curvature here exceeds the usual, for relative rates

  double loss() const { return value + std::log(factor); }
};

class Loss {
 public:
  Loss(const std::string& name, double epsilon, double quantile)
      : kind_(kind_of(name)), epsilon_(epsilon), quantile_(quantile) {}

  [[gnu::always_inline]] Outcome operator()(double p, double y) const {
    return kind_ == Kind::logistic ? logistic(p, y) : evaluate(p, y);
  }
  Outcome evaluate_inline(double p, double y) const;  // the same: see loss/evaluate.hpp

  // clipped_square predicts w.x / sqrt(|x|_0); every other loss w.x.
  bool normalises() const { return kind_ == Kind::clipped_square; }

  // Largest second derivative in p, or 0 where the slope is bounded and no rate can explode.
  double curvature() const;

  // curvature() bounds the second derivative everywhere, as solvers that never overshoot need it.
  bool has_bounded_curvature() const { return curvature() > 0 && kind_ != Kind::poisson; }

 private:
  enum class Kind {
    logistic,
    hinge,
    margin,
    squared_hinge,
    squared,
    square,
    clipped_square,
    absolute,
    huber,
    epsilon_insensitive,
    quantile,
    poisson
  };

  static Kind kind_of(const std::string& name);

  // ln(1 + exp(-py)); it takes exp of negative numbers only.
  [[gnu::always_inline]] static Outcome logistic(double p, double y) {
    const double margin = p * y;
    const double e = std::exp(-std::fabs(margin));
    return {std::max(0.0, -margin), -y * (margin > 0 ? e : 1.0) / (1.0 + e), 1.0 + e};
  }
  Outcome evaluate(double p, double y) const;

  Kind kind_;
  double epsilon_, quantile_;
};

}  // namespace thresher
