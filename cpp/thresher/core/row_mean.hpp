// The mean of the rows, for centring. Checks keys and values as learning does.
#pragma once

#include <vector>

#include "thresher/core/batch.hpp"

namespace thresher {

std::vector<double> mean_row(const Batch& batch);

}  // namespace thresher
