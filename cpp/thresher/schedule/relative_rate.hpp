// Rates relative to the rows (eta0 = "auto"): eta_t = eta0 f(t) / max(m_t, s_t), where s_t is the
// squared norm of the row of step t, and m_t the mean of s_1 .. s_t. For rows of norm 1 this is
// eta0 f(t); for other rows no step overshoots. For the intercept x is 1. Both are multiplied by
// the steepness of the loss (Outcome). The weight of a row does not change its rate.
#pragma once

#include <algorithm>
#include <cstdint>

namespace thresher {

class RelativeRate {
 public:
  struct Divisors {
    double weights, intercept;
  };

  // Returns the divisors for step t = 1, 2, ..., before it is made. After it, finish() adds the row
  // to the sums.
  Divisors see(std::int64_t t, double squared_norm, double steepness) {
    row_norm_ = steepness * squared_norm, row_steepness_ = steepness;
    const double n = static_cast<double>(t);
    const double largest = std::max((norms_ + row_norm_) / n, row_norm_);
    const double steepest = std::max((steepnesses_ + steepness) / n, steepness);
    return {largest > 0 ? largest : 1.0, steepest > 0 ? steepest : 1.0};
  }

  void finish() { norms_ += row_norm_, steepnesses_ += row_steepness_; }

  template <class Archive>
  void archive(Archive& io) {
    io(norms_), io(steepnesses_);
  }

 private:
  double norms_ = 0.0, steepnesses_ = 0.0;
  double row_norm_ = 0.0, row_steepness_ = 0.0;
};

}  // namespace thresher
