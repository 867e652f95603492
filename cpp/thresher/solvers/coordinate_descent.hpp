// Stochastic coordinate descent: S. Shalev-Shwartz, A. Tewari, "Stochastic Methods for l1
// Regularized Loss Minimization", ICML 2009 (R-12).
//
//   min F(w, b) = (1/S) sum_i s_i L(z_i, y_i) + lambda ||w||_1,   z = X w + b,   S = sum_i s_i
//
// For each coordinate j drawn, uniformly, by the caller:
//
//   g_j = (1/S) sum_i s_i L'(z_i, y_i) x_ij
//   w_j <- S(w_j - g_j / beta_j, lambda / beta_j)
//
//   beta_j   beta (1/S) sum_i s_i x_ij^2, where beta bounds the curvature of the loss: no step
//            increases F; or, as published, beta itself, for features in [-1, 1]
//   b        a coordinate with x = 1 that is not penalised, drawn as `intercept_draw`
//
// Why a draw costs only a sparse dot product, without an exponential: s_i L'(z_i, y_i) / S is kept
// for every row, and computed again only where z_i changes. Most draws find w_j = 0 and leave it 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "thresher/core/archive.hpp"
#include "thresher/core/batch.hpp"
#include "thresher/core/error.hpp"
#include "thresher/loss/losses.hpp"
#include "thresher/shrinkage/soft_threshold.hpp"

namespace thresher {

class CoordinateDescent {
 public:
  static constexpr std::int64_t intercept_draw = -1;

  // `columns` is X by columns (CSC): a batch whose rows are features and whose keys are row
  // numbers, each at most once in a column. It is borrowed. `weights` is empty if all weights are
  // 1.
  CoordinateDescent(const Batch& columns, std::span<const double> labels,
                    std::span<const double> weights, const Loss& loss, double l1,
                    const std::string& step);

  // Makes one step for each draw: a feature, or intercept_draw. Returns the largest violation() of
  // a coordinate when it was drawn.
  double steps(std::span<const std::int64_t> draws);

  // Computes z and the slopes again from w and b: removes the rounding errors of many small
  // changes.
  void refresh();

  // The functions below change nothing.
  double objective() const;         // F(w, b)
  double largest_gradient() const;  // max |g_j| over the features
  // The violation of the optimality conditions (P-13): the largest of |g_j + lambda sgn(w_j)| for
  // w_j != 0, (|g_j| - lambda)_+ for w_j = 0, and, with_intercept, |g_b|.
  double violation(bool with_intercept) const;
  // The feature with the largest mean square, and this mean square: steps of 1 / beta need it to be
  // at most 1.
  std::pair<std::int64_t, double> steepest() const;

  const std::vector<double>& weights() const { return w_; }
  const std::vector<double>& predictions() const { return z_; }
  double intercept() const { return b_; }

  // Weights, intercept, and predictions as updated by the steps.
  std::vector<std::byte> state() const;
  void restore(std::span<const std::byte> state);

 protected:
  // Calls f(starts, keys, values) with the arrays as they are.
  template <class F>
  auto with_columns(F&& f) const {
    using Long = const std::int64_t*;
    using Result = decltype(f(Long{}, Long{}, static_cast<const double*>(nullptr)));
    return std::visit(
        [&](auto starts, auto keys, auto values) -> Result {
          if constexpr (std::is_pointer_v<decltype(starts)> && std::is_pointer_v<decltype(keys)>)
            return f(starts, keys, values);
          else throw std::invalid_argument("coordinate descent needs columns in CSC form");
        },
        columns_.starts, columns_.keys, columns_.values);
  }

  // The largest value of f(j, g_j) over all features.
  template <class F>
  double largest(F&& f) const {
    return with_columns([&](auto starts, auto keys, auto values) {
      double found = 0.0;
      for (std::size_t j = 0; j < w_.size(); ++j)
        found = std::max(found, f(j, gradient(starts, keys, values, j, slope_.data())));
      return found;
    });
  }

  // sum_i slope_i x_ij: four sums, so that the additions do not wait for each other.
  template <class Start, class Key, class Value>
  static double gradient(const Start* starts, const Key* keys, const Value* values, std::size_t j,
                         const double* slope) {
    const Start end = starts[j + 1];
    const auto term = [&](Start k) __attribute__((always_inline)) {
      return slope[static_cast<std::size_t>(keys[k])] * static_cast<double>(values[k]);
    };
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    Start k = starts[j];
    for (; k + 4 <= end; k += 4)
      for (Start lane = 0; lane < 4; ++lane) sums[lane] += term(k + lane);
    for (; k < end; ++k) sums[0] += term(k);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  template <class Start, class Key, class Value>
  void check(const Start* starts, const Key* keys, const Value* values);

  double coordinate_violation(double g, double w) const {
    return w != 0.0 ? std::fabs(g + std::copysign(l1_, w)) : std::max(std::fabs(g) - l1_, 0.0);
  }
  double slope(std::size_t i) const { return share_[i] * loss_(z_[i], y_[i]).slope; }
  double intercept_gradient() const;
  double step_intercept();

  Batch columns_;
  std::vector<double> y_, share_;  // share_i = s_i / S
  Loss loss_;
  double l1_;
  std::vector<double> square_;  // (1/S) sum_i s_i x_ij^2
  std::vector<double> beta_;    // 0 for a feature without values: it makes no steps
  std::vector<double> w_, z_, slope_;
  double b_ = 0.0;
};

}  // namespace thresher
