// Calibrates pooled predictions: a slope and an intercept, learned online by Newton steps; and the mean
// and standard deviation of the targets of a regression.
#pragma once

#include <algorithm>
#include <cmath>

namespace thresher::discovery {

enum class Task { classification, regression };

inline double sigmoid(double score) { return 1.0 / (1.0 + std::exp(-score)); }

// The prediction is s F + c: a probability by the sigmoid, or a standardised target.
struct Calibration {
  double slope = 1.0, intercept = 0.0;
  double h11 = 10.0, h10 = 0.0, h00 = 1.0;  // the second derivatives, with a small start
  double squares = 1.0, weight = 1.0;       // of the residuals of a regression

  double prediction(Task task, double F) const {
    const double score = std::max(0.0, slope) * F + intercept;
    return task == Task::classification ? sigmoid(score) : score;
  }
  // The variance of the target, given its prediction.
  double variance(Task task, double p) const {
    return task == Task::classification ? p * (1.0 - p) : squares / weight;
  }

  // y: 0 or 1, or a standardised target; h: the weight of the row.
  void learn(Task task, double F, double y, double h) {
    if (!(h > 0)) return;
    const double p = prediction(task, F), e = y - p;
    const double v = h * (task == Task::classification ? p * (1.0 - p) : 1.0);
    h11 += v * F * F, h10 += v * F, h00 += v;
    const double determinant = h11 * h00 - h10 * h10;
    slope += h * e * (h00 * F - h10) / determinant;
    intercept += h * e * (h11 - h10 * F) / determinant;
    if (task == Task::regression) squares += h * e * e, weight += h;
  }
};

// The targets of a regression in units of their standard deviation, from the rows before.
struct TargetMoments {
  double weight = 0.0, mean = 0.0, squares = 0.0;  // sum of squares about the mean

  double sd() const { return weight > 0 ? std::sqrt(squares / weight) : 0.0; }
  double standard(double y) const {
    const double unit = sd();
    return unit > 0 ? std::clamp((y - mean) / unit, -largest, largest) : 0.0;
  }
  void learn(double y, double h) {
    if (!(h > 0)) return;
    weight += h;
    const double before = y - mean;
    mean += h / weight * before;
    squares += h * before * (y - mean);
  }

  static constexpr double largest = 1e6;
};

}  // namespace thresher::discovery
