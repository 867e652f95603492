// How many features the robust rule keeps, if that is not given: the labels decide
// (docs/decisions/0021).
//
// Eight random splits (three from 2,000 rows on) cut the rows into two halves, and each half has a
// path. A path judges features by its own half only: stages as those of
// stabilized/robust/robust.hpp, but of one path, with halving numbers of features. At each number m
// of features it learns logistic models from its half, from strong to weak l2:
//
//   sum over its rows of  h C loss + |w|^2 / 2,   C = c / sum of the variances of the m features
//
// and measures their loss on the rows of the other half. The least of the mean losses counts. So
// every row has a loss for every m from a model that did not learn from it, and one from the
// intercept alone. If the best m is not better than the intercept by two standard errors, there is
// no signal, and no feature is kept.
//
// Otherwise the number is an average over all m that may be the best:
//
//   twice exp(sum of u_m ln m / sum of u_m),   u_m = exp(-(d_m / e_m)^2 / 2)
//
// d_m is the mean loss of m minus that of the best, and e_m the standard error of this difference,
// row by row. It is doubled because the paths saw half of the rows. c of the refit is the geometric
// mean over paths and m, with the same u_m. If it is nearly the largest, the refit has no l2.
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
  double paths = 0.0;                              // number of paths
  std::vector<double> logs;  // for each size, the sum over paths of ln c of the best model

  void add(const SizeTable& other);  // both have the same sizes, or one has none

  double mean(std::size_t a) const { return sums[a] / weight; }
  // The standard error of mean(a) - mean(b).
  double error(std::size_t a, std::size_t b) const;
};

struct ChosenSize {
  std::int64_t size = 0;  // 0: there is no signal
  double strength = 0.0;  // c of the refit; 0: no l2
};

// The number of features to keep, at most `features`, and the l2 of the refit.
ChosenSize chosen_size(const SizeTable& table, std::size_t features);

// The l2 of a model with features of these variances, as a penalty of the mean loss over rows of
// this total weight.
inline double scale_free_l2(double strength, double variances, double weight) {
  return strength > 0 ? variances / (strength * weight) : 0.0;
}

// ln(share / (1 - share)) of the positive rows, finite also for rows of one class.
double log_odds(double positive, double weight, double rows);

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
  std::size_t first_;   // number of the first order that the stages of the rule do not use
  std::size_t pairs_;   // 0: by the number of rows
  std::int64_t steps_;  // that a path makes at least, in each stage
};

extern template class RobustSizing<float>;  // in sizing.cpp
extern template class RobustSizing<double>;

}  // namespace thresher
