// Whether a stream has a signal: every row is predicted before it is learned, and the loss is
// compared with that of the intercept alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "thresher/loss/losses.hpp"

namespace thresher {

// Sums over the rows judged so far; trivially copyable, for states.
class ProgressiveGain {
 public:
  // A row of weight h; `p` is the prediction of the model, `prior` that of the intercept alone.
  // Predictions between both are judged too: a young model is too certain.
  void add(double h, double p, double prior, double label) {
    const Loss logistic("logistic", 0.0, 0.5);
    const double alone = logistic(prior, label).loss();
    weight_ += h, squares_ += h * h;
    for (std::size_t a = 0; a < shares.size(); ++a) {
      const double gain = alone - logistic(prior + shares[a] * (p - prior), label).loss();
      sums_[a] += h * gain, square_sums_[a] += h * h * gain, products_[a] += h * h * gain * gain;
    }
  }

  // Whether the best prediction is better than the intercept by two standard errors; true if no
  // row has been judged.
  bool has_signal() const {
    if (weight_ == 0) return true;
    const auto best =
        static_cast<std::size_t>(std::max_element(sums_.begin(), sums_.end()) - sums_.begin());
    const double mean = sums_[best] / weight_;
    const double about = products_[best] - 2.0 * mean * square_sums_[best] + mean * mean * squares_;
    return mean > 0 && mean >= 2.0 * std::sqrt(std::max(0.0, about)) / weight_;
  }

 private:
  static constexpr std::array<double, 3> shares = {0.1, 0.3, 1.0};

  double weight_ = 0.0, squares_ = 0.0;
  std::array<double, 3> sums_{}, square_sums_{}, products_{};
};

}  // namespace thresher
