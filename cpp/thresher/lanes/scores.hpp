// Scores of lanes on rows: sums over rows, without storing predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "thresher/lanes/lanes.hpp"

namespace thresher {

struct RowScore {
  std::string kind;     // "hits" | "log losses" | "squares" | "absolutes"
  double middle = 0.0;  // a raw prediction of at least this is class 1
  const double* truth;  // one for each row of the visit: 1 and -1, or a value, or a class number
  // Adjacent lanes of one model. With more than one, only "hits": the class is the lane with the
  // largest prediction, the first of equal ones.
  std::size_t outputs = 1;
};

// Writes lanes.size() / outputs sums; NaN if a prediction is not finite. A sum depends only on the
// lanes of its own model and on the rows, so it is the same however lanes are split over threads.
void score_lanes(const Lanes& from, const Batch& batch, const Visit& visit,
                 std::span<const std::int64_t> lanes, bool average, const RowScore& score,
                 double* sums);

}  // namespace thresher
