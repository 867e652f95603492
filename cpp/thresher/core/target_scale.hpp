// The scale of the targets of a regression: their running mean and standard deviation.
//
// A row is counted before it is standardised, y' = (y - mean) / sd, so sd > 0 from the second
// different target on. |y'| is at most the square root of the weight so far over the row's own. A
// target that equals all targets before has y' = 0. The result depends only on the order of the
// rows. West's update of mean and variance is written for sd itself, in units of the larger of sd
// and |y - mean|: squares of 1e300 and of 1e-300 do not overflow or vanish.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "thresher/core/batch.hpp"

namespace thresher {

class TargetScale {
 public:
  static constexpr std::size_t numbers = 5;      // of a state
  static constexpr double largest = 1e306;       // of targets, in magnitude
  static constexpr double largest_unit = 1e250;  // so that sums of losses stay finite
  static constexpr double early_rows = 1000.0;   // rows after which sd should not grow much

  // centred: subtract the mean; if not, sd is the root mean square.
  TargetScale(const double* state, bool centred)
      : weight_(state[0]),
        mean_(state[1]),
        sd_(state[2]),
        rows_(state[3]),
        early_sd_(state[4]),
        centred_(centred) {}

  std::array<double, numbers> state() const { return {weight_, mean_, sd_, rows_, early_sd_}; }

  void count(double y, double weight) {
    if (!(weight > 0.0)) return;
    const double total = weight_ + weight;
    if (weight_ == 0.0 && centred_) mean_ = y;
    const double delta = y - mean_, unit = std::max(sd_, std::fabs(delta));
    if (unit > 0.0) {
      const double before = sd_ / unit, now = delta / unit, share = weight / total;
      const double rest = 1.0 - share;
      sd_ = unit * std::sqrt(rest * before * before + share * (centred_ ? rest : 1.0) * now * now);
      if (centred_) mean_ += share * delta;
    }
    weight_ = total;
    rows_ += 1.0;
    if (rows_ == early_rows) early_sd_ = sd_;
  }

  double sd() const { return sd_; }
  double standardised(double y) const { return sd_ > 0.0 ? (y - mean_) / sd_ : 0.0; }
  // The factor from losses of standardised targets to losses of targets; degree 1 or 2.
  double unit(std::int64_t degree) const {
    return degree == 1 ? sd_ : sd_ < std::sqrt(largest_unit) ? sd_ * sd_ : largest_unit;
  }

 private:
  double weight_, mean_, sd_;
  double rows_;      // of weight above 0
  double early_sd_;  // sd after `early_rows` rows; 0 before
  bool centred_;
};

// Standardises the targets of the rows of a visit, for several clocks.
struct StandardisedTargets {
  std::int64_t clocks;
  bool centred, counts;          // counts: rows are counted; if not, mean and sd stay
  std::int64_t degree;           // of the loss
  double* states;                // clocks x TargetScale::numbers
  double *labels, *sds, *units;  // rows x clocks; written for the rows of the visit that are seen

  // Returns the position after the last row done. A row that learners refuse keeps its target. If
  // rows are counted, a call ends before a row that occurs a second time and after a row that
  // learners refuse, and throws DataError if the first target is above TargetScale::largest.
  std::int64_t fill(const Batch& batch, const Visit& visit, const std::uint8_t* seen) const;
};

}  // namespace thresher
