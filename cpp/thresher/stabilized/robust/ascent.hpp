// Logistic regression with l2 by stochastic dual coordinate ascent (Shalev-Shwartz, Zhang 2013): a
// few sweeps over some of the rows. It has no rate to set, and after a purge of features its dual
// variables are still valid.
//
//   minimise  sum over rows of h C loss(b0 + b + w.x, y) + |w|^2 / 2 + b^2 / (2 s)
//
// At the optimum w = C sum of h r x and b = s C sum of h r, where r = t - sigmoid(prediction) and t
// is 1 or 0. A sweep solves for the r of each row in turn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "thresher/stabilized/robust/candidates.hpp"

namespace thresher {

struct LogisticModel {
  std::vector<double> w;
  double bias = 0.0;
};

template <class Real>
class LogisticAscent {
  using Rows = CandidateRows<Real>;

 public:
  // `spread` is s: the sum of the variances of the features. `duals` has r for every row, and is
  // changed by sweeps.
  LogisticAscent(const Rows& rows, const std::vector<std::int64_t>& mine, double strength,
                 double spread, double bias, std::vector<double>& duals)
      : rows_(rows),
        C_(strength / spread),
        spread_(spread),
        duals_(duals),
        model_{std::vector<double>(rows.ids.size()), bias} {
    for (const std::int64_t row : mine) {
      const auto r = static_cast<std::size_t>(row);
      move(r, C_ * rows.weights[r] * duals[r]);
    }
  }

  // Calls keep_on() after each row; false ends the sweep.
  template <class KeepOn>
  void sweep(const std::vector<std::int64_t>& order, KeepOn&& keep_on) {
    for (const std::int64_t row : order) {
      if (!keep_on()) return;
      const auto i = static_cast<std::size_t>(row);
      double square = spread_;
      for (std::size_t k = rows_.starts[i]; k < rows_.starts[i + 1]; ++k)
        square += static_cast<double>(rows_.x[k]) * static_cast<double>(rows_.x[k]);
      const double t = rows_.labels[i] > 0 ? 1.0 : 0.0, c = C_ * rows_.weights[i];
      const double residual = t - sigmoid(solved(prediction(i), t - duals_[i], c * square));
      move(i, c * (residual - duals_[i]));
      duals_[i] = residual;
    }
  }

  double prediction(std::size_t row) const { return prediction(model_, rows_, row); }
  const LogisticModel& model() const { return model_; }

  static double prediction(const LogisticModel& model, const Rows& rows, std::size_t row) {
    double p = model.bias;
    for (std::size_t k = rows.starts[row]; k < rows.starts[row + 1]; ++k)
      p += model.w[rows.keys[k]] * static_cast<double>(rows.x[k]);
    return p;
  }

 private:
  static double sigmoid(double p) { return 1.0 / (1.0 + std::exp(-p)); }

  // The g with g = p + (u - sigmoid(g)) q, by Newton's method within a bracket. Newton's steps may
  // jump back and forth where the sigmoid is flat: if the last one did not halve the excess, it
  // bisects.
  static double solved(double p, double u, double q) {
    double low = p + (u - 1.0) * q, high = p + u * q;
    double g = std::clamp(p, low, high), before = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 100; ++i) {
      const double s = sigmoid(g), excess = g - p - (u - s) * q;
      if (std::fabs(excess) < 1e-10 * (1.0 + std::fabs(g))) break;
      (excess > 0 ? high : low) = g;
      const double next = g - excess / (1.0 + q * s * (1.0 - s));
      const bool closer = std::fabs(excess) < 0.5 * before;
      g = closer && next > low && next < high ? next : 0.5 * (low + high);
      before = std::fabs(excess);
    }
    return g;
  }

  void move(std::size_t row, double step) {
    if (step == 0.0) return;
    for (std::size_t k = rows_.starts[row]; k < rows_.starts[row + 1]; ++k)
      model_.w[rows_.keys[k]] += step * static_cast<double>(rows_.x[k]);
    model_.bias += step * spread_;
  }

  const Rows& rows_;
  double C_, spread_;
  std::vector<double>& duals_;
  LogisticModel model_;
};

}  // namespace thresher
