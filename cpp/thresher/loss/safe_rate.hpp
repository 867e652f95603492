// The scale of a row, and the safe rate that learners recommend when weights diverge.
#pragma once

#include <cmath>
#include <cstddef>

#include "thresher/core/batch.hpp"
#include "thresher/core/rows.hpp"
#include "thresher/loss/loss.hpp"

namespace thresher {

// clipped_square uses x / sqrt(|x|_0), all other losses x.
template <class Real>
double row_scale(const Loss& loss, const Rows<Real>& rows) {
  if (!loss.normalises()) return 1.0;
  const std::size_t nonzeros = rows.nonzeros();
  return nonzeros ? 1.0 / std::sqrt(static_cast<double>(nonzeros)) : 1.0;
}

// Returns the smallest safe rate of all rows of a batch. The safe rate of a row is
// 1 / (curvature * (||x||^2 + 1)): a step of this size does not overshoot. The weight of a row does
// not matter: its steps have a weight of at most 1, or cannot overshoot (core/repeats.hpp). Real
// (float or double) is the type of the values that learners use.
template <class Real>
double safe_rate(const Batch& batch, const Loss& loss);

}  // namespace thresher
