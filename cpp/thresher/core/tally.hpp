// The running progressive loss, at no extra cost.
//
// The logistic loss has a term ln(1 + e) per row. Instead of a logarithm per row, the factors (1 +
// e) <= 2 are multiplied until the product nears overflow, for about a thousand rows, and then one
// logarithm is taken. The relative error of the product is the absolute error of its logarithm: a
// thousand roundings, 1e-13.
#pragma once

#include <cmath>
#include <cstdint>

#include "thresher/loss/loss.hpp"

namespace thresher {

class Tally {
 public:
  Tally() = default;
  Tally(std::int64_t rows, double weight, double sum, double product)
      : rows_(rows), weight_(weight), sum_(sum), product_(product) {}

  // unit: the unit of the loss's value, for targets that are standardised (core/target_scale.hpp).
  void add(const Outcome& outcome, double weight, double unit = 1.0) {
    rows_ += 1;
    weight_ += weight;
    sum_ += weight * (unit * outcome.value);
    if (weight == 1.0) {
      product_ *= outcome.factor;
      if (product_ > 1e300) {
        sum_ += std::log(product_);
        product_ = 1.0;
      }
    } else {
      sum_ += weight * std::log(outcome.factor);
    }
  }

  std::int64_t rows() const { return rows_; }
  double weight() const { return weight_; }
  double loss() const { return sum_ + std::log(product_); }

  template <class Archive>
  void archive(Archive& io) {
    io(rows_), io(weight_), io(sum_), io(product_);
  }

 private:
  std::int64_t rows_ = 0;
  double weight_ = 0.0;
  double sum_ = 0.0;
  double product_ = 1.0;
};

}  // namespace thresher
