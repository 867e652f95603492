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
#include "thresher/loss/loss.hpp"
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

 private:
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
        found = std::max(found, f(j, gradient(starts, keys, values, j)));
      return found;
    });
  }

  template <class Start, class Key, class Value>
  double gradient(const Start* starts, const Key* keys, const Value* values, std::size_t j) const;
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
  std::vector<double> beta_;    // 0: a feature without values; no steps
  std::vector<double> w_, z_, slope_;
  double b_ = 0.0;
};

// ---- bodies ------------------------------------------------------------------------------------

inline CoordinateDescent::CoordinateDescent(const Batch& columns, std::span<const double> labels,
                                            std::span<const double> weights, const Loss& loss,
                                            double l1, const std::string& step)
    : columns_(columns),
      y_(labels.begin(), labels.end()),
      share_(labels.size(), 1.0),
      loss_(loss),
      l1_(l1),
      square_(static_cast<std::size_t>(columns.rows), 0.0),
      beta_(square_.size(), 0.0),
      w_(square_.size(), 0.0),
      z_(labels.size(), 0.0),
      slope_(labels.size(), 0.0) {
  if (static_cast<std::size_t>(columns.columns) != y_.size())
    throw std::invalid_argument("labels: one for each row");
  if (!weights.empty() && weights.size() != y_.size())
    throw std::invalid_argument("sample weights: one for each row");
  if (!loss.has_bounded_curvature() || loss.normalises())
    throw std::invalid_argument("coordinate descent needs a loss of bounded curvature");
  if (step != "coordinate" && step != "global")
    throw std::invalid_argument("unknown step '" + step + "'");
  double total = 0.0;
  for (std::size_t i = 0; i < y_.size(); ++i) {
    if (!weights.empty()) share_[i] = weights[i];
    check_target(static_cast<std::int64_t>(i), y_[i], share_[i]);
    total += share_[i];
  }
  if (!(total > 0 && std::isfinite(total)))
    throw std::invalid_argument("the sample weights must have a sum above 0");
  for (double& share : share_) share /= total;
  with_columns([&](auto starts, auto keys, auto values) { check(starts, keys, values); });
  for (std::size_t j = 0; j < beta_.size(); ++j)
    if (square_[j] > 0) beta_[j] = loss_.curvature() * (step == "coordinate" ? square_[j] : 1.0);
  refresh();
}

template <class Start, class Key, class Value>
void CoordinateDescent::check(const Start* starts, const Key* keys, const Value* values) {
  const auto rows = static_cast<std::uint64_t>(y_.size());
  for (std::size_t j = 0; j < w_.size(); ++j) {
    for (Start k = starts[j]; k < starts[j + 1]; ++k) {
      const auto row = static_cast<std::uint64_t>(keys[k]);
      if (row >= rows)
        throw std::invalid_argument("feature " + std::to_string(j) + ": row number " +
                                    std::to_string(keys[k]) + " is outside 0.." +
                                    std::to_string(rows - 1));
      const auto x = static_cast<double>(values[k]);
      if (!std::isfinite(values[k] * values[k]))
        throw DataError(static_cast<std::int64_t>(row),
                        "the value of feature " + std::to_string(j) + " is " +
                            (std::isnan(x) ? "NaN; values must be finite"
                                           : shown(x) + "; values must be finite, with finite "
                                                        "squares in the dtype"));
      square_[j] += share_[row] * x * x;
    }
  }
}

// Four sums, so that the additions do not wait for each other.
template <class Start, class Key, class Value>
double CoordinateDescent::gradient(const Start* starts, const Key* keys, const Value* values,
                                   std::size_t j) const {
  const Start end = starts[j + 1];
  const double* slope = slope_.data();
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

inline double CoordinateDescent::steps(std::span<const std::int64_t> draws) {
  for (const std::int64_t draw : draws)
    if (draw < intercept_draw || draw >= columns_.rows)
      throw std::invalid_argument("draws: features, or -1 for the intercept");
  return with_columns([&](auto starts, auto keys, auto values) {
    constexpr std::size_t early = 8;  // draws between the prefetch of a column and its use
    double largest = 0.0;
    for (std::size_t n = 0; n < draws.size(); ++n) {
      if (n + 2 * early < draws.size()) __builtin_prefetch(starts + draws[n + 2 * early]);
      if (n + early < draws.size() && draws[n + early] >= 0) {
        const auto from = starts[draws[n + early]];
        __builtin_prefetch(keys + from), __builtin_prefetch(values + from);
      }
      if (draws[n] == intercept_draw) {
        largest = std::max(largest, step_intercept());
        continue;
      }
      const auto j = static_cast<std::size_t>(draws[n]);
      if (beta_[j] == 0.0) continue;
      const double g = gradient(starts, keys, values, j), before = w_[j];
      largest = std::max(largest, coordinate_violation(g, before));
      const double after = soft(before - g / beta_[j], l1_ / beta_[j]);
      const double change = after - before;
      if (!std::isfinite(after))
        throw Divergence("the weight of feature " + std::to_string(j) + " is not finite");
      if (change == 0.0) continue;
      w_[j] = after;
      for (auto k = starts[j]; k < starts[j + 1]; ++k) {
        const auto i = static_cast<std::size_t>(keys[k]);
        z_[i] += change * static_cast<double>(values[k]);
        slope_[i] = slope(i);
      }
    }
    return largest;
  });
}

// Returns |g_b| before the step.
inline double CoordinateDescent::step_intercept() {
  const double g = intercept_gradient(), change = -g / loss_.curvature();
  if (change == 0.0) return 0.0;
  b_ += change;
  for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += change, slope_[i] = slope(i);
  return std::fabs(g);
}

inline void CoordinateDescent::refresh() {
  std::fill(z_.begin(), z_.end(), b_);
  with_columns([&](auto starts, auto keys, auto values) {
    for (std::size_t j = 0; j < w_.size(); ++j) {
      if (w_[j] == 0.0) continue;
      for (auto k = starts[j]; k < starts[j + 1]; ++k)
        z_[static_cast<std::size_t>(keys[k])] += w_[j] * static_cast<double>(values[k]);
    }
  });
  for (std::size_t i = 0; i < z_.size(); ++i) slope_[i] = slope(i);
}

inline double CoordinateDescent::objective() const {
  double mean_loss = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < z_.size(); ++i) mean_loss += share_[i] * loss_(z_[i], y_[i]).loss();
  for (const double w : w_) norm += std::fabs(w);
  return mean_loss + l1_ * norm;
}

inline double CoordinateDescent::intercept_gradient() const {
  double sum = 0.0;
  for (const double slope : slope_) sum += slope;
  return sum;
}

inline double CoordinateDescent::largest_gradient() const {
  return largest([](std::size_t, double g) { return std::fabs(g); });
}

inline double CoordinateDescent::violation(bool with_intercept) const {
  const double of_features = largest([this](std::size_t j, double g) {
    return beta_[j] > 0 ? coordinate_violation(g, w_[j]) : 0.0;
  });
  return with_intercept ? std::max(of_features, std::fabs(intercept_gradient())) : of_features;
}

inline std::pair<std::int64_t, double> CoordinateDescent::steepest() const {
  const auto found = std::max_element(square_.begin(), square_.end());
  if (found == square_.end()) return {0, 0.0};
  return {found - square_.begin(), *found};
}

inline std::vector<std::byte> CoordinateDescent::state() const {
  Saver save;
  save(w_), save(z_), save(b_);
  return save.take();
}

inline void CoordinateDescent::restore(std::span<const std::byte> state) {
  Restorer restore(state);
  std::vector<double> w, z;
  double b = 0.0;
  restore(w), restore(z), restore(b);
  if (w.size() != w_.size() || z.size() != z_.size() || !restore.finished())
    throw std::invalid_argument("the state is of a solver of other rows");
  w_ = std::move(w), z_ = std::move(z), b_ = b;
  for (std::size_t i = 0; i < z_.size(); ++i) slope_[i] = slope(i);
}

}  // namespace thresher
