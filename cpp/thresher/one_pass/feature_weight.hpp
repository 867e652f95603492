// The weight of a feature in the model of an output, computed from its cell. An object has what all
// features share, as of the rows so far; the next row makes it invalid.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "thresher/one_pass/bank.hpp"
#include "thresher/one_pass/inputs.hpp"

namespace thresher::one_pass {

// Where a cell has the numbers of an output.
struct CellPlaces {
  std::size_t weights;             // of the lanes: the first eight, as many sums, then the others
  std::size_t mean, total;         // of the mixed weight; of earlier passes
  std::size_t scale, count, last;  // of the feature
};

template <class Real>
struct FeatureWeight {
  CellPlaces places;
  std::size_t lanes;
  std::array<double, most_lanes> mixture;
  std::array<bool, most_lanes> own;
  bool averages;             // the model has the means of the mixed weights
  double time;               // weight of the rows of this pass
  double inverse_of_common;  // 1 / s
  double passes, share;      // passes that have ended, and how much this one counts
  double unit;               // of the targets

  // The weight of this pass, in units of x / s_j and of standardised targets.
  double of_pass(const Real* cell) const {
    const double ratio = cell[places.scale] * inverse_of_common;
    const double w = lanes == most_lanes ? mixed<most_lanes>(cell + places.weights, ratio)
                                         : mixed<4>(cell + places.weights, ratio);
    if (!averages) return w;
    const double mean = cell[places.mean];
    const double g = time > 0 ? gain(1.0 - last_of(cell + places.last) / time) : 1.0;
    return mean + g * (w - mean);
  }
  // The same of all passes.
  double scaled(const Real* cell) const {
    const double w = of_pass(cell);
    if (passes == 0) return w;
    const double total = cell[places.total];
    return (total + share * w) / (passes + share);
  }
  // w^2 sum x^2, with the square of the mean for the mean of the squares; w is scaled().
  double energy(const Real* cell, double w) const {
    return w * w * static_cast<double>(cell[places.count]);
  }
  // In units of x and y.
  double usable(const Real* cell, double w) const {
    const double kept = unit * w / cell[places.scale];
    return std::isfinite(kept) ? kept : 0.0;  // not if s_j is almost 0
  }
  // In units of x and y; 0 if the energy is not above `least`.
  double kept(const Real* cell, double least) const {
    const double w = scaled(cell);
    return energy(cell, w) > least ? usable(cell, w) : 0.0;
  }

 private:
  template <std::size_t n>
  double mixed(const Real* weights, double ratio) const {
    constexpr std::size_t first = std::min<std::size_t>(n, 8);
    double parts[n], w = 0.0;
    for (std::size_t k = 0; k < first; ++k) parts[k] = mixture[k] * static_cast<double>(weights[k]);
    for (std::size_t k = first; k < n; ++k)
      parts[k] = mixture[k] * static_cast<double>(weights[k + 8]);
    for (std::size_t k = 0; k < n; ++k) w += parts[k] * (own[k] ? 1.0 : ratio);
    return w;
  }
};

}  // namespace thresher::one_pass
