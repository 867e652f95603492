// Calibrates pooled predictions: a slope, an intercept and an effect of the length of the row,
// learned online by Newton steps; and the mean and standard deviation of the targets of a
// regression.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "thresher/discovery/bank.hpp"

namespace thresher::discovery {

enum class Task { classification, regression };

inline double sigmoid(double score) { return 1.0 / (1.0 + std::exp(-score)); }

// The prediction is s F + c + d l: a probability by the sigmoid, or a standardised target. l is the
// logarithm of 1 + the number of values in the row: what a shrunken model misses adds up in long
// rows.
struct Calibration {
  double slope = 1.0, intercept = 0.0, of_length = 0.0;
  // The second derivatives, with a small start: of F, 1 and l.
  double h11 = 10.0, h10 = 0.0, h00 = 1.0, h12 = 0.0, h02 = 0.0, h22 = 10.0;
  double squares = 1.0, weight = 1.0;  // of the residuals of a regression

  double prediction(Task task, double F, double l) const {
    const double score = std::max(0.0, slope) * std::clamp(F, -largest_score, largest_score) +
                         intercept + of_length * l;
    return task == Task::classification ? sigmoid(score) : score;
  }
  // The variance of the target, given its prediction.
  double variance(Task task, double p) const {
    return task == Task::classification ? p * (1.0 - p) : squares / weight;
  }

  // y: 0 or 1, or a standardised target; h: the weight of the row.
  void learn(Task task, double given, double l, double y, double h) {
    if (!(h > 0)) return;
    const double F = std::clamp(given, -largest_score, largest_score);
    const double p = prediction(task, F, l), e = y - p;
    const double v = h * (task == Task::classification ? p * (1.0 - p) : 1.0);
    h11 += v * F * F, h10 += v * F, h00 += v, h12 += v * F * l, h02 += v * l, h22 += v * l * l;
    const Cofactors c(*this);
    slope += h * e * (c.c11 * F + c.c10 + c.c12 * l) / c.determinant;
    intercept += h * e * (c.c10 * F + c.c00 + c.c02 * l) / c.determinant;
    of_length += h * e * (c.c12 * F + c.c02 + c.c22 * l) / c.determinant;
    if (task == Task::regression) squares += h * e * e, weight += h;
  }
  double slope_error() const {
    const Cofactors c(*this);
    return std::sqrt(c.c11 / c.determinant);
  }

 private:
  struct Cofactors {
    double c11, c10, c00, c12, c02, c22, determinant;
    explicit Cofactors(const Calibration& m)
        : c11(m.h00 * m.h22 - m.h02 * m.h02),
          c10(m.h12 * m.h02 - m.h10 * m.h22),
          c00(m.h11 * m.h22 - m.h12 * m.h12),
          c12(m.h10 * m.h02 - m.h12 * m.h00),
          c02(m.h10 * m.h12 - m.h11 * m.h02),
          c22(m.h11 * m.h00 - m.h10 * m.h10),
          determinant(m.h11 * c11 + m.h10 * c10 + m.h12 * c12) {}
  };
};

// l of a row.
inline double length_of(std::size_t nonzeros) { return std::log1p(static_cast<double>(nonzeros)); }

// The targets of a regression in units of their standard deviation, from the rows before.
struct TargetMoments {
  double rows = 0.0;
  double weight = 0.0, mean = 0.0, squares = 0.0;  // sum of squares about the mean

  // The sd of a few targets may be far too small, and then all that is learned is too large.
  bool ready() const { return rows >= first_rows; }

  double sd() const { return weight > 0 ? std::sqrt(squares / weight) : 0.0; }
  double standard(double y) const {
    const double unit = sd();
    return unit > 0 ? std::clamp((y - mean) / unit, -largest, largest) : 0.0;
  }
  void learn(double y, double h) {
    if (!(h > 0)) return;
    rows += 1.0, weight += h;
    const double before = y - mean;
    mean += h / weight * before;
    squares += h * before * (y - mean);
  }

  static constexpr double largest = 1e6, first_rows = 20.0;
};

}  // namespace thresher::discovery
