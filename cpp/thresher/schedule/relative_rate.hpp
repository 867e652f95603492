// Rates relative to the rows (eta0 = "auto"): eta_t = eta0 f(t) / max(m_t, s_t), where s_t is the
// squared norm of row t times its weight, and m_t the mean of s_1 .. s_t. For rows of norm 1 this
// is eta0 f(t); for other rows no step overshoots. For the intercept x is 1.
#pragma once

#include <algorithm>
#include <cstdint>

namespace thresher {

class RelativeRate {
 public:
  struct Divisors {
    double weights, intercept;
  };

  // Returns the divisors for row t = 1, 2, ..., before its step. After the step, finish() adds the
  // row to the sums.
  Divisors see(std::int64_t t, double squared_norm, double weight) {
    row_norm_ = weight * squared_norm, row_weight_ = weight;
    const double n = static_cast<double>(t);
    const double largest = std::max((norms_ + row_norm_) / n, row_norm_);
    const double heaviest = std::max((weights_ + weight) / n, weight);
    return {largest > 0 ? largest : 1.0, heaviest > 0 ? heaviest : 1.0};
  }

  void finish() { norms_ += row_norm_, weights_ += row_weight_; }

  template <class Archive>
  void archive(Archive& io) {
    io(norms_), io(weights_);
  }

 private:
  double norms_ = 0.0, weights_ = 0.0;
  double row_norm_ = 0.0, row_weight_ = 0.0;
};

}  // namespace thresher
