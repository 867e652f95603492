// How many features the robust rule keeps, if that is not given: the labels decide
// (docs/decisions/0021).
//
// A random split cuts the rows into two halves, and each half has a path. A path judges features by
// its own half only: stages as those of stabilized/robust/robust.hpp, of one path, with halving
// numbers of features. At each number m of features it learns logistic models from its half, from
// strong to weak l2:
//
//   sum over its rows of  h C loss + |w|^2 / 2,   C = c / sum of the variances of the m features
//
// and measures their loss on the rows of the other half; the least of the mean losses counts. Every
// row then has a loss for every m that no label of its half has influenced, and one for the
// intercept alone (the log-odds of the other half). If the best m is not better than the intercept
// by two standard errors, there is no signal, and no feature is kept. Otherwise the least m within
// one standard error of the best is taken, where the error is that of the difference, row by row.
// It is doubled: the paths saw half of the rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "thresher/core/threads.hpp"
#include "thresher/stabilized/robust/feature.hpp"
#include "thresher/stabilized/robust/half_paths.hpp"

namespace thresher {

// Losses on the other half, as sums over rows: so that parts of the rows can be added. Sizes are 0
// (the intercept alone), and then decrease from all features. h is the weight of a row.
struct SizeTable {
  std::vector<std::int64_t> sizes;
  double rows = 0.0, weight = 0.0, squares = 0.0;  // number of rows, sums of h and h^2
  std::vector<double> sums, square_sums;           // of h loss and h^2 loss, for each size
  std::vector<double> products;                    // of h^2 loss loss', for each pair of sizes

  void add(const SizeTable& other);  // both have the same sizes, or one has none

  double mean(std::size_t a) const { return sums[a] / weight; }
  // The standard error of mean(a) - mean(b).
  double error(std::size_t a, std::size_t b) const;
};

// The number of features to keep; 0: there is no signal. At most `features`.
std::size_t chosen_size(const SizeTable& table, std::size_t features);

// The l2 of a model with features of these variances, as a penalty of the mean loss over rows of
// this total weight.
inline double scale_free_l2(double strength, double variances, double weight) {
  return variances / (strength * weight);
}

// ln(share / (1 - share)) of the positive rows, finite also for rows of one class.
double log_odds(double positive, double weight, double rows);

// The l2 of the refit, looser for unbalanced classes: their rows tell less about the weights.
inline double robust_refit_l2(double strength, double variances, const RowTotals& rows) {
  const double share = rows.positive / rows.weight, h = std::max(1e-3, share * (1.0 - share));
  return scale_free_l2(strength * 0.25 / h, variances, rows.weight);
}

template <class Real>
class RobustSizing {
  using Rows = CandidateRows<Real>;
  using Paths = RobustPaths<Real>;

 public:
  RobustSizing(const Loss& loss, const Params& params);

  // `features` is the number of features of all parts; `mean_norm` as for RobustPaths.
  SizeTable measure(std::size_t jobs, const std::function<void()>& check_interrupt,
                    const Rows& rows, double mean_norm, std::size_t features) const;

  static std::vector<double> variances(const Rows& rows);
  static double spread(const Rows& rows);  // their sum

 private:
  struct Half;  // of a split, with its path

  void follow(const typename Paths::Control& control, Half& half) const;
  std::vector<double> least_losses(const typename Paths::Control& control, Half& half,
                                   std::int64_t stage) const;

  Paths judge_;
  std::size_t first_;  // number of the first order that the stages of the rule do not use
  std::size_t pairs_;
  std::int64_t least_sweeps_, steps_;
};

extern template class RobustSizing<float>;  // in sizing.cpp
extern template class RobustSizing<double>;

}  // namespace thresher
