// The range of the sizes of values in some rows of a batch.
#pragma once

#include <cstdint>
#include <limits>

#include "thresher/core/batch.hpp"

namespace thresher {

struct ValueRange {
  // Of the absolute values that are not 0 or NaN.
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
};

// Of `count` rows of the batch: 0, step, 2 step, ... They must exist.
ValueRange value_range(const Batch& batch, std::int64_t count, std::int64_t step);

}  // namespace thresher
