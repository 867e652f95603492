// What the weight of a row means: the row is repeated (R-3.6; docs/decisions/0016-weights.md).
//
// A row of weight h makes `count` = ceil(min(h, 32)) consecutive steps, each of weight h / count.
// So an integer weight of at most 32 equals that many copies of the row, to the last bit, and any
// other weight up to 32 makes steps of weight below 1. Above 32 the steps have a weight above 1: a
// rule then uses Loss::long_slope, with which no step overshoots. A row of weight 0 makes no step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace thresher {

struct Repeats {
  static constexpr double most = 32.0;

  std::int64_t count;  // number of steps
  double weight;       // of each step
};

// The weight may be invalid: rows are checked when they are opened.
[[gnu::always_inline]] inline Repeats repeats_of(double weight) {
  if (!(weight > 1.0)) [[likely]]
    return {weight != 0.0, weight};
  const double count = std::ceil(std::min(weight, Repeats::most));
  return {static_cast<std::int64_t>(count), weight / count};
}

}  // namespace thresher
