// What predictions start from, before any weight: running statistics of the targets of one output.
//
//   logistic    the offset ln((positive + 1) / (negative + 1))
//   poisson     the offset ln((sum y + 1) / (rows + 1))
//   regression  targets are standardised by their running mean and sd (without an intercept: by the
//               root mean square), and predictions are clipped to the range of the targets seen
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "thresher/core/archive.hpp"

#include "thresher/core/error.hpp"
#include "thresher/one_pass/implicit_slope.hpp"

namespace thresher::one_pass {

class Target {
 public:
  Target(const ImplicitLoss& loss, bool fit_intercept) : loss_(loss), centres_(fit_intercept) {}

  double offset() const {
    if (!centres_ || loss_.regression()) return 0.0;
    return loss_.logistic() ? std::log((sum_ + 1.0) / (weight_ - sum_ + 1.0))
                            : std::log((sum_ + 1.0) / (weight_ + 1.0));
  }

  // y = mean + unit y'
  double mean() const { return loss_.regression() && centres_ ? mean_ : 0.0; }
  double unit() const { return unit_; }
  double standard(double y) const {
    if (!loss_.regression()) return y;
    return unit_ > 0 ? (y - mean()) / unit_ : 0.0;
  }
  bool started() const { return weight_ > 0; }

  // Clips a standardised prediction.
  double clip(double p) const { return std::clamp(p, low_, high_); }

  // Throws if sums of h y^2 might overflow, or y is beyond the largest prediction of poisson.
  void check_size(std::int64_t row, double y, double h) const {
    const double most = loss_.logistic() ? infinity : loss_.poisson() ? 1e12 : 1e150;
    const double most_squares = loss_.poisson() ? 1e36 : 1e300;
    if (std::fabs(y) > most)
      throw DataError(row, "the target " + shown(y) + " is too large; allowed are targets up to " +
                               shown(most));
    if (h > 1e30 || h * y * y > most_squares)
      throw DataError(row, "the weight " + shown(h) + " is too large for the target " + shown(y));
  }

  void see(double y, double h) {
    weight_ += h;
    if (loss_.logistic()) {
      sum_ += y > 0 ? h : 0.0;
    } else if (loss_.poisson()) {
      sum_ += h * y;
    } else {
      const double before = y - mean_;
      if (weight_ == h) mean_ = y;  // exactly, also for weights that round
      else mean_ += h * before / weight_;
      squares_ += h * (centres_ ? std::max(0.0, before * (y - mean_)) : y * y);
      least_ = std::min(least_, y), most_ = std::max(most_, y);
      set_range();
    }
  }

  template <class Archive>
  void archive(Archive& io) {
    io(weight_), io(sum_), io(mean_), io(squares_), io(least_), io(most_);
    if constexpr (std::is_same_v<Archive, Restorer>)  // saving only reads
      if (loss_.regression() && started()) set_range();
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  void set_range() {
    unit_ = std::sqrt(squares_ / weight_);
    low_ = unit_ > 0 ? standard(least_) : -infinity;
    high_ = unit_ > 0 ? standard(most_) : infinity;
  }

  ImplicitLoss loss_;
  bool centres_;
  double weight_ = 0.0, sum_ = 0.0, mean_ = 0.0, squares_ = 0.0;
  double least_ = infinity, most_ = -infinity;             // targets seen
  double unit_ = 1.0, low_ = -infinity, high_ = infinity;  // of a regression that has started
};

}  // namespace thresher::one_pass
